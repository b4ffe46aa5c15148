"""All commands together: from an index to answers, help, interrupts, and output on failure."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from starlette.requests import Request
from starlette.responses import Response

import pypi_assets.cli
from pypi_assets.cli import INTERRUPTED, cli
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.questions.question import all_questions
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.cli.commands import PROCESS, Commands, commands_in, every_command
from pypi_assets_tests.served_index import ServedIndex

FIRST = ["crawl full", "dump full", "leveldb update"]
"""The first commands, in the order in which messages name them."""


@pytest.mark.nightly
def test_commands_lead_from_an_index_to_answers_and_updates(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_LAG_WARN_S", "0.001")
    index.wheel("demo", "1.0", requires_dist=["other-pkg>=2"], requires_python=">=3.8")
    index.sdist("demo", "1.0")
    index.wheel("Other.Pkg", "2.0")
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    index.raw("old-1.0.win32.exe", b"MZ")
    first = index.serial

    before = commands.json("status")
    assert (before["complete_serial"], before["index_serial"], before["lag"]) == (None, first, None)
    assert before["leveldbs"] == {name: {"version": None, "serial": None} for name in DATASETS}
    [missing] = before["to_do"]
    assert [value for value in (str(commands.home), "PYPI_ASSETS_HOME") if value not in missing] == []
    assert commands_in(missing) == FIRST

    crawled = commands.run("crawl", "full", "--json")
    assert crawled.exit_code == 0
    assert json.loads(crawled.stdout)["projects"] == 4
    assert "failures list" in commands_in(crawled.stderr)
    dumping = commands.done("dump", "full", "--shards", "16", "--json")
    assert re.findall(r"\d+", dumping.stderr.splitlines()[-1]) == ["16", "16"]
    dumped = json.loads(dumping.stdout)
    assert [(dump["range"], dump["shards"], dump["rows"]) for dump in dumped] == [(f"0-{first}", 16, 5)]
    built = commands.json("leveldb", "update")
    assert [(one["dataset"], one["version"], one["serial"]) for one in built] == [
        (dataset, 1, first) for dataset in DATASETS
    ]
    assert commands.json("lookup", "module", "demo_module") == [
        {"module": "demo_module", "project": "demo", "versions": ["1.0"]}
    ]
    assert commands.json("lookup", "module", "other_pkg_module") == [
        {"module": "other_pkg_module", "project": "Other.Pkg", "versions": ["2.0"]}
    ]
    wheel, sdist = commands.json("lookup", "project", "Demo==1")
    assert (wheel["filename"], wheel["version"], wheel["yanked"]) == ("demo-1.0-py3-none-any.whl", "1.0", False)
    assert (wheel["requires_dist"], wheel["requires_python"]) == (["other-pkg>=2"], ">=3.8")
    assert "modules" not in wheel
    assert commands.json("lookup", "dependents", "Other_Pkg") == [
        {"required": "other-pkg", "normalized": "demo", "always": ["1.0"], "marker": [], "extra": []}
    ]
    assert sdist["filename"] == "demo-1.0.tar.gz"
    status = commands.json("status")
    assert {key: status[key] for key in ("complete_serial", "index_serial", "live_distributions", "lag")} == {
        "complete_serial": first,
        "index_serial": first,
        "live_distributions": 5,
        "lag": 0,
    }
    assert (status["read"], status["failed"], status["unsupported"], status["pending"]) == (3, 1, 1, 0)
    assert commands_in(commands.done("status").stdout) == ["failures list"]

    index.wheel("demo", "2.0")
    index.history.yank("demo", "1.0")
    index.history.remove_project("Other.Pkg")
    lagging = commands.json("status")
    assert lagging["lag"] == index.serial - first
    assert commands_in(*lagging["to_do"]) == ["crawl incremental"]
    followed = commands.json("crawl", "incremental")
    assert followed["complete_serial"] == index.serial
    assert [one["range"] for one in followed["ranges"]] == [f"{first}-{index.serial}"]
    assert [dump["range"] for dump in commands.json("dump", "incremental")] == [f"{first}-{index.serial}"]
    assert commands.json("leveldb", "update", "--dataset", "modules")[0]["base_version"] == 1
    for dataset in [*DATASETS][1:]:
        assert commands.json("leveldb", "update", "--dataset", dataset)[0]["base_version"] == 1
    assert commands.json("lookup", "module", "demo_module") == [
        {"module": "demo_module", "project": "demo", "versions": ["1.0", "2.0"]}
    ]
    assert commands.json("lookup", "module", "other_pkg_module") == []
    assert [row["yanked"] for row in commands.json("lookup", "project", "demo")] == [True, True, False]
    listed = commands.json("leveldb", "list")
    assert [(one["dataset"], one["version"]) for one in listed] == [
        (dataset, version) for second, dataset in enumerate(DATASETS, 2) for version in (1, second)
    ]
    assert all(one["ok"] for one in commands.json("leveldb", "verify", "--deep"))
    after = commands.json("status")
    assert (after["leveldbs"]["modules"], after["to_do"]) == ({"version": 2, "serial": index.serial}, [])

    then = {file["filename"] for file in commands.json("lookup", "files", "--at", first)}
    now = commands.json("lookup", "files")
    assert then - {file["filename"] for file in now} == {"other_pkg-2.0-py3-none-any.whl"}
    assert [file["filename"] for file in now if file["yanked"]] == ["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"]
    assert {"filename", "project", "version", "kind", "sha256", "yanked"} <= set(now[0])


def test_second_run_reports_no_news(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    assert re.findall(r"\d+", commands.done("crawl", "incremental").stdout) == [str(index.serial)]
    dumped = commands.done("dump", "incremental")
    assert (dumped.stdout, len(dumped.stderr.splitlines())) == ("", 1)
    lines = commands.done("leveldb", "update").stdout.splitlines()
    assert [(line.partition(":")[0], *re.findall(r"\d+", line)) for line in lines] == [(one, "1") for one in DATASETS]
    assert commands.json("dump", "incremental") == []


DERIVED = {"history"}
"""Commands that are derived from a question."""
BELOW = {"inspect", "report"}
"""The commands of `admin` with separate modules."""


def test_commands_are_in_the_module_of_their_name(subtests: pytest.Subtests) -> None:
    for name in cli.commands:
        with subtests.test(name=name):
            command = cli.get_command(click.Context(cli), name)
            assert command is not None
            assert command.callback is not None
            module = {"devindex": "devindex.commands", **dict.fromkeys(DERIVED, "cli.lookup")}.get(name, f"cli.{name}")
            assert command.callback.__module__ == f"pypi_assets.{module}"


def test_help_list_has_the_first_sentence_of_each_command(subtests: pytest.Subtests) -> None:
    for name in list(cli.commands):
        with subtests.test(name=name):
            command = cli.get_command(click.Context(cli), name)
            assert command is not None
            assert command.name == name
            assert command.help is not None
            first = " ".join(command.help.partition("\n\n")[0].split())
            assert cli.commands[name].short_help == first
            assert f"  {name} " in CliRunner().invoke(cli, ["--help"], terminal_width=150).output
            assert first in CliRunner().invoke(cli, ["--help"], terminal_width=150).output


def test_command_modules_are_listed() -> None:
    folder = Path(pypi_assets.cli.__file__).parent
    texts = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    defined = {name for name, text in texts.items() if f'@command("{name}"' in text or f'@click.group("{name}"' in text}
    assert defined | {"devindex"} | DERIVED == {*cli.commands, *BELOW}


def test_output_without_a_terminal_is_plain(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", requires_dist=["a", "b"])
    stages = commands.done("crawl", "full").stderr.splitlines()
    assert [(re.findall(r"\w+", stage)[0], re.findall(r"\d+", stage)) for stage in stages] == [
        ("listing", ["1", "1"]),
        ("visits", ["1", "1"]),
        ("reads", ["1", "1"]),
    ]
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update")
    filename = "demo-1.0-py3-none-any.whl"
    assert commands.done("lookup", "files").stdout == f"{filename}\tdemo\t1.0\twheel\tno\tdata\t{index.serial}\n"
    assert commands.done("lookup", "module", "demo_module").stdout == "demo\t1.0\n"
    assert commands.done("lookup", "project", "demo").stdout == f"{filename}\t1.0\t-\tno\ta, b\n"


@pytest.mark.nightly
def test_output_on_a_terminal_has_tables_and_bars(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    assert "visits" in on_a_terminal("crawl", "full")
    shown = on_a_terminal("lookup", "files")
    assert "filename" in shown  # a heading
    assert "\u2500\u2500" in shown  # a rule below it
    assert "\n demo-1.0" in shown


def on_a_terminal(*arguments: str) -> str:
    master, slave = pty.openpty()
    environment = os.environ | {"COLUMNS": "120", "TERM": "xterm"}
    with subprocess.Popen([*PROCESS, *arguments], stdin=slave, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        output = b""
        with os.fdopen(master, "rb", buffering=0) as terminal:
            while True:
                try:
                    output += terminal.read(4096)
                except OSError:  # the other side has closed the terminal
                    break
    assert process.returncode == 0, output
    return output.decode()


@pytest.mark.nightly
def test_command_continues_after_ctrl_c(commands: Commands, index: ServedIndex) -> None:
    for number in range(20):
        index.wheel(f"demo{number}", "1.0")
    with (
        index.holding("/demo5/") as held,
        subprocess.Popen(
            [*PROCESS, "crawl", "full"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        held.wait()
        process.send_signal(signal.SIGINT)
        held.release()
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (INTERRUPTED, "")
    assert "Traceback" not in errors
    opened = commands.json("status")["open_crawl"]
    assert (opened["serial"], opened["projects"]) == (index.serial, 20)
    assert commands.json("crawl", "full")["complete_serial"] == index.serial
    assert commands.json("status")["read"] == 20


@pytest.mark.parametrize("place", ["pypi_assets.cli.cli.make_context", "click.Context.close"])
def test_ctrl_c_before_or_after_a_command_is_an_interrupt(place: str) -> None:
    program = f"""
