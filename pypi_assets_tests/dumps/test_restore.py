"""The catalog's index of dumps, rebuilt from the manifests in the storage."""

from pathlib import Path

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_registry import (
    committed_dumps,
    open_range_dump,
)
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import manifest_path
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets.storage.store import Storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def test_dump_registry_is_rebuilt_from_the_storage(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    full_dump(small.catalog, storage, 16)
    small.remove(110, "other-2.tar.gz")
    write_range(small.catalog, storage, small.complete(150))
    open_range_dump(small.catalog, SerialRange(100, 150))
    storage.put(manifest_path("150-160"), b"{}")
    (tmp_path / "new").mkdir()
    fresh = small_catalog(tmp_path / "new")
    for _ in range(2):
        index = restore_index(fresh.catalog, storage)
        assert index.restored == ("0-100", "100-150")
        assert len(index.damaged) == 1
        assert "150-160" in index.damaged[0]
        assert cover(fresh.catalog).directories == cover(small.catalog).directories
    restored, known = committed_dumps(fresh.catalog), committed_dumps(small.catalog)
    assert [(one.kind, one.serials, one.sequence, one.shards) for one in restored] == [
        (entry.kind, entry.serials, entry.sequence, entry.shards) for entry in known
    ]
    fresh.catalog.close()
