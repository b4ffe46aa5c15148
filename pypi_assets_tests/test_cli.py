"""The pypi-assets command: the whole way through it, what it prints where, and what it says of what goes wrong."""

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pypi_assets.cli import INTERRUPTED, cli
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.served_index import ServedIndex, served_index

PROCESS = [sys.executable, "-W", "error", "-c", "from pypi_assets.cli import main; main()"]


@dataclass(frozen=True)
class Commands:
    """Runs commands in the environment of the test; they must not end in a traceback."""

    home: Path

    def run(self, *arguments: object) -> Result:
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def done(self, *arguments: object) -> Result:
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result

    def json(self, *arguments: object) -> Any:
        return json.loads(self.done(*arguments, "--json").stdout)

    def refused(self, *arguments: object, exit_code: int = 1) -> str:
        """The one message of a command that fails."""
        result = self.run(*arguments)
        assert result.exit_code == exit_code, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return result.stderr


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    for name, value in {
        "HOME": str(home),
        "INDEX_URL": "http://127.0.0.1:9/simple/",  # nobody answers there
        "REQUEST_ATTEMPTS": "1",
        "RETRY_DEADLINE_S": "0",
        "RETRY_PAUSE_S": "0.01",
    }.items():
        monkeypatch.setenv(f"PYPI_ASSETS_{name}", value)
    return Commands(home)


