"""Fixtures shared by the tests of the commands: their settings, and an index to crawl."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.served_index import ServedIndex, keep_readers, served_index


@dataclass(frozen=True)
class TwoVisits:
    """A project of two files that was visited in a full crawl, and again in the range up to `serial`."""

    first_file: str
    second_file: str
    baseline: int
    serial: int


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    clear_settings(monkeypatch)
    keep_readers(monkeypatch)
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    for name, value in {
        "HOME": str(home),
        "INDEX_URL": "http://127.0.0.1:9/simple/",  # no server listens there
        "REQUEST_ATTEMPTS": "1",
        "RETRY_DEADLINE_S": "0",
        "RETRY_PAUSE_S": "0.01",
        "REVISIT_SHARE": "0",  # otherwise one crawl in a hundred visits one more project
    }.items():
        monkeypatch.setenv(f"PYPI_ASSETS_{name}", value)
    return Commands(home)


@pytest.fixture
def index(commands: Commands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", served.url)
        yield served


@pytest.fixture
def two_visits(commands: Commands, index: ServedIndex) -> TwoVisits:
    """Visit `demo` twice. Between the visits, a broken wheel is uploaded and release 1.0 is yanked."""
    first = index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    baseline = index.serial
    second = index.raw("demo-2.0-py3-none-any.whl", b"no zip")
    index.history.yank("demo", "1.0")
    commands.done("crawl", "incremental")
    return TwoVisits(first, second, baseline, index.serial)
