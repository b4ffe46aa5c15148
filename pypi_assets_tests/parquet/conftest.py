"""A catalog with a few files, and a folder with a full dump of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import dumped_storage
from pypi_assets_tests.demo_catalog import small as small
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """Yield a catalog without files."""
    empty = small_catalog(tmp_path)
    yield empty.catalog
    empty.catalog.close()


@pytest.fixture
def storage(small: SmallCatalog, tmp_path: Path) -> Storage:
    """Return a storage folder with a full dump up to serial 100."""
    return dumped_storage(small, tmp_path, shards=16)