@pytest.fixture
def index(commands: Commands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", served.url)
        yield served


def test_lookups_go_back_to_a_serial(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", requires_dist=["other-pkg>=2"])
    first = index.serial
    commands.done("crawl", "full")
    index.wheel("demo", "2.0")
    index.wheel("other", "1.0", files={"demo_module/__init__.py": ""})
    index.history.remove_release("demo", "1.0")
    commands.done("crawl", "incremental")
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update")
    for question in (("module", "demo_module"), ("project", "demo"), ("project", "demo==1.0"), ("project", "other")):
        newest = commands.json("lookup", *question)
        assert commands.json("lookup", *question, "--at-serial", index.serial) == newest
    at_first = commands.done("lookup", "module", "demo_module", "--at-serial", first, "--json")
    assert json.loads(at_first.stdout) == [{"module": "demo_module", "project": "demo", "versions": ["1.0"]}]
    assert at_first.stderr == f"as of serial {first}, from the catalog\n"
    [then] = commands.json("lookup", "project", "Demo", "--at-serial", first)
    assert (then["filename"], then["requires_dist"]) == ("demo-1.0-py3-none-any.whl", ["other-pkg>=2"])
    nothing = commands.done("lookup", "project", "other", "--at-serial", first)
    assert (nothing.stdout, nothing.stderr) == ("", f"no distribution of other is known as of serial {first}\n")
    for serial in (0, index.serial + 1):
        message = commands.refused("lookup", "module", "demo_module", "--at-serial", serial)
        assert f"nothing can be told of serial {serial}, only of serials {first} to {index.serial}" in message


def every_command(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))
        else:
            yield (*path, name), command


def test_the_whole_way_from_an_index_to_answers_and_on_to_new_answers(
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
    assert before["leveldbs"] == {name: {"version": None, "serial": None} for name in ("modules", "depgraph")}
    assert before["to_do"] == ["nothing has been crawled: run `pypi-assets crawl full`"]

    crawled = commands.run("crawl", "full", "--json")
    assert crawled.exit_code == 0
    assert json.loads(crawled.stdout)["projects"] == 4
    assert "distributions that could not be read: 1; see `pypi-assets failures list`" in crawled.stderr
    dumping = commands.done("dump", "full", "--shards", "16", "--json")
    assert dumping.stderr.splitlines()[-1] == "shards: 16 of 16"
    dumped = json.loads(dumping.stdout)
    assert [(dump["range"], dump["shards"], dump["rows"]) for dump in dumped] == [(f"0-{first}", 16, 5)]
    built = commands.json("leveldb", "update")
    assert [(one["dataset"], one["version"], one["serial"]) for one in built] == [
        ("modules", 1, first),
        ("depgraph", 1, first),
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
    assert "all is well" in commands.done("status").stdout

    index.wheel("demo", "2.0")
    index.history.yank("demo", "1.0")
    index.history.remove_project("Other.Pkg")
    behind = commands.json("status")
    assert behind["lag"] == index.serial - first
    assert behind["to_do"] == ["the catalog is behind the index: run `pypi-assets crawl incremental`"]
    followed = commands.json("crawl", "incremental")
    assert followed["complete_serial"] == index.serial
    assert [one["range"] for one in followed["ranges"]] == [f"{first}-{index.serial}"]
    assert [dump["range"] for dump in commands.json("dump", "incremental")] == [f"{first}-{index.serial}"]
    assert commands.json("leveldb", "update", "--dataset", "modules")[0]["base_version"] == 1
    assert commands.json("leveldb", "update", "--dataset", "depgraph")[0]["base_version"] == 1
    assert commands.json("lookup", "module", "demo_module") == [
        {"module": "demo_module", "project": "demo", "versions": ["1.0", "2.0"]}
    ]
    assert commands.json("lookup", "module", "other_pkg_module") == []
    assert [row["yanked"] for row in commands.json("lookup", "project", "demo")] == [True, True, False]
    listed = commands.json("leveldb", "list")
    assert [(one["dataset"], one["version"]) for one in listed] == [
        ("modules", 1),
        ("modules", 2),
        ("depgraph", 1),
        ("depgraph", 3),
    ]
    assert all(one["ok"] for one in commands.json("leveldb", "verify", "--deep"))
    after = commands.json("status")
    assert (after["leveldbs"]["modules"], after["to_do"]) == ({"version": 2, "serial": index.serial}, [])

    then = {file["filename"] for file in commands.json("files", "--at-serial", first)}
    now = commands.json("files")
    assert then - {file["filename"] for file in now} == {"other_pkg-2.0-py3-none-any.whl"}
    assert [file["filename"] for file in now if file["yanked"]] == ["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"]
    assert {"filename", "project", "version", "kind", "sha256", "yanked"} <= set(now[0])


def test_what_is_done_already_is_said_and_not_done_again(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    for arguments in (("crawl", "full"), ("dump", "full", "--shards", "1"), ("leveldb", "update")):
        commands.done(*arguments)
    assert commands.done("crawl", "incremental").stdout == (
        f"nothing is new: the catalog is complete up to serial {index.serial}\n"
    )
    assert commands.done("dump", "incremental").stderr == "every complete range is dumped\n"
    assert commands.done("leveldb", "update").stdout == (
        "modules: nothing is new since version 1\ndepgraph: nothing is new since version 1\n"
    )
    assert commands.json("dump", "incremental") == []


def test_parquet_is_exported_once_and_then_pointed_to(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "run `pypi-assets dump full` first" in commands.refused("dump", "parquet")
    index.wheel("demo", "1.0")
    index.sdist("demo", "1.0")
    commands.done("crawl", "full")
    commands.done("dump", "full", "--shards", "1")
    folder = f"{(commands.home / 'storage').as_uri()}/parquet/python_distribution_data"
    exported = commands.json("dump", "parquet")
    assert exported.pop("bytes") > 1_000
    name = f"0-{index.serial}"
    assert exported == {
        "serial": index.serial,
        "directory": name,
        "published": True,
        "rows": 2,
        "cover": [name],
        "files": f"{folder}/{name}/*.parquet",
    }
    again = commands.done("dump", "parquet")
    assert re.fullmatch(rf"parquet {name}: 2 rows in 1 files, \d+ bytes, {folder}/{name}/\*\.parquet\n", again.stdout)
    assert again.stderr == "nothing is new since that export\n"
    assert commands.json("dump", "parquet", "--force")["directory"] == f"{name}.2"
    assert commands.json("dump", "clean") == []
    monkeypatch.setenv("PYPI_ASSETS_PARQUET_EXPORTS_KEPT", "1")
    monkeypatch.setenv("PYPI_ASSETS_SUPERSEDED_KEPT_HOURS", "0")
    [removed] = commands.json("dump", "clean")
    assert (removed["path"], removed["reason"]) == (f"parquet/python_distribution_data/{name}", "superseded")
    assert commands.json("dump", "parquet")["directory"] == f"{name}.2"


def test_an_index_without_a_changelog_is_followed_by_its_list(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    baseline = index.serial
    assert commands.json("status")["changelog_off"] is False
    index.wheel("demo", "2.0")
    index.faults = lambda request: PlainTextResponse("", 404) if request.url.path == "/pypi" else None
    followed = commands.done("crawl", "incremental")
    assert f"range {baseline}-{index.serial}: no events, but the list, 1 projects visited" in followed.stdout
    assert "the changelog is off, so the list of projects is followed" in followed.stderr
    status = commands.json("status")
    assert (status["changelog_off"], status["lag"], status["index_error"]) == (True, 0, None)
    assert status["inexact_spans"] == [f"{baseline}-{index.serial}"]
    assert any("the changelog is off" in line for line in status["to_do"])
    [_, listed] = commands.json("ranges", "--all")
    assert (listed["lister"], listed["exact_from"]) == ("simple", index.serial)
    assert "their single events are not known" in commands.done("ranges").stderr
    assert len(commands.json("files", "--at-serial", index.serial)) == 2
    assert "nothing can be told of serial" in commands.refused("files", "--at-serial", index.serial - 1)


def test_an_audit_says_what_drift_it_found(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    assert commands.json("audit", "--share", 0)["visited"] == 0
    index.history.archive("demo")
    found = commands.done("audit", "--share", 100).stdout
    assert found == f"audit at serial {index.serial}: 1 projects visited, 1 status changed\n  status changed: demo\n"
    again = commands.json("audit", "--share", 100)
    assert (again["drift"], again["share_percent"], again["visits_given_up"]) == ({}, 100, 0)


def test_ranges_are_shown_with_what_is_missing(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    baseline = index.serial
    index.wheel("demo", "2.0")
    index.wheel("demo", "3.0")
    found = commands.json("ranges")
    assert [(row["range"], row["state"]) for row in found] == [
        (f"0-{baseline}", "complete"),
        (f"{baseline}-{index.serial}", "missing"),
    ]
    monkeypatch.setenv("PYPI_ASSETS_RANGE_EVENTS", "2")
    commands.done("crawl", "incremental")
    found = commands.json("ranges", "--all")
    assert [row["range"] for row in found[1:]] == [f"{baseline}-{baseline + 2}", f"{baseline + 2}-{index.serial}"]
    assert {row["state"] for row in found} == {"complete"}
    assert found[1]["projects"] == found[1]["visited"] == 1
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://127.0.0.1:9/simple/")
    assert "set PYPI_ASSETS_INDEX_URL back" in commands.done("ranges").stderr


def test_a_range_is_running_until_its_process_is_killed(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_LAG_WARN_S", "0.001")
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    for version in ("2.0", "3.0", "4.0"):
        index.wheel("demo", version)
    reached, killed = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        if "/packages/" in request.url.path and not killed.is_set():
            reached.set()
            killed.wait(120)

    def told() -> dict[str, object]:
        row = commands.json("ranges")[-1]
        return {name: row[name] for name in ("state", "projects", "visited", "to_visit", "to_read")}

    index.faults = hold
    with subprocess.Popen([*PROCESS, "crawl", "incremental"], stderr=subprocess.DEVNULL) as process:
        assert reached.wait(120)
        counts = {"projects": 1, "visited": 1, "to_visit": 0, "to_read": 3}
        assert told() == {"state": "running"} | counts
        status = commands.json("status")
        assert (status["open_ranges"], status["running_ranges"]) == (1, 1)
        assert "open ranges: 1, running: 1" in commands.done("status").stdout
        assert not any("crawl incremental" in line for line in status["to_do"])
        process.kill()
    killed.set()
    assert told() == {"state": "interrupted"} | counts
    status = commands.json("status")
    assert (status["open_ranges"], status["running_ranges"]) == (1, 0)
    assert any("crawl incremental" in line for line in status["to_do"])
    commands.done("crawl", "incremental")
    assert told() == {"state": "complete"} | counts | {"to_read": 0}


def test_a_project_has_a_story_and_visits(commands: Commands, index: ServedIndex) -> None:
    first = index.wheel("Demo", "1.0")
    commands.done("crawl", "full")
    baseline = index.serial
    broken = index.raw("demo-2.0-py3-none-any.whl", b"no zip")
    index.history.yank("demo", "1.0")
    commands.done("crawl", "incremental")
    told = [line.split("\t") for line in commands.done("history", "demo").stdout.splitlines()]
    assert [(serial, what, live, away) for serial, _, what, live, away in told] == [
        (str(baseline), f"there since before the first known event: {first}", "+1", ""),
        (str(baseline), f"visit 1 (crawl:1): full, page of serial {baseline}, 1 files", "", ""),
        (str(index.serial - 1), f"{broken} uploaded: error: corrupt archive", "+1", ""),
        (str(index.serial), "release 1.0 yanked; 1 files yanked", "", ""),
        (
            str(index.serial),
            f"visit 2 (range:{baseline}-{index.serial}): full, page of serial {index.serial}, 2 files",
            "",
            "",
        ),
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told[-1][1])
    story = commands.json("history", "demo")
    assert [(entry["kind"], entry["live"]) for entry in story if entry["live"]] == [
        ("baseline", [first]),
        ("add file", [broken]),
    ]
    ignored = [entry for entry in commands.json("history", "demo", "--all") if entry not in story]
    assert {(entry["kind"], entry["text"]) for entry in ignored} == {("ignored", "new release")}
    visits = commands.json("visits", "demo")
    assert [(one["visit"], one["outcome"], one["files"]) for one in visits] == [(1, "full", 1), (2, "full", 2)]
    assert commands.done("visits", "demo").stdout.startswith(f"1\tcrawl:1\t1\t{visits[0]['started_at']}\tfull\t")
    differences = commands.json("visits", "demo", "--compare", 1, 2)
    assert [(one["filename"], one["change"]) for one in differences] == [(first, "yanked"), (broken, "came")]
    message = commands.refused("visits", "demo", "--compare", 1, 7)
    assert message == "Error: Demo has no visit 7; see `pypi-assets visits Demo`\n"


def test_dumps_that_the_catalog_has_forgotten_are_entered_again(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    commands.done("dump", "full", "--shards", "1")
    with closing(sqlite3.connect(commands.home / "catalog.sqlite")) as database, database:
        database.execute("DELETE FROM dump_files")
        database.execute("DELETE FROM dumps")
    assert "no full dump" in commands.refused("leveldb", "update")
    assert commands.json("dump", "restore") == {"restored": [f"0-{index.serial}"], "damaged": []}
    commands.done("leveldb", "update")
    manifest = commands.home / "storage/data_dumps/python_distribution_data" / f"0-{index.serial}" / "_MANIFEST.json"
    manifest.write_text("{}")
    result = commands.run("dump", "restore")
    assert (result.exit_code, f"0-{index.serial}" in result.stderr) == (1, True)


def test_elsewhere_than_on_a_terminal_lines_are_plain(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", requires_dist=["a", "b"])
    assert commands.done("crawl", "full").stderr == "listing: 1 of 1\nvisits: 1 of 1\nreads: 1 of 1\n"
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update")
    filename = "demo-1.0-py3-none-any.whl"
    assert commands.done("files").stdout == f"{filename}\tdemo\t1.0\twheel\tno\tdata\t{index.serial}\n"
    assert commands.done("lookup", "module", "demo_module").stdout == "demo\t1.0\n"
    assert commands.done("lookup", "project", "demo").stdout == f"{filename}\t1.0\t-\tno\ta, b\n"


def test_on_a_terminal_there_are_tables_and_bars(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    assert "visits" in on_a_terminal("crawl", "full")
    shown = on_a_terminal("files")
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
                except OSError:  # what a terminal says when the other side has closed it
                    break
    assert process.returncode == 0, output
    return output.decode()


def test_what_an_index_says_cannot_play_with_the_terminal(commands: Commands, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", summary="x", requires_dist=["evil\x1b[2Jname ; broken"])
    shown = commands.done("inspect", wheel).stdout
    assert "\x1b" not in shown
    assert "evil" in shown


def test_inspect_prints_the_record_of_each_file(commands: Commands, tmp_path: Path) -> None:
    files = [
        make_wheel(tmp_path, "demo", "1.0", requires_dist=["a>=1"], requires_python=">=3.8"),
        make_sdist(tmp_path, "demo", "1.0"),
        make_egg(tmp_path, "demo", "1.0"),
        tmp_path / "broken-1.0-py3-none-any.whl",
    ]
    files[-1].write_bytes(b"no zip")
    records = commands.json("inspect", *files)
    assert [record["kind"] for record in records] == ["wheel", "sdist", "egg", "wheel"]
    wheel, broken = records[0], records[-1]
    assert {key: wheel[key] for key in ("filename", "project", "version", "yanked", "requires_dist", "error")} == {
        "filename": files[0].name,
        "project": "demo",
        "version": "1.0",
        "yanked": False,
        "requires_dist": ["a>=1"],
        "error": None,
    }
    assert (wheel["requires_python"], wheel["modules"], len(wheel["sha256"])) == (">=3.8", ["demo"], 64)
    assert broken["error"]["kind"] == "corrupt archive"
    assert "error           corrupt archive: " in commands.done("inspect", files[-1]).stdout


def test_inspect_tells_of_a_file_that_is_not_there(commands: Commands, tmp_path: Path) -> None:
    assert "does not exist" in commands.refused("inspect", tmp_path / "none.whl", exit_code=2)


def test_records_are_made_anew_and_shown_without_the_index(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = index.wheel("demo", "1.0", requires_dist=["a>=1"])
    told = commands.done("crawl", "full").stdout
    assert re.search(r"distributions: 1 read \(\d{3,} bytes fetched, \d+ requests, \d+\.\d s\)", told)
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "https://index.example.org/simple/")  # for which a contact is missing

    assert commands.json("reprocess")["looked_at"] == 0
    again = commands.done("reprocess", "--older-than-version", EXTRACTOR_VERSION + 1, "--project", "Demo")
    assert re.match(r"1 records made anew in \d+\.\d s, 0 of them changed", again.stdout)
    assert "knows no project none" in commands.refused("reprocess", "--project", "none")

    [record] = commands.json("inspect", "--from-extract", wheel)
    assert (record["requires_dist"], record["modules"], record["of_project"]) == (["a>=1"], ["demo_module"], "demo")
    assert record["offset"] > 0
    assert 0 < record["extract_bytes"] < 4_000
    shown = commands.done("inspect", "--from-extract", wheel, "--project", "demo").stdout
    assert record["pack"] in shown
    assert "no extract of demo-2.0.tar.gz is stored" in commands.refused("inspect", "--from-extract", "demo-2.0.tar.gz")
    assert "only with --from-extract" in commands.refused("inspect", wheel, "--project", "demo", exit_code=2)

    assert commands.done("extracts", "clean").stdout == "0 of 1 packs deleted, 0 bytes\n"
    assert commands.json("extracts", "clean", "--dry-run") == {"packs": 1, "deleted": [], "size": 0}


def test_failures_are_listed_and_can_be_tried_again(commands: Commands, index: ServedIndex) -> None:
    assert commands.done("failures", "list").stderr == "nothing has failed\n"
    index.wheel("demo", "1.0")
    index.wheel("hidden", "1.0")
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")

    def faults(request: Request) -> Response | None:
        return Response(status_code=503) if "demo-1.0" in request.url.path or "/hidden/" in request.url.path else None

    index.faults = faults
    crawled = commands.done("crawl", "full")
    assert "distributions that could not be read: 2;" in crawled.stderr
    assert "projects that could not be visited: 1;" in crawled.stderr
    status = commands.json("status")
    assert (status["failed"], status["gave_up"], status["failed_visits"]) == (2, 1, 1)
    assert status["to_do"][0] == "2 reads and visits were given up: see `pypi-assets failures list`"
    assert "1 gave up" in commands.done("status").stdout
    assert ", 1 given up, longest unvisited" in commands.done("status").stdout
    listed = commands.json("failures", "list")
    assert listed["failures"] is None
    assert [(group["kind"], group["count"], group["outcomes"]) for group in listed["groups"]] == [
        ("corrupt archive", 1, {"error": 1}),
        ("transient", 1, {"gave up": 1}),
        ("visit", 1, {"gave up": 1}),
    ]
    assert [group["examples"][0]["project"] for group in listed["groups"]] == ["broken", "demo", "hidden"]
    assert commands.done("failures", "list").stdout.startswith(
        "corrupt archive\t1\t1\t0\t0\tbroken-1.0-py3-none-any.whl"
    )
    [demo] = commands.json("failures", "list", "--kind", "transient")["failures"]
    assert (demo["filename"], demo["attempts_remaining"], demo["next_due"]) == ("demo-1.0-py3-none-any.whl", 0, None)
    assert demo["attempts"] >= 1
    assert "503" in demo["text"]
    [hidden] = commands.json("failures", "list", "--project", "Hidden", "--kind", "visit")["failures"]
    assert (hidden["project"], hidden["filename"]) == ("hidden", "")
    assert "hidden\t" in commands.done("failures", "list", "--project", "hidden").stdout
    assert "nothing of that has failed" in commands.done("failures", "list", "--kind", "gone").stderr
    nothing = commands.done("failures", "retry", "--kind", "gone")
    assert nothing.stderr.startswith("nothing of that has failed; see `pypi-assets failures list`")
    assert commands.json("failures", "retry", "--project", "Broken")["reads"]["errors"] == 1
    index.faults = None
    again = commands.json("failures", "retry")
    assert (again["retried_reads"], again["retried_visits"], again["visits_given_up"]) == (2, 1, 0)
    assert (again["reads"]["data"], again["reads"]["errors"]) == (2, 1)
    assert [group["kind"] for group in commands.json("failures", "list")["groups"]] == ["corrupt archive"]
    assert len(commands.json("files", "--project", "hidden")) == 1


def test_a_visit_whose_retry_was_killed_is_done_by_the_next_one(commands: Commands, index: ServedIndex) -> None:
    index.wheel("hidden", "1.0")
    index.faults = lambda request: Response(status_code=503) if "/hidden/" in request.url.path else None
    commands.done("crawl", "full")

    def kill(request: Request) -> Response | None:
        if "/hidden/" in request.url.path:
            os.kill(process.pid, signal.SIGKILL)
        return None

    index.faults = kill
    process = subprocess.Popen([*PROCESS, "failures", "retry"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.wait(timeout=120) == -signal.SIGKILL
    index.faults = None
    assert commands.json("failures", "retry")["retried_visits"] == 1
    assert commands.json("status")["read"] == 1


def test_ctrl_c_says_that_running_again_goes_on(commands: Commands, index: ServedIndex) -> None:
    for number in range(20):
        index.wheel(f"demo{number}", "1.0")
    asked = threading.Event()
    stopped = threading.Event()

    def hold(request: Request) -> Response | None:
        if request.url.path.endswith("/demo5/"):
            asked.set()
            stopped.wait(timeout=120)
        return None

    index.faults = hold
    with subprocess.Popen(
        [*PROCESS, "crawl", "full"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert asked.wait(timeout=120)
        process.send_signal(signal.SIGINT)
        stopped.set()
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (INTERRUPTED, "")
    assert errors.splitlines()[-1].startswith("Stopped. What was done is kept; run the same command again")
    assert "Traceback" not in errors
    index.faults = None
    opened = commands.json("status")["open_crawl"]
    assert (opened["serial"], opened["projects"]) == (index.serial, 20)
    assert "full crawl" in commands.done("status").stdout
    assert commands.json("crawl", "full")["complete_serial"] == index.serial
    assert commands.json("status")["read"] == 20


def test_a_second_ctrl_c_does_not_wait(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    asked = threading.Event()
    released = threading.Event()

    def hold(request: Request) -> Response | None:
        if request.url.path.endswith("/demo/"):
            asked.set()
            released.wait(timeout=120)
        return None

    index.faults = hold
    with subprocess.Popen([*PROCESS, "crawl", "full"], stderr=subprocess.PIPE, text=True) as process:
        assert asked.wait(timeout=120)
        while process.poll() is None:  # a signal that comes on the heels of another can be lost
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
        assert not released.is_set()
        released.set()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED
    assert errors.splitlines()[-1].startswith("Stopped. ")
    assert "Traceback" not in errors
    assert commands.json("crawl", "full")["reads"]["data"] == 1


def test_the_tables_of_a_catalog_are_made_and_then_up_to_date(commands: Commands) -> None:
    assert "had no tables" in commands.done("migrate").output
    migrated = commands.json("migrate")
    assert migrated["before"] == migrated["after"]
    assert f"has schema {migrated['after']}, and is up to date" in commands.done("migrate").output


def test_a_reader_that_has_had_enough_is_no_error(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    with subprocess.Popen([*PROCESS, "files", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("path", "command"), [(" ".join(path), command) for path, command in every_command()])
def test_every_command_has_help_with_an_example(path: str, command: click.Command) -> None:
    result = CliRunner().invoke(cli, [*path.split(), "--help"])
    assert result.exit_code == 0
    assert f"Example: pypi-assets {path}" in result.output
    assert command.help


def test_the_commands_are_these() -> None:
    assert {" ".join(path) for path, _ in every_command() if path[0] != "devindex"} == {
        "status",
        "metrics",
        "crawl full",
        "crawl incremental",
        "dump full",
        "dump incremental",
        "dump redo",
        "dump compact",
        "dump clean",
        "dump parquet",
        "dump restore",
        "leveldb update",
        "leveldb list",
        "leveldb verify",
        "lookup module",
        "lookup project",
        "lookup dependents",
        "files",
        "history",
        "visits",
        "ranges",
        "failures list",
        "failures retry",
        "audit",
        "reprocess",
        "extracts clean",
        "inspect",
        "migrate",
    }
    assert ("devindex", "serve") in {path for path, _ in every_command()}


def test_an_index_that_does_not_answer(commands: Commands) -> None:
    status = commands.run("status", "--json")
    assert (status.exit_code, json.loads(status.stdout)["index_serial"]) == (0, None)
    assert "the index's serial is not known: " in status.stderr
    assert "http://127.0.0.1:9/pypi" in json.loads(status.stdout)["index_error"]
    assert "Connection refused (http://127.0.0.1:9/pypi)" in commands.refused("crawl", "full")


def test_a_host_that_nobody_knows(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://index.invalid/simple/")
    monkeypatch.setenv("PYPI_ASSETS_CONTACT", "me@example.org")
    message = commands.refused("crawl", "full")
    assert "the host's name cannot be resolved; check the network and the URL (http://index.invalid/pypi)" in message


def test_an_index_elsewhere_without_a_contact(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "https://index.example.org/simple/")
    assert "PYPI_ASSETS_CONTACT is not set" in commands.refused("crawl", "full", exit_code=2)
    assert not commands.home.exists()
    assert "PYPI_ASSETS_CONTACT is not set" in commands.json("status")["index_error"]


def test_wrong_settings_are_all_told(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", "mysql://localhost/catalog")
    monkeypatch.setenv("PYPI_ASSETS_MAX_CONNECTIONS", "none")
    message = commands.refused("status", exit_code=2)
    assert "PYPI_ASSETS_DATABASE_URL: neither sqlite:///... nor postgresql://..." in message
    assert "PYPI_ASSETS_MAX_CONNECTIONS: " in message


BEFORE_A_CRAWL = {
    ("crawl", "incremental"): "no full crawl is complete yet: run `pypi-assets crawl full` first",
    ("dump", "full"): "run a full crawl first",
    ("dump", "incremental"): "there is no full dump for ranges to follow: run `pypi-assets dump full` first",
    ("dump", "redo"): "run a full crawl first",
    ("dump", "clean"): "the catalog is empty: run a full crawl first (pypi-assets crawl full)",
    ("dump", "compact"): "the catalog is empty: run a full crawl first (pypi-assets crawl full)",
    ("leveldb", "update"): "there is no full dump to build from: run `pypi-assets dump full` first",
    ("leveldb", "verify"): "run `pypi-assets leveldb update`",
    ("lookup", "module", "demo"): "run `pypi-assets leveldb update`",
    ("files",): "no full crawl is complete yet, so nothing can be told: run `pypi-assets crawl full`",
    ("failures", "retry"): "no full crawl is complete yet: run `pypi-assets crawl full` first",
}


@pytest.mark.parametrize("arguments", BEFORE_A_CRAWL)
def test_before_a_full_crawl_it_is_said_what_to_do_first(
    commands: Commands, index: ServedIndex, arguments: tuple[str, ...]
) -> None:
    commands.done("status")
    assert BEFORE_A_CRAWL[arguments] in commands.refused(*arguments)


@pytest.mark.parametrize(
    ("variable", "value", "arguments", "message"),
    [
        ("HOME", "{file}/below", ("files",), "cannot make the folder of"),
        ("DATABASE_URL", "postgresql://me:secret@127.0.0.1:9/catalog", ("files",), "check PYPI_ASSETS_DATABASE_URL"),
        ("DATABASE_URL", "sqlite:///{file}", ("files",), "file is not a database; check PYPI_ASSETS_DATABASE_URL"),
        ("STORAGE_URL", "file://{file}/below", ("dump", "full"), "cannot open the storage folder"),
        ("STORAGE_URL", "file://{file}/below", ("leveldb", "list"), "there is no storage folder"),
    ],
)
def test_a_database_or_a_folder_that_cannot_be_used(
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
    value: str,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"neither folder nor database" * 100)
    monkeypatch.setenv(f"PYPI_ASSETS_{variable}", value.format(file=file))
    refusal = commands.refused(*arguments)
    assert message in refusal
    assert "secret" not in refusal
    assert len(refusal.splitlines()) == 1


def test_a_database_that_goes_away_is_one_clear_line(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")

    def spoil(request: Request) -> Response | None:
        if "/demo/" in request.url.path:
            for path in commands.home.glob("catalog.sqlite*"):
                path.write_bytes(b"garbage" * 1000)
        return None

    index.faults = spoil
    message = commands.refused("crawl", "full").splitlines()[-1]
    assert message.startswith("Error: the database failed: ")


def test_a_catalog_of_another_index(commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://127.0.0.1:9/simple/")
    monkeypatch.setenv("PYPI_ASSETS_CHANGELOG_URL", index.url.replace("/simple/", "/pypi"))
    assert f"this catalog follows {index.url}, not http://127.0.0.1:9/simple/" in commands.refused(
        "crawl", "incremental"
    )
    assert f"the catalog follows {index.url}" in commands.json("status")["index_error"]


def test_selected_projects_that_the_index_does_not_have_are_told(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    index.wheel("other", "1.0")
    monkeypatch.setenv("PYPI_ASSETS_PROJECTS", "Demo, missing")
    crawled = commands.done("crawl", "full", "--json")
    assert json.loads(crawled.stdout)["missing_projects"] == ["missing"]
    assert "not on the index: missing" in crawled.stderr
    assert [file["project"] for file in commands.json("files")] == ["demo"]


def test_lookups_by_prefix_and_of_many_names(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", requires_dist=["base>=1", "Base.Two; extra == 'x'"])
    index.wheel("demo-two", "2.0", requires_dist=["base"])
    index.wheel("other", "1.0")
    for arguments in (("crawl", "full"), ("dump", "full", "--shards", "1"), ("leveldb", "update")):
        commands.done(*arguments)
    serial = index.serial

    found = commands.json("lookup", "module", "demo", "--prefix")
    assert [one["module"] for one in found] == ["demo_module", "demo_two_module"]
    assert commands.done("lookup", "module", "demo", "--prefix", "--limit", 1).stdout == "demo_module\tdemo\t1.0\n"
    found = commands.json("lookup", "project", "Demo_", "--prefix")
    assert [one["filename"] for one in found] == ["demo_two-2.0-py3-none-any.whl"]
    shown = commands.done("lookup", "dependents", "base", "--prefix").stdout.splitlines()
    assert shown == ["base\tdemo\t1.0\t\t", "base\tdemo-two\t2.0\t\t", "base-two\tdemo\t\t\t1.0"]
    nothing = commands.done("lookup", "module", "nope", "--prefix")
    assert (nothing.stdout, nothing.stderr) == ("", f"no module begins with nope as of serial {serial}\n")

    def answered(*arguments: object, names: bytes) -> list[dict[str, Any]]:
        result = CliRunner().invoke(cli, ["lookup", *map(str, arguments)], input=names, catch_exceptions=False)
        assert result.exit_code == 0
        return [json.loads(line) for line in result.stdout.splitlines()]

    one, other = answered("module", "-", names=b"demo_module\n\n  nope\n")
    assert (one["name"], one["version"], one["serial"]) == ("demo_module", 1, serial)
    assert one["results"] == commands.json("lookup", "module", "demo_module")
    assert (other["name"], other["results"]) == ("nope", [])
    first, wrong, last = answered("project", "-", names=b"demo==1\ndemo>=1\nother")
    assert [len(one["results"]) for one in (first, last)] == [1, 1]
    assert (wrong["name"], "NAME==VERSION" in wrong["error"]) == ("demo>=1", True)
    [then] = answered("project", "-", "--at-serial", serial, names=b"demo")
    assert then["results"] == first["results"]
    assert then["version"] is None
    assert [len(one["results"]) for one in answered("dependents", "-", names=b"base\n\xff")] == [2, 0]
    assert len(answered("dependents", "-", "--limit", 1, names=b"base")[0]["results"]) == 1

    for wrong_usage in (("-", "--prefix"), ("demo", "--prefix", "--at-serial", serial)):
        assert "--prefix goes neither" in commands.refused("lookup", "module", *wrong_usage, exit_code=2)


def answered(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    for arguments in (("crawl", "full"), ("dump", "full", "--shards", "1"), ("leveldb", "update")):
        commands.done(*arguments)


def test_what_is_unknown_is_an_empty_answer_with_a_clear_sentence(commands: Commands, index: ServedIndex) -> None:
    answered(commands, index)
    serial = index.serial
    for arguments, sentence in {
        ("lookup", "module", "nope"): f"no project provides the module nope as of serial {serial}",
        ("lookup", "dependents", "nope"): f"no project requires nope as of serial {serial}",
        ("lookup", "project", "nope"): f"no distribution of nope is known as of serial {serial}",
        ("lookup", "project", "demo==9"): f"no distribution of demo in version 9 is known as of serial {serial}",
        ("files", "--project", "nope"): "the catalog knows no project nope",
        ("history", "nope"): "the catalog knows no project nope",
        ("visits", "nope"): "the catalog knows no project nope",
        ("visits", "nope", "--compare", 1, 2): "the catalog knows no project nope",
        ("visits", "demo", "--compare", 1, 1): "visits 1 and 1 of demo saw the same files",
    }.items():
        result = commands.done(*arguments)
        assert (result.stdout, result.stderr) == ("", f"{sentence}\n")
        assert commands.json(*arguments) == []


@pytest.mark.parametrize("what", ["module", "project", "dependents"])
def test_a_lookup_without_a_name_is_wrong_usage(commands: Commands, what: str) -> None:
    for name in ("", " "):
        assert "name is empty" in commands.refused("lookup", what, name, exit_code=2)


@pytest.mark.parametrize("requirement", ["demo>=1", "demo==", "demo==1,<2", "-demo", "demo[extra]"])
def test_what_is_no_project_with_a_version_is_wrong_usage(commands: Commands, requirement: str) -> None:
    assert "NAME==VERSION" in commands.refused("lookup", "project", "--", requirement, exit_code=2)


def test_serials_that_cannot_be_told_of_name_those_that_can(commands: Commands, index: ServedIndex) -> None:
    answered(commands, index)
    serial = index.serial
    for asked in (serial - 1, serial + 1):
        message = f"Error: nothing can be told of serial {asked}, only of serials {serial} to {serial}\n"
        assert commands.refused("files", "--at-serial", asked) == message


def test_a_damaged_version_fails_to_verify_and_is_listed_as_such(commands: Commands, index: ServedIndex) -> None:
    answered(commands, index)
    for path in (commands.home / "storage" / "modules" / "leveldbs").rglob("*.ldb"):
        path.chmod(0o644)
        path.write_bytes(b"")
    result = commands.run("leveldb", "verify", "--json")
    assert result.exit_code == 1
    assert {one["dataset"]: one["ok"] for one in json.loads(result.stdout)} == {"modules": False, "depgraph": True}
    assert "modules version 1: " in result.stderr
    assert "run `pypi-assets leveldb update`" in commands.refused("lookup", "module", "demo_module")
    assert commands.json("leveldb", "update")[0]["version"] == 2
    assert len(commands.json("lookup", "module", "demo_module")) == 1


def test_what_is_not_expected_is_not_hidden(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pypi_assets.cli.status.load_settings", broken)
    with pytest.raises(ZeroDivisionError):
        commands.run("status")
