"""Fixtures for a catalog of three files, a storage with its full dump, and a catalog and a storage that age."""

from pathlib import Path

import pytest

from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import dumped_storage
from pypi_assets_tests.demo_catalog import small as small
from pypi_assets_tests.small_catalog import SmallCatalog
from pypi_assets_tests.upkeep.simulated_upkeep import upkeep as upkeep


@pytest.fixture
def storage(small: SmallCatalog, tmp_path: Path) -> Storage:
    """Return a folder with a full dump up to serial 100."""
    return dumped_storage(small, tmp_path)
