"""`init` writes the first settings from options or answers, and what it prints next works."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

ALL = ("--index", "https://index.example.org/simple/", "--projects", "flask attrs", "--contact", "me@example.org")


@pytest.fixture(autouse=True)
def _reading_the_file(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INDEX_URL", "ENV_FILE"):
        monkeypatch.delenv(f"PYPI_ASSETS_{name}")


def test_options_answer_everything(commands: Commands, tmp_path: Path) -> None:
    shown = commands.done("init", *ALL).stdout
    assert unnamed(shown, "https://index.example.org/simple/") == []
    assert unnamed(shown, "crawl full") == []
    loaded = load_settings()
    assert (loaded.index_url, loaded.projects, loaded.contact) == (ALL[1], ("attrs", "flask"), ALL[5])
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_kept_without_force(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OTHER=1\n")
    assert unnamed(commands.refused("init", *ALL), "--force") == []
    assert (tmp_path / ".env").read_text() == "OTHER=1\n"
    commands.done("init", *ALL, "--force")
    assert load_settings().contact == "me@example.org"


def test_without_a_terminal_the_missing_options_are_named(commands: Commands, tmp_path: Path) -> None:
    message = commands.refused("init", "--projects", "flask", exit_code=2)
    assert unnamed(message, "--index", "--contact", "--yes") == []
    assert not (tmp_path / ".env").exists()


def test_defaults_follow_a_few_projects_of_pypi(commands: Commands) -> None:
    commands.done("init", "--yes", "--contact", "me@example.org")
    assert load_settings().projects == ("attrs", "flask", "requests")
    assert load_settings().index_url == load_settings(index_url=load_settings().index_url).index_url
    message = commands.refused("init", "--yes", "--force", exit_code=2)
    assert unnamed(message, "PYPI_ASSETS_CONTACT") == []
    assert load_settings().contact == "me@example.org"


@pytest.mark.parametrize(
    "options",
    [("--index", "https://index.example.org/"), ("--contact", "me"), ("--projects", "nowhere/names.txt")],
)
def test_a_wrong_option_is_refused_and_nothing_is_written(
    commands: Commands, tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert unnamed(commands.refused("init", *ALL, *options, exit_code=2), options[0]) == []
    assert not (tmp_path / ".env").exists()


def test_a_misspelled_index_names_what_is_accepted(commands: Commands) -> None:
    message = commands.refused("init", *ALL, "--index", "pipy", exit_code=2)
    assert unnamed(message, "--index", "PyPI") == []
    assert "PYPI_ASSETS_" not in message


@pytest.mark.parametrize(
    ("options", "dump", "costs"),
    [
        (("--index", "PyPI", "--projects", "all"), "dump full", True),
        (("--index", "PyPI", "--projects", "flask"), "dump full --shards 1", False),
        (("--projects", "all"), "dump full", False),
        (("--index", "http://127.0.0.1:9/simple/", "--projects", "all"), "dump full --shards 1", False),
    ],
)
def test_the_advice_follows_the_choice(commands: Commands, options: tuple[str, ...], dump: str, costs: bool) -> None:
    shown = commands.done("init", *ALL, *options).stdout
    assert unnamed(shown, f"pypi-assets {dump}") == []
    assert ("deploy/README.md" in shown) == costs


def test_a_password_is_not_shown(commands: Commands) -> None:
    result = commands.done("init", *ALL, "--index", "https://me:secret@index.example.org/simple/")
    assert "secret" not in result.output
    assert "secret" in load_settings().index_url


def test_a_variable_that_wins_over_the_file_is_reported(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_CONTACT", "other@example.org")
    assert unnamed(commands.done("init", *ALL).stderr, "PYPI_ASSETS_CONTACT") == []


def test_questions_are_put_again_until_the_answer_is_right(commands: Commands, tmp_path: Path) -> None:
    main, worker = pty.openpty()
    with subprocess.Popen([*PROCESS, "init"], stdin=worker, stdout=worker, stderr=worker) as process:
        os.close(worker)
        for line in (
            "https://index.example.org/",
            "https://index.example.org/simple/",
            "flask",
            "me",
            "me@example.org",
        ):
            os.write(main, f"{line}\n".encode())
        assert process.wait(60) == 0
    shown = os.read(main, 100_000).decode()
    os.close(main)
    assert shown.count("https://index.example.org/") >= 2
    loaded = load_settings()
    assert (loaded.index_url, loaded.projects, loaded.contact) == (
        "https://index.example.org/simple/",
        ("flask",),
        "me@example.org",
    )


def test_what_is_printed_next_works(commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYPI_ASSETS_INDEX_URL")
    index.wheel("demo", "1.0")
    shown = commands.done("init", "--index", index.url, "--yes").stdout
    for line in shown.splitlines():
        if line.startswith("  pypi-assets "):
            commands.done(*line.replace("NAME", "demo_module").split()[1:])
    assert commands.json("lookup", "module", "demo_module")[0]["project"] == "demo"
