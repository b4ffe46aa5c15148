"""What tests of more than one room use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets_tests.served_index import ServedIndex, served_index
from pypi_assets_tests.upkeep.simulated_upkeep import upkeep as upkeep


@pytest.fixture
def opened(catalog: Catalog) -> Catalog:
    """A catalog whose first full crawl is open, pinned at 10."""
    open_crawl(catalog, 10, 10, "http://127.0.0.1/simple/", Selection())
    return catalog


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        yield served
