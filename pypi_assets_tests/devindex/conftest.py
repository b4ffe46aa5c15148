"""Histories of small indexes, served indexes, and a session for their pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets_tests.builders import make_sdist, make_wheel


@pytest.fixture
def served_history(tmp_path: Path) -> History:
    history = History(tmp_path / "index")
    history.add(make_wheel(tmp_path, "Demo", "1.0", requires_python=">=3.8,<4", requires_dist=["other>1"], summary="A"))
    history.add(make_sdist(tmp_path, "Demo", "1.0"))
    return history


@pytest.fixture
def url(served_history: History) -> Iterator[str]:
    with running(served_history.folder) as url:
        yield url


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "index")


@pytest.fixture
def demo(history: History, tmp_path: Path) -> History:
    """Return a history with Demo 1.0 as a wheel and an sdist."""
    history.add(make_wheel(tmp_path, "Demo", "1.0"))
    history.add(make_sdist(tmp_path, "Demo", "1.0"))
    return history


@pytest.fixture
def two_projects(tmp_path: Path) -> History:
    """Return a history with these serials: 1 to 4 the wheel, 5 the sdist, 6 the yank, 7 to 10 another project."""
    history = History(tmp_path / "index")
    history.add(make_wheel(tmp_path, "demo", "1.0", summary="A " * 2_000))
    history.add(make_sdist(tmp_path, "demo", "1.0"))
    history.yank("demo", "1.0")
    history.add(make_wheel(tmp_path, "other", "1.0"))
    return history
