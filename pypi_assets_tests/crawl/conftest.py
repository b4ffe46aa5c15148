"""A served index for every test of a crawl."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets_tests.crawl.followers import Follower, SilentIndex
from pypi_assets_tests.served_index import ServedIndex, served_index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        yield served


@pytest.fixture
def auto(catalog: Catalog) -> Follower:
    return Follower(SilentIndex(), catalog)
