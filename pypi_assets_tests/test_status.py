"""The `to_do` lines of `status` report a lag, failures and unknown states, but not the normal lag of a busy index."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.responses import Response

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.reports.catalog_status import ExhaustedWork
from pypi_assets.cli import cli
from pypi_assets.settings import load_settings
from pypi_assets.status import Status, status_of, status_to_json
from pypi_assets_tests.cli.commands import commands_in
from pypi_assets_tests.served_index import ServedIndex, followed_index

LAG_WARN_S = 1_800

StatusAt = Callable[[float], Status]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ServedIndex]:
    """Serve an index with one wheel that is already in the LevelDB versions."""
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
    """Return a function that returns the status for a time of the catalog's clock (unix seconds)."""
    now = 0.0
    settings = load_settings()
    catalog = open_catalog(settings.resolved_database_url, lambda: now)

    def look(at: float) -> Status:
        nonlocal now
        now = at
        return status_of(catalog, settings)

    yield look
    catalog.close()


def test_stage_lags_if_an_old_event_is_missing(index: ServedIndex, status_at: StatusAt) -> None:
    assert status_at(2e9).to_do() == []  # an old last event causes a lag only if something is missing
    index.wheel("demo", "2.0")
    event_at = status_at(0).lag.lagging_since
    assert event_at is not None
    for command in ("crawl incremental", "dump incremental", "leveldb update"):
        assert status_at(event_at + LAG_WARN_S - 1).to_do() == []
        late = status_at(event_at + LAG_WARN_S)
        assert commands_in(*late.to_do()) == [command]
        in_json = status_to_json(
            late, running_since=[], expected_end=None, last_full_crawl=None, longest_unvisited=None
        )
        assert in_json["to_do"] == late.to_do()
        done(command)
    assert status_at(event_at + LAG_WARN_S).to_do() == []


def test_running_ranges_are_not_repeated_but_shown(index: ServedIndex, status_at: StatusAt) -> None:
    status = status_at(0)
    lag = replace(status.lag, index_serial=index.serial + 1, lagging_since=1_000.0, measured_at=1_000.0 + LAG_WARN_S)
    running = replace(status, lag=lag, catalog=replace(status.catalog, open_ranges=1, running_ranges=1))
    assert commands_in(*running.to_do()) == ["admin ranges"]
    assert replace(running, lag=replace(lag, measured_at=lag.measured_at - 1)).to_do() == []


def test_unknown_lag_is_reported(index: ServedIndex, status_at: StatusAt) -> None:
    index.faults = lambda request: Response(status_code=503)
    unknown = status_at(0)
    assert unknown.lag.seconds is None
    [line] = unknown.to_do()
    assert "503" in line
    silent = replace(unknown.lag, index_error=None)
    assert commands_in(*replace(unknown, lag=silent).to_do()) == ["crawl incremental"]
    lagging = replace(unknown, lag=replace(silent, index_serial=index.serial + 1))
    assert commands_in(*lagging.to_do()) == ["crawl incremental"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kinds", "is_shown"), [({"transient": 3, "visit": 1}, False), ({"transient": 4, "visit": 1}, True), ({}, False)]
)
def test_few_exhausted_reads_are_ignored(status_at: StatusAt, kinds: dict[str, int], is_shown: bool) -> None:
    status = status_at(0)
    exhausted = ExhaustedWork(kinds, known=1_000)  # the limit of 0.5 per cent is 5
    lines = replace(status, catalog=replace(status.catalog, exhausted=exhausted)).to_do()
    assert commands_in(" ".join(lines)) == (["failures list"] if is_shown else [])
    assert [re.findall(r"\d+", line) for line in lines] == ([["5"]] if is_shown else [])


def test_missing_containment_is_shown(index: ServedIndex, status_at: StatusAt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypi_assets.distributions.containment.kernel.version", lambda: 2)
    status = status_at(0)
    in_json = status_to_json(status, running_since=[], expected_end=None, last_full_crawl=None, longest_unvisited=None)
    missing = in_json["missing_containment"]
    assert [re.findall(r"\d+|TCP|signals", line) for line in missing] == [["TCP", "2", "4"], ["signals", "2", "6"]]
    assert missing[0] in " ".join(CliRunner().invoke(cli, ["status"]).stdout.split())
    required = replace(status, settings=status.settings.model_copy(update={"containment": "required"}))
    assert required.to_do() == []

    monkeypatch.setattr("pypi_assets.distributions.containment.layers.missing", lambda: "taken away")
    assert status.to_do() == []
    [line] = required.to_do()
    assert re.search(r"seccomp.*PYPI_ASSETS_CONTAINMENT=auto", line)
