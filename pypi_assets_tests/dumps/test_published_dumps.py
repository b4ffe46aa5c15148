"""Missing, published and deleted dumps."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from pypi_assets.catalog.coordination.leases import lease
from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.ledger.range_ledger import allocate_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_registry import (
    DumpDroppedError,
    DumpError,
    open_compaction,
    open_full_dump,
)
from pypi_assets.dumps.compaction import compact, joined_rows
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import committed_directories, manifest_path
from pypi_assets.dumps.dump_writer import (
    commit,
    missing_ranges,
    write_file,
    write_missing_ranges,
    write_range,
    write_shard,
)
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.storage.sweeping import DeletionReason
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog
from pypi_assets_tests.upkeep.simulated_upkeep import HOUR, Upkeep, directories


def named(upkeep: Upkeep) -> list[str]:
    part = orjson.loads(upkeep.storage.get(PUBLISHED))["dumps"]
    for one in part["manifests"]:
        content = upkeep.storage.get(one["path"])
        assert (one["size"], one["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert part["serial"] == cover(upkeep.catalog).serial
    return [one["path"] for one in part["manifests"]]


def test_commits_are_published_and_clean_up_repairs_after_a_kill(upkeep: Upkeep) -> None:
    def covered() -> list[str]:
        return [manifest_path(directory) for directory in cover(upkeep.catalog).directories]

    assert named(upkeep) == covered()
    for _ in range(3):
        upkeep.dump_range()
    assert named(upkeep) == covered()
    assert len(covered()) == 4
    upkeep.storage.delete(PUBLISHED)
    upkeep.clean()
    assert named(upkeep) == covered()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    made = small_catalog(tmp_path)
    made.add(1, "demo", "1.0", "demo-1.0.tar.gz")
    yield made
    made.catalog.close()


def test_ranges_follow_a_full_dump(small: SmallCatalog) -> None:
    small.complete(10)
    with pytest.raises(DumpError, match=naming("pypi-assets dump full")):
        missing_ranges(small.catalog)


def test_complete_ranges_after_the_full_dump_are_dumped(small: SmallCatalog, storage: Storage) -> None:
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


def test_superseded_dumps_are_deleted_a_day_after_leaving_the_cover(upkeep: Upkeep) -> None:
    ranges = [upkeep.dump_range() for _ in range(4)]
    upkeep.wait(100)
    [manifest] = compact(upkeep.catalog, upkeep.storage)
    assert upkeep.clean() == []  # however old they are
    upkeep.wait(23)
    assert upkeep.clean(dry_run=True) == []
    upkeep.wait(2)
    before = upkeep.paths()
    planned = upkeep.clean(dry_run=True)
    assert upkeep.paths() == before
    assert directories(planned) == dict.fromkeys(ranges, DeletionReason.SUPERSEDED)
    removed = upkeep.clean()
    assert removed == planned
    gone = before - upkeep.paths()
    assert len(gone) == sum(removal.files for removal in removed) == 8
    assert committed_directories(upkeep.storage) == ["0-3", manifest.directory]
    upkeep.assert_whole()
    assert upkeep.clean() == []
    # no name is allocated twice
    assert write_range(upkeep.catalog, upkeep.storage, SerialRange(3, 6), again=True).directory == "3-6.2"


def test_postgresql_and_object_stores_work_as_well(tmp_path: Path, postgres_database_url: str) -> None:
    upkeep = Upkeep(tmp_path, postgres_database_url, "memory:///")
    catalog, storage = upkeep.catalog, upkeep.storage
    upkeep.change()
    full_dump(catalog, storage, 1)
    for _ in range(4):
        upkeep.dump_range()
    ranges = cover(catalog).dumps[1:]
    dump = open_compaction(catalog, ranges[:2])
    write_file(catalog, storage, dump, 0, joined_rows(storage, ranges[:2]))
    [manifest] = compact(catalog, storage)
    upkeep.wait(25)
    left = {one.directory: DeletionReason.SUPERSEDED for one in ranges} | {dump.directory: DeletionReason.ABANDONED}
    assert directories(upkeep.clean(dry_run=True)) == directories(upkeep.clean()) == left
    assert committed_directories(storage) == ["0-3", manifest.directory]
    upkeep.assert_whole()
    assert full_dump(catalog, storage, 16, since=catalog.clock()).sequence > manifest.sequence
    upkeep.wait(25)
    upkeep.clean()
    upkeep.assert_nothing_left_over()
    catalog.close()


def test_dumps_a_lease_holder_may_read_stay(upkeep: Upkeep) -> None:
    with lease(upkeep.catalog, "publish modules", ttl_s=1000 * HOUR):
        redone = full_dump(upkeep.catalog, upkeep.storage, 1, since=upkeep.catalog.clock())
        upkeep.wait(50)
        assert upkeep.clean() == []
    assert directories(upkeep.clean()) == {"0-3": DeletionReason.SUPERSEDED}
    assert cover(upkeep.catalog).directories == (redone.directory,)


def test_open_full_dump_stays_until_overtaken(upkeep: Upkeep) -> None:
    catalog, storage = upkeep.catalog, upkeep.storage
    left = open_full_dump(catalog, 16)
    write_shard(catalog, storage, left, 0)
    upkeep.wait(1000)
    assert upkeep.clean() == []
    newer = full_dump(catalog, storage, 1)
    assert directories(upkeep.clean()) == {left.directory: DeletionReason.ABANDONED}
    for shard in range(16):
        write_shard(catalog, storage, left, shard)
    with pytest.raises(DumpDroppedError):
        commit(catalog, storage, left)
    upkeep.wait(25)
    upkeep.clean()
    assert committed_directories(storage) == [newer.directory]
    upkeep.wait(25)
    upkeep.clean()
    upkeep.assert_nothing_left_over()


def test_storage_of_another_catalog_is_not_changed(upkeep: Upkeep, tmp_path: Path) -> None:
    upkeep.wait(1000)
    (tmp_path / "other").mkdir()
    other = small_catalog(tmp_path / "other")
    with pytest.raises(CatalogError, match=naming(1)):
        list(clean_versions_and_dumps(other.catalog, upkeep.storage, grace_s=0, versions_kept=1))
    other.catalog.close()
    elsewhere = open_storage((tmp_path / "elsewhere").as_uri())
    with pytest.raises(CatalogError, match=naming("0-3")):
        list(clean_versions_and_dumps(upkeep.catalog, elsewhere, grace_s=0, versions_kept=1))
