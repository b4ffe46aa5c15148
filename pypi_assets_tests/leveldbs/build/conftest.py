"""A storage with a generated full dump."""

from pathlib import Path

import pytest

from benchmarks.generated import generate_projects, write_full_dump
from pypi_assets.dumps.dump_manifest import Manifest
from pypi_assets.storage.store import Storage, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage((tmp_path / "storage").as_uri())


@pytest.fixture
def dump(storage: Storage) -> Manifest:
    return write_full_dump(storage, generate_projects(1_500), shards=16)
