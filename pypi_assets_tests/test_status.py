"""What `status` has to do: it lets an index that never rests be, and tells what is too late, too much or unknown."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.responses import Response

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.reports.exhausted_work import ExhaustedWork
from pypi_assets.cli import cli
from pypi_assets.settings import load_settings
from pypi_assets.status import Status, status_of, status_to_json
from pypi_assets_tests.served_index import ServedIndex, followed_index

CRAWL = "the catalog lags the index: run `pypi-assets crawl incremental`"
DUMP = "the dumps lag the catalog: run `pypi-assets dump incremental`"
BUILD = "the LevelDB versions lag the dumps: run `pypi-assets leveldb update`"
LAG_WARN_S = 1_800

StatusAt = Callable[[float], Status]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ServedIndex]:
    """An index with one wheel that has come to the LevelDB versions."""
    with followed_index(tmp_path, monkeypatch) as served:
        served.wheel("demo", "1.0")
        for command in ("crawl full", "dump full --shards 1", "leveldb update"):
            done(command)
        yield served


def done(command: str) -> None:
    result = CliRunner().invoke(cli, command.split(), catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.fixture
def status_at(index: ServedIndex) -> Iterator[StatusAt]:
    """How things stand when the catalog's clock tells a time (unix seconds)."""
    now = 0.0
    settings = load_settings()
    catalog = open_catalog(settings.resolved_database_url, lambda: now)

    def look(at: float) -> Status:
        nonlocal now
        now = at
        return status_of(catalog, settings)

    yield look
    catalog.close()


def test_a_stage_lags_once_it_lacks_an_old_event(index: ServedIndex, status_at: StatusAt) -> None:
    assert status_at(2e9).to_do() == []  # however old the last event is, nothing is missing
    index.wheel("demo", "2.0")
    event_at = status_at(0).lag.lagging_since
    assert event_at is not None
    for line, command in ((CRAWL, "crawl incremental"), (DUMP, "dump incremental"), (BUILD, "leveldb update")):
        assert status_at(event_at + LAG_WARN_S - 1).to_do() == []
        late = status_at(event_at + LAG_WARN_S)
        assert late.to_do() == [line]
        in_json = status_to_json(
            late, running_since=[], expected_end=None, last_full_crawl=None, longest_unvisited=None
        )
        assert in_json["to_do"] == [line]
        done(command)
    assert status_at(event_at + LAG_WARN_S).to_do() == []


def test_ranges_that_are_running_are_let_be_and_looked_at(index: ServedIndex, status_at: StatusAt) -> None:
    status = status_at(0)
    lag = replace(status.lag, index_serial=index.serial + 1, lagging_since=1_000.0, measured_at=1_000.0 + LAG_WARN_S)
    running = replace(status, lag=lag, catalog=replace(status.catalog, open_ranges=1, running_ranges=1))
    [line] = running.to_do()
    assert line == "the catalog lags the index: see `pypi-assets ranges` for the ranges that are running"
    assert replace(running, lag=replace(lag, measured_at=lag.measured_at - 1)).to_do() == []


def test_an_unknown_lag_is_not_well(index: ServedIndex, status_at: StatusAt) -> None:
    index.faults = lambda request: Response(status_code=503)
    unknown = status_at(0)
    assert unknown.lag.seconds is None
    [line] = unknown.to_do()
    assert line.startswith("the index's serial is not known: ")
    silent = replace(unknown.lag, index_error=None)
    assert replace(unknown, lag=silent).to_do() == [
        "it is not known how far the catalog lags the index: run `pypi-assets crawl incremental`"
    ]
    assert replace(unknown, lag=replace(silent, index_serial=index.serial + 1)).to_do() == [CRAWL]


@pytest.mark.parametrize(
    ("kinds", "is_shown"), [({"transient": 3, "visit": 1}, False), ({"transient": 4, "visit": 1}, True), ({}, False)]
)
def test_few_exhausted_reads_are_no_matter(status_at: StatusAt, kinds: dict[str, int], is_shown: bool) -> None:
    status = status_at(0)
    exhausted = ExhaustedWork(kinds, known=1_000)  # 0.5 per cent are 5
    lines = ["5 reads and visits are exhausted: see `pypi-assets failures list`"] if is_shown else []
    assert replace(status, catalog=replace(status.catalog, exhausted=exhausted)).to_do() == lines


def test_readers_that_this_system_cannot_contain_are_shown(
    index: ServedIndex, status_at: StatusAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypi_assets.distributions.containment.landlock.version", lambda: 2)
    status = status_at(0)
    in_json = status_to_json(status, running_since=[], expected_end=None, last_full_crawl=None, longest_unvisited=None)
    assert in_json["missing_containment"] == [
        "Landlock for TCP: the kernel has version 2 of Landlock, and version 4 is needed",
        "Landlock for signals: the kernel has version 2 of Landlock, and version 6 is needed",
    ]
    assert "not fully contained on this system: Landlock for TCP:" in " ".join(
        CliRunner().invoke(cli, ["status"]).stdout.split()
    )
    required = replace(status, settings=status.settings.model_copy(update={"containment": "required"}))
    assert required.to_do() == []

    monkeypatch.setattr("pypi_assets.distributions.containment.seccomp.missing", lambda: "taken away")
    assert status.to_do() == []
    assert required.to_do() == [
        "no distribution is read here, which lacks seccomp: set PYPI_ASSETS_CONTAINMENT=auto, or read on another system"
    ]
