"""What tests of more than one room use."""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import open_crawl


@pytest.fixture
def opened(catalog: Catalog) -> Catalog:
    """A catalog whose first full crawl is open, pinned at 10."""
    open_crawl(catalog, 10, 10, "http://127.0.0.1/simple/", Selection())
    return catalog
