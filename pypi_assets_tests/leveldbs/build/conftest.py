"""Fixture for a storage with a generated full dump."""

import pytest

from benchmarks.generated import generate_projects, write_full_dump
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.storage.store import Storage


@pytest.fixture
def dump(storage: Storage) -> DumpManifest:
    return write_full_dump(storage, generate_projects(1_500), shards=16)
