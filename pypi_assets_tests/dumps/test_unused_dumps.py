"""Which dumps are deleted, and which stay: those in use, those that may be read, and those of another catalog."""

from pathlib import Path

import pytest

from pypi_assets.catalog.coordination.leases import lease
from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_registry import (
    DumpDroppedError,
    open_compaction,
    open_full_dump,
)
from pypi_assets.dumps.compaction import compact, joined_rows
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import committed_directories
from pypi_assets.dumps.dump_writer import commit, write_file, write_range, write_shard
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import open_storage
from pypi_assets.storage.sweeping import Reason
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import small_catalog
from pypi_assets_tests.upkeep.simulated_upkeep import HOUR, Upkeep, directories


def test_superseded_dumps_go_a_day_after_they_left_the_cover(upkeep: Upkeep) -> None:
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
    assert directories(planned) == dict.fromkeys(ranges, Reason.SUPERSEDED)
    removed = upkeep.clean()
    assert removed == planned
    gone = before - upkeep.paths()
    assert len(gone) == sum(removal.files for removal in removed) == 8
    assert committed_directories(upkeep.storage) == ["0-3", manifest.directory]
    upkeep.assert_whole()
    assert upkeep.clean() == []
    # no name is handed out twice
    assert write_range(upkeep.catalog, upkeep.storage, SerialRange(3, 6), again=True).directory == "3-6.2"


def test_postgresql_and_a_store_without_folders_do_as_well(tmp_path: Path, postgres_database_url: str) -> None:
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
    left = {one.directory: Reason.SUPERSEDED for one in ranges} | {dump.directory: Reason.ABANDONED}
    assert directories(upkeep.clean(dry_run=True)) == directories(upkeep.clean()) == left
    assert committed_directories(storage) == ["0-3", manifest.directory]
    upkeep.assert_whole()
    assert full_dump(catalog, storage, 16, since=catalog.clock()).sequence > manifest.sequence
    upkeep.wait(25)
    upkeep.clean()
    upkeep.assert_nothing_left_over()
    catalog.close()


def test_what_a_lease_holder_may_be_reading_stays(upkeep: Upkeep) -> None:
    with lease(upkeep.catalog, "publish modules", ttl_s=1000 * HOUR):
        redone = full_dump(upkeep.catalog, upkeep.storage, 1, since=upkeep.catalog.clock())
        upkeep.wait(50)
        assert upkeep.clean() == []
    assert directories(upkeep.clean()) == {"0-3": Reason.SUPERSEDED}
    assert cover(upkeep.catalog).directories == (redone.directory,)


def test_an_open_full_dump_stays_until_it_is_overtaken(upkeep: Upkeep) -> None:
    catalog, storage = upkeep.catalog, upkeep.storage
    left = open_full_dump(catalog, 16)
    write_shard(catalog, storage, left, 0)
    upkeep.wait(1000)
    assert upkeep.clean() == []
    newer = full_dump(catalog, storage, 1)
    assert directories(upkeep.clean()) == {left.directory: Reason.ABANDONED}
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


def test_a_storage_of_another_catalog_is_left_alone(upkeep: Upkeep, tmp_path: Path) -> None:
    upkeep.wait(1000)
    (tmp_path / "other").mkdir()
    other = small_catalog(tmp_path / "other")
    with pytest.raises(CatalogError, match=naming(1)):
        list(clean_versions_and_dumps(other.catalog, upkeep.storage, grace_s=0, versions_kept=1))
    other.catalog.close()
    elsewhere = open_storage((tmp_path / "elsewhere").as_uri())
    with pytest.raises(CatalogError, match=naming("0-3")):
        list(clean_versions_and_dumps(upkeep.catalog, elsewhere, grace_s=0, versions_kept=1))
