"""Which ranges still miss a dump."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.ledger.range_ledger import allocate_range
from pypi_assets.catalog.publications.dump_registry import DumpError
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_writer import missing_ranges, write_missing_ranges, write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    made = small_catalog(tmp_path)
    made.add(1, "demo", "1.0", "demo-1.0.tar.gz")
    yield made
    made.catalog.close()


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage((tmp_path / "storage").as_uri())


def test_ranges_follow_a_full_dump(small: SmallCatalog) -> None:
    small.complete(10)
    with pytest.raises(DumpError, match=naming("pypi-assets dump full")):
        missing_ranges(small.catalog)


def test_each_complete_range_beyond_the_full_dump_gets_its_dump(small: SmallCatalog, storage: Storage) -> None:
    small.complete(10)
    small.complete(20)
    full_dump(small.catalog, storage, 1)
    assert missing_ranges(small.catalog) == []
    ranges = [small.complete(30), small.complete(40), small.complete(50)]
    with small.catalog.write() as connection:
        allocate_range(connection, 60, 0.0)
    assert missing_ranges(small.catalog) == ranges
    write_range(small.catalog, storage, ranges[1])
    assert missing_ranges(small.catalog) == [ranges[0], ranges[2]]
    written = [manifest.serials for manifest in write_missing_ranges(small.catalog, storage)]
    assert written == [ranges[0], ranges[2]]
    assert cover(small.catalog).directories == ("0-20", "20-30", "30-40", "40-50")
    assert list(write_missing_ranges(small.catalog, storage)) == []
