"""What the tests of extracts share: a served index, which a crawl reads first, and a storage for packs."""

from pathlib import Path

import pytest

from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.crawl.conftest import index

__all__ = ["index"]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage((tmp_path / "packs").as_uri())
