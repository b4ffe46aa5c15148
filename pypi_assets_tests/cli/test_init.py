"""`init` writes the first settings from options or answers, and the commands that it suggests work."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from pypi_assets.components import existing_catalog_from
from pypi_assets.settings import load_settings
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.registry_forms import FORMS, LOGIN, Form, served_registry
from pypi_assets_tests.served_index import ServedIndex, live
from pypi_assets_tests.served_pages import served_pages

ALL = ("--index", "https://index.example.org/simple/", "--projects", "flask attrs", "--contact", "me@example.org")
ALL += ("--lister", "auto")  # so no request is sent


@pytest.fixture(autouse=True)
def _reading_the_file(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INDEX_URL", "ENV_FILE"):
        monkeypatch.delenv(f"PYPI_ASSETS_{name}")


def test_options_answer_all_questions(commands: Commands, tmp_path: Path) -> None:
    shown = commands.done("init", *ALL).stdout
    assert unnamed(shown, "https://index.example.org/simple/") == []
    assert unnamed(shown, "follow --once") == []
    loaded = load_settings()
    assert (loaded.index_url, loaded.projects, loaded.contact) == (ALL[1], ("attrs", "flask"), ALL[5])
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600


def test_existing_file_is_kept_without_force(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OTHER=1\n")
    assert unnamed(commands.refused("init", *ALL), "--force") == []
    assert (tmp_path / ".env").read_text() == "OTHER=1\n"
    commands.done("init", *ALL, "--force")
    assert load_settings().contact == "me@example.org"


def test_missing_options_are_named_without_a_terminal(commands: Commands, tmp_path: Path) -> None:
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
    [("--index", "index.example.org"), ("--contact", "me"), ("--projects", "nowhere/names.txt")],
)
def test_invalid_option_is_rejected_and_nothing_is_written(
    commands: Commands, tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert unnamed(commands.refused("init", *ALL, *options, exit_code=2), options[0]) == []
    assert not (tmp_path / ".env").exists()


def test_misspelled_index_error_names_accepted_values(commands: Commands) -> None:
    message = commands.refused("init", *ALL, "--index", "pipy", exit_code=2)
    assert unnamed(message, "--index", "PyPI") == []
    assert "PYPI_ASSETS_" not in message


@pytest.mark.parametrize(
    ("options", "dump", "costs"),
    [
        (("--index", "PyPI", "--projects", "all"), "dump full", True),
        (("--index", "PyPI", "--projects", "flask"), "follow --once", False),
        (("--projects", "all"), "dump full", False),
        (("--index", "http://127.0.0.1:9/simple/", "--projects", "all"), "follow --once", False),
    ],
)
def test_advice_depends_on_the_choice(commands: Commands, options: tuple[str, ...], dump: str, costs: bool) -> None:
    shown = commands.done("init", *ALL, *options).stdout
    assert unnamed(shown, f"pypi-assets {dump}") == []
    assert ("docs/deploy.md" in shown) == costs


def test_password_is_not_shown(commands: Commands, tmp_path: Path) -> None:
    result = commands.done("init", *ALL, "--index", "https://me:secret@index.example.org/simple/")
    assert "secret" not in result.output
    assert "secret" not in (tmp_path / ".env").read_text()
    assert "secret" in load_settings().index_url


def test_variable_that_overrides_the_file_is_reported(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_CONTACT", "other@example.org")
    assert unnamed(commands.done("init", *ALL).stderr, "PYPI_ASSETS_CONTACT") == []


def test_questions_are_repeated_until_the_answer_is_valid(commands: Commands, tmp_path: Path) -> None:
    main, worker = pty.openpty()
    with subprocess.Popen(
        [*PROCESS, "init", "--lister", "auto"], stdin=worker, stdout=worker, stderr=worker
    ) as process:
        os.close(worker)
        for line in (
            "ftp://index.example.org/simple/",
            "https://index.example.org/simple/",
            "flask",
            "me",
            "me@example.org",
        ):
            os.write(main, f"{line}\n".encode())
        assert process.wait(60) == 0
    shown = os.read(main, 100_000).decode()
    os.close(main)
    assert shown.count("index.example.org/simple/") >= 2
    loaded = load_settings()
    assert (loaded.index_url, loaded.projects, loaded.contact) == (
        "https://index.example.org/simple/",
        ("flask",),
        "me@example.org",
    )


def test_suggested_commands_work(commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYPI_ASSETS_INDEX_URL")
    index.wheel("demo", "1.0")
    shown = commands.done("init", index.url.removesuffix("/simple/")).stdout
    assert (load_settings().index_url, load_settings().lister) == (index.url, "auto")
    assert unnamed(shown, index.serial) == []
    run_next(commands, shown)


def run_next(commands: Commands, shown: str) -> None:
    """Run the commands that `init` has printed, and look up the module of `demo`."""
    for line in shown.splitlines():
        if line.startswith("  pypi-assets "):
            commands.done(*line.replace("NAME", "demo_module").split()[1:])
    assert commands.json("lookup", "module", "demo_module")[0]["project"] == "demo"


def test_index_without_serials_is_observed(commands: Commands, tmp_path: Path) -> None:
    with served_pages(tmp_path / "pages") as pages:
        pages.wheel("demo", "1.0", files={"demo_module.py": ""})
        shown = commands.done("init", pages.url.removesuffix("simple/")).stdout
        assert (load_settings().index_url, load_settings().lister) == (pages.url, "pages")
        run_next(commands, shown)


def test_auto_lister_is_detected_at_the_first_crawl(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_pages(tmp_path / "pages") as pages:
        pages.wheel("demo", "1.0", files={"demo_module.py": ""})
        monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", pages.url.removesuffix("/simple/"))
        commands.done("crawl", "full")
        pages.wheel("demo", "2.0", files={"demo_module.py": ""})
        answer = commands.json("crawl", "incremental", "--now")
        assert [one["lister"] for one in answer["ranges"]] == ["pages"]
        assert answer["observed"]["looked_at"] == answer["observed"]["projects"] == 1
        assert commands.json("status")["index_serial"] == answer["complete_serial"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:9/", ("http://127.0.0.1:9/simple/", "PYPI_ASSETS_INDEX_URL")),
        ("https://index.example.org/", ("--contact",)),
        ("index.example.org", ("URL",)),
    ],
)
def test_unreachable_index_is_an_error_and_nothing_is_written(
    commands: Commands, tmp_path: Path, url: str, shown: tuple[str, ...]
) -> None:
    result = commands.run("init", url)
    assert (result.exit_code in {1, 2}, result.stdout) == (True, "")
    assert unnamed(result.stderr, *shown) == []
    assert not (tmp_path / ".env").exists()


def test_error_of_the_url_names_the_argument(commands: Commands) -> None:
    message = commands.refused("init", "127.0.0.1:8391", exit_code=2)
    assert message.startswith("Error: URL: ")
    assert "--index:" not in message


def test_index_is_given_only_once(commands: Commands) -> None:
    assert unnamed(commands.refused("init", "http://127.0.0.1:9/", *ALL, exit_code=2), "--index", "URL") == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.product}-{form.hash_name}-{form.base}")
def test_registries_of_several_languages_are_followed(
    form: Form, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_POLL_CONFIRM_S", "0")
    projects = () if form.has_list else ("--projects", "alpha beta-pkg")

    def polled(polls: int) -> set[str]:
        for _ in range(polls):
            commands.done("crawl", "incremental", "--now")
        catalog = existing_catalog_from(load_settings())
        try:
            assert not any(yanked for _, yanked in live(catalog))
            return {filename for filename, _ in live(catalog)}
        finally:
            catalog.close()

    with served_registry(form) as registry:
        registry.upload("alpha", make_wheel(tmp_path, "alpha", "1.0"))
        registry.upload("Beta.Pkg", make_wheel(tmp_path, "Beta.Pkg", "1.0"))
        assert unnamed(commands.refused("init", registry.url), 401) == []
        if not form.has_list:
            refused = commands.refused("init", registry.url_with_login)
            assert unnamed(refused, 404, "PYPI_ASSETS_PROJECTS", form.product) == []
        shown = commands.done("init", registry.url_with_login.rstrip("/"), *projects).stdout
        assert unnamed(shown, form.product) == []
        assert LOGIN[1] not in shown
        assert load_settings().index_url == f"{registry.url_with_login}simple/"
        assert load_settings().lister == "pages"
        commands.done("crawl", "full")
        first = {"alpha-1.0-py3-none-any.whl", "beta_pkg-1.0-py3-none-any.whl"}
        assert polled(0) == first
        registry.upload("alpha", make_wheel(tmp_path, "alpha", "2.0"))
        assert polled(1) == first | {"alpha-2.0-py3-none-any.whl"}
        del registry.files["alpha"]["alpha-1.0-py3-none-any.whl"]
        del registry.files["Beta.Pkg"]
        left = {"alpha-2.0-py3-none-any.whl"}
        # without a list, a removed project redirects to the public index, and cannot be distinguished from an outage
        assert polled(2) == (left if form.has_list else left | {"beta_pkg-1.0-py3-none-any.whl"})
