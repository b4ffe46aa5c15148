"""Build a catalog of three files, complete up to serial 100, and ranges after it with their dumps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def demo_catalog(folder: Path) -> SmallCatalog:
    """Create a catalog of two projects: one with a wheel and an sdist, one with an unreadable sdist."""
    small = small_catalog(folder)
    small.add(1, "Demo.Pkg", "1.0", "demo_pkg-1.0.tar.gz", modules=("demo", "demo.a"), requires_dist=("other>=1",))
    small.add(2, "Demo.Pkg", "1.0", "demo_pkg-1.0-py3-none-any.whl")
    small.add(3, "other", "2", "other-2.tar.gz", modules=None, requires_dist=None)
    small.complete(100)
    return small


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = demo_catalog(tmp_path)
    yield small
    small.catalog.close()


def dumped_storage(small: SmallCatalog, folder: Path, shards: int = 1) -> Storage:
    """Return a storage in a folder below `folder`, with a full dump of all complete serials."""
    storage = open_storage((folder / "storage").as_uri())
    full_dump(small.catalog, storage, shards)
    return storage


def add_range(small: SmallCatalog, storage: Storage, start: int, *, serials: int = 50) -> str:
    """Dump the `serials` serials after `start`, in which one file is added and another added and removed.

    Return the directory of the dump.
    """
    small.add(start + 1, "new", f"{start}", f"new-{start}.tar.gz")
    small.add(start + 2, "new", f"{start}", f"new-{start}.zip")
    small.remove(start + 3, f"new-{start}.zip")
    return write_range(small.catalog, storage, small.complete(start + serials)).directory
