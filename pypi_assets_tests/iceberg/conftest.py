"""A catalog with a few files, and a folder with a full dump of it, for tables."""

from pathlib import Path

import pytest

from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import dumped_storage
from pypi_assets_tests.demo_catalog import small as small
from pypi_assets_tests.small_catalog import SmallCatalog


@pytest.fixture
def storage(small: SmallCatalog, tmp_path: Path) -> Storage:
    """Return a storage folder with a full dump up to serial 100."""
    return dumped_storage(small, tmp_path)
