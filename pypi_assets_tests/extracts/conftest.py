"""A storage for packs."""

from pathlib import Path

import pytest

from pypi_assets.storage.store import Storage, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage((tmp_path / "packs").as_uri())
