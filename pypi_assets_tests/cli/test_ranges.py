"""`pypi-assets admin ranges`: the state of each range, and what is missing."""

import subprocess
import threading

import pytest
from starlette.requests import Request

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.forked import COMMAND_LINE, ForkedProgram
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_ranges_are_shown_with_what_is_missing(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    baseline = index.serial
    index.wheel("demo", "2.0")
    index.wheel("demo", "3.0")
    found = commands.json("admin", "ranges")
    assert [(row["range"], row["state"]) for row in found] == [
        (f"0-{baseline}", "complete"),
        (f"{baseline}-{index.serial}", "missing"),
    ]
    monkeypatch.setenv("PYPI_ASSETS_RANGE_EVENTS", "2")
    commands.done("crawl", "incremental")
    found = commands.json("admin", "ranges", "--all")
    assert [row["range"] for row in found[1:]] == [f"{baseline}-{baseline + 2}", f"{baseline + 2}-{index.serial}"]
    assert {row["state"] for row in found} == {"complete"}
    assert found[1]["projects"] == found[1]["visited"] == 1
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://127.0.0.1:9/simple/")
    assert unnamed(commands.done("admin", "ranges").stderr, "PYPI_ASSETS_INDEX_URL") == []


@pytest.mark.nightly
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

    def counts_of_the_last_range() -> dict[str, object]:
        row = commands.json("admin", "ranges")[-1]
        return {name: row[name] for name in ("state", "projects", "visited", "to_visit", "to_read")}

    index.faults = hold
    with ForkedProgram(COMMAND_LINE, "crawl", "incremental", stderr=subprocess.DEVNULL, strict=True) as process:
        assert reached.wait(120)
        counts = {"projects": 1, "visited": 1, "to_visit": 0, "to_read": 3}
        assert counts_of_the_last_range() == {"state": "running"} | counts
        status = commands.json("status")
        assert (status["open_ranges"], status["running_ranges"]) == (1, 1)
        assert unnamed(commands.done("status").stdout, "1") == []
        assert not any("crawl incremental" in line for line in status["to_do"])
        process.kill()
    killed.set()
    assert counts_of_the_last_range() == {"state": "interrupted"} | counts
    status = commands.json("status")
    assert (status["open_ranges"], status["running_ranges"]) == (1, 0)
    assert any("crawl incremental" in line for line in status["to_do"])
    commands.done("crawl", "incremental")
    assert counts_of_the_last_range() == {"state": "complete"} | counts | {"to_read": 0}
