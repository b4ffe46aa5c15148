"""A catalog of three files, and a storage with its full dump; and a catalog and a storage that age."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.demo_catalog import demo_catalog
from pypi_assets_tests.small_catalog import SmallCatalog
from pypi_assets_tests.upkeep.simulated_upkeep import upkeep as upkeep


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = demo_catalog(tmp_path)
    yield small
    small.catalog.close()


@pytest.fixture
def storage(small: SmallCatalog, tmp_path: Path) -> Storage:
    """A folder with a full dump up to serial 100."""
    storage = open_storage((tmp_path / "storage").as_uri())
    full_dump(small.catalog, storage, 1)
    return storage