import signal
from unittest.mock import patch
from pypi_assets.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
with patch({place!r}, lambda *_, **__: signal.raise_signal(signal.SIGINT)):
    main()
"""
    ended = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == INTERRUPTED, ended
    assert ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.nightly
def test_second_ctrl_c_does_not_wait(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    with (
        index.holding("/demo/") as held,
        subprocess.Popen([*PROCESS, "crawl", "full"], stderr=subprocess.PIPE, text=True) as process,
    ):
        held.wait()
        while process.poll() is None:  # a signal that immediately follows another can be lost
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
        held.release()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED
    assert "Traceback" not in errors
    assert commands.json("crawl", "full")["reads"]["data"] == 1


@pytest.mark.nightly
def test_closed_output_pipe_is_ignored(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    with subprocess.Popen(
        [*PROCESS, "lookup", "files", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_all_invalid_settings_are_reported(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", "mysql://localhost/catalog")
    monkeypatch.setenv("PYPI_ASSETS_MAX_CONNECTIONS", "none")
    message = commands.refused("status", exit_code=2)
    assert "PYPI_ASSETS_DATABASE_URL" in message
    assert "PYPI_ASSETS_MAX_CONNECTIONS" in message


def test_misspelled_variable_is_one_line_on_standard_error(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_ULR", "file:///x")
    result = commands.done("admin", "inspect", make_wheel(tmp_path, "demo", "1.0", files={"demo.py": ""}), "--json")
    assert json.loads(result.stdout)[0]["filename"] == "demo-1.0-py3-none-any.whl"
    assert re.findall(r"PYPI_ASSETS_\w+", result.stderr) == ["PYPI_ASSETS_STORAGE_ULR", "PYPI_ASSETS_STORAGE_URL"]
    assert len(result.stderr.splitlines()) == 1


BEFORE_A_CRAWL = {
    ("crawl", "incremental"): ["crawl full"],
    ("dump", "full"): ["crawl full"],
    ("dump", "incremental"): ["dump full"],
    ("dump", "redo"): ["crawl full"],
    ("dump", "clean"): ["crawl full"],
    ("dump", "compact"): ["crawl full"],
    ("leveldb", "update"): ["dump full"],
    ("leveldb", "verify"): FIRST,
    ("lookup", "module", "demo"): FIRST,
    ("lookup", "files"): ["crawl full"],
    ("failures", "retry"): ["crawl full"],
}


@pytest.mark.nightly
def test_error_before_a_full_crawl_names_the_first_command(
    commands: Commands, index: ServedIndex, subtests: pytest.Subtests
) -> None:
    commands.done("admin", "migrate")
    for arguments, first in BEFORE_A_CRAWL.items():
        with subtests.test(arguments=arguments):
            named = re.findall(r"pypi-assets (\w+ \w+)", commands.refused(*arguments))
            assert named[: len(first)] == first


READING = [
    ("status",),
    ("lookup", "files"),
    ("history", "demo"),
    ("visits", "demo"),
    ("queue",),
    ("files", "list"),
    ("admin", "where", "demo"),
    ("admin", "ranges"),
    ("failures", "list"),
    ("failures", "show", "demo"),
    ("admin", "metrics"),
    ("admin", "inspect", "--from-extract", "demo-1.0.tar.gz"),
    ("lookup", "module", "demo"),
    ("lookup", "project", "demo"),
    ("lookup", "dependents", "demo"),
    ("impact", "demo"),
    ("lookup", "breaks", "demo==1.0"),
    ("resolve", "demo"),
    ("blame", "demo", "--good", "1"),
    ("admin", "report", "removals"),
    ("admin", "report", "solvability"),
    ("lookup", "command", "demo"),
    ("lookup", "hash", "0" * 64),
    ("lookup", "hash", "0" * 64, "--all"),
    ("leveldb", "list"),
    ("leveldb", "fetch", "modules", "--into", "fetched"),
    ("leveldb", "verify"),
    ("journal", "verify"),
    ("journal", "tail", "--since", "1"),
    ("scope", "list"),
    ("scope", "show", "tools"),
    ("scope", "why", "tools", "demo"),
    ("scope", "rules", "tools"),
]


def test_reading_commands_create_nothing(commands: Commands, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for arguments in READING:
        with subtests.test(arguments=arguments):
            before = set(tmp_path.rglob("*"))
            result = commands.run(*arguments)
            assert set(tmp_path.rglob("*")) == before
            assert "Traceback" not in result.output
            if arguments == ("admin", "metrics"):
                assert 'pypi_assets_reachable{part="catalog"} 0.0' in result.stdout
                return
            assert result.exit_code == (0 if arguments == ("status",) else 1)
            assert commands_in(result.output) == FIRST
            assert str(commands.home) in result.output


NEEDING_A_CATALOG = [
    ("admin", "reprocess"),
    ("admin", "extracts", "clean"),
    ("admin", "prune"),
    ("dump", "full"),
    ("dump", "redo"),
    ("dump", "incremental"),
    ("dump", "parquet"),
    ("dump", "tables"),
    ("dump", "clean"),
    ("dump", "compact"),
    ("leveldb", "update"),
    ("crawl", "incremental"),
    ("admin", "audit"),
    ("failures", "retry"),
    ("scope", "run"),
    ("scope", "set", "tools", "--nice", "1"),
    ("scope", "prune", "tools"),
    ("scope", "abort", "tools"),
    ("scope", "resume", "tools"),
    ("scope", "remove", "tools"),
    ("follow",),
    ("visit", "demo"),
    ("files", "forget", "0" * 64, "--reason", "x"),
    ("files", "verify"),
    ("journal", "write"),
    ("journal", "restart", "index"),
    ("journal", "consumers"),
    ("journal", "letters"),
    ("journal", "takedowns"),
    ("journal", "takedown", "demo", "--reason", "x"),
    ("journal", "prune", "--before", "1"),
]
MAKING_A_CATALOG = [
    ("crawl", "full"),
    ("scope", "create"),
    ("admin", "migrate"),
    ("admin", "restore"),
]


def test_writing_commands_create_nothing_in_a_wrong_home(
    commands: Commands, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for arguments in NEEDING_A_CATALOG:
        with subtests.test(arguments=arguments):
            before = set(tmp_path.rglob("*"))
            message = commands.refused(*arguments)
            assert [value for value in (str(commands.home), "PYPI_ASSETS_HOME") if value not in message] == []
            assert commands_in(message) == FIRST
            assert set(tmp_path.rglob("*")) == before


def test_every_command_is_in_one_of_the_lists() -> None:
    """This ensures that a new command is added to one of the lists above."""
    listed = [
        *READING,
        *NEEDING_A_CATALOG,
        *MAKING_A_CATALOG,
        ("init",),
        ("admin", "settings"),
        ("admin", "indexes"),
        ("lookup", "confusion"),
        ("index", "new"),
        *(tuple(question.command.split()) for question in all_questions()),  # these declare it: `needs_catalog`
        ("serve",),
        ("mcp",),
        ("up",),
        *(("journal", name) for name in ("replay", "sign", "deliver", "publish")),
        ("mirror", "run"),
        ("mirror", "status"),
        *(("export", name) for name in ("owners", "gazelle", "pants", "deptry", "fawltydeps", "uv-metadata")),
    ]
    every = [path for path, _ in every_command() if path[0] != "devindex"]
    assert [path for path in every if not any(one[: len(path)] == path for one in listed)] == []


def test_database_without_tables_is_not_a_catalog(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, empty_postgres_database_url: str
) -> None:
    url = empty_postgres_database_url.replace("+psycopg:", ":")
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", url)
    message = commands.refused("lookup", "files")
    assert "PYPI_ASSETS_DATABASE_URL" in message
    assert commands_in(message) == FIRST
    assert not commands.home.exists()


@pytest.mark.parametrize(
    ("variable", "value", "arguments", "named"),
    [
        (
            "HOME",
            "{file}/below",
            ("admin", "migrate"),
            "{file}/below",
        ),
        (
            "DATABASE_URL",
            "postgresql://me:secret@127.0.0.1:9/catalog",
            ("lookup", "files"),
            "PYPI_ASSETS_DATABASE_URL",
        ),
        (
            "DATABASE_URL",
            "sqlite:///{file}",
            ("lookup", "files"),
            "PYPI_ASSETS_DATABASE_URL",
        ),
        ("STORAGE_URL", "file://{file}/below", ("crawl", "full"), "{file}/below"),
        ("STORAGE_URL", "file://{file}/below", ("leveldb", "list"), "{file}/below"),
    ],
)
def test_unusable_database_or_folder_is_named(
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
    value: str,
    arguments: tuple[str, ...],
    named: str,
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"neither folder nor database" * 100)
    monkeypatch.setenv(f"PYPI_ASSETS_{variable}", value.format(file=file))
    refusal = commands.refused(*arguments)
    assert named.format(file=file) in refusal
    assert "secret" not in refusal
    assert len(refusal.splitlines()) == 1


def test_database_lost_during_a_crawl_is_one_line(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")

    def spoil(request: Request) -> Response | None:
        if "/demo/" in request.url.path:
            for path in commands.home.glob("catalog.sqlite*"):
                path.write_bytes(b"garbage" * 1000)
        return None

    index.faults = spoil
    message = commands.refused("crawl", "full").splitlines()[-1]
    assert f"sqlite:///{commands.home}/catalog.sqlite" in message


def test_unknown_name_has_an_empty_answer_with_a_note(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    serial = str(index.serial)
    for arguments, named in {
        ("lookup", "module", "nope"): ["nope", serial],
        ("lookup", "dependents", "nope"): ["nope", serial],
        ("lookup", "project", "nope"): ["nope", serial],
        ("lookup", "project", "demo==9"): ["demo", "9", serial, "1.0"],
        ("lookup", "files", "nope"): ["nope"],
        ("history", "nope"): ["nope"],
        ("visits", "nope"): ["nope"],
        ("visits", "nope", "--compare", 1, 2): ["nope"],
        ("visits", "demo", "--compare", 1, 1): ["demo", "1"],
    }.items():
        result = commands.done(*arguments)
        assert (result.stdout, [value for value in named if value not in result.stderr]) == ("", []), arguments
        assert commands.json(*arguments) == []


def test_garbage_collector_runs_rarely() -> None:
    program = "import gc, pypi_assets.cli as of; of.cli = lambda **_: print(gc.get_threshold()[0]); of.main()"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert int(printed) > 5_000


def test_unexpected_exception_is_not_hidden(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pypi_assets.settings.load_settings", broken)
    with pytest.raises(ZeroDivisionError):
        commands.run("status")
