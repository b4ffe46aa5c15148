"""Fixtures that several test folders of the catalog share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog
from pypi_assets_tests.upkeep.simulated_upkeep import upkeep as upkeep


@pytest.fixture
def opened(catalog: Catalog) -> Catalog:
    """Return a catalog whose first full crawl is open and pinned at serial 10."""
    open_crawl(catalog, 10, 10, "http://127.0.0.1/simple/", Selection())
    return catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    """Yield an empty catalog that tests add files to, on each database."""
    small = small_catalog(tmp_path, database_url)
    yield small
    small.catalog.close()
