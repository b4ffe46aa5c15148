"""A served index for each test of a crawl."""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets_tests.crawl.followers import Follower, SilentIndex


@pytest.fixture
def auto(catalog: Catalog) -> Follower:
    return Follower(SilentIndex(), catalog)
