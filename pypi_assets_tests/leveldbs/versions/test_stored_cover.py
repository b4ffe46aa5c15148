"""The cover that the storage alone describes is the one of the catalog."""

import pytest

from pypi_assets.dumps.cover import Cover, cover
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import manifest_path
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.versions.stored_cover import stored_cover
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.compaction import compact
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.small_catalog import SmallCatalog


def test_it_equals_the_cover_of_the_catalog(small: SmallCatalog, storage: Storage) -> None:
    def assert_equal(*directories: str) -> None:
        found, known = stored_cover(storage), cover(small.catalog)
        assert found.directories == known.directories == directories
        assert found.serial == known.serial
        for one, other in zip(found.dumps, known.dumps, strict=True):
            assert (one.kind, one.serials, one.inputs, one.sequence, one.leaves) == (
                (other.kind, other.serials, other.inputs, other.sequence, other.leaves)
            )
            assert set(one.columns) == set(other.columns)

    assert_equal("0-100")
    ranges = [add_range(small, storage, start) for start in (100, 150)]
    assert_equal("0-100", *ranges)
    compact(small.catalog, storage, *ranges)
    assert_equal("0-100", "100-200")
    redone = full_dump(small.catalog, storage, 1, since=small.catalog.clock())
    assert_equal(redone.directory)


def test_a_storage_without_dumps_has_an_empty_cover() -> None:
    assert stored_cover(open_storage("memory:///")) == Cover()


def test_a_damaged_manifest_is_an_error(storage: Storage) -> None:
    storage.put(manifest_path("0-100"), b"damaged")
    with pytest.raises(DumpDamagedError, match="0-100"):
        stored_cover(storage)
