"""Fixtures for a published index and a client of its service. See `published.py`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.journal.written import journaled_index
from pypi_assets_tests.service.published import Client, Published, fill, published_index


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """Yield an index with a short history, crawled from its first serial and published once. Tests do not change it."""
    with pytest.MonkeyPatch.context() as environment, published_index(tmp_path_factory.mktemp("published")) as index:
        clear_settings(environment)
        fill(index)
        index.publish_first()
        yield index


@pytest.fixture
def changing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Published]:
    """Yield an index like `published` for one test, which may publish more."""
    clear_settings(monkeypatch)
    with published_index(tmp_path / "changing") as index:
        fill(index)
        index.publish_first()
        yield index


@pytest.fixture(scope="session")
def client(published: Published) -> Iterator[Client]:
    """Yield a client of a service over `published`. Tests do not change it."""
    with published.client() as client:
        yield client


@pytest.fixture(scope="session")
def journaled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """Yield an index like `published` with a journal. Tests do not change it."""
    with pytest.MonkeyPatch.context() as environment, journaled_index(tmp_path_factory.mktemp("journaled")) as index:
        clear_settings(environment)
        yield index


@pytest.fixture(scope="session")
def journaled_client(journaled: Published) -> Iterator[Client]:
    """Yield a client of a service over `journaled`. Tests do not change it."""
    with journaled.client(service_timeout_s=60) as client:
        yield client
