"""Late changes to dumped serials are dumped at once at these serials, and applied to existing builds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.publications.dump_registry import Dump, open_late_dump, open_range_dump
from pypi_assets.dumps.compaction import compact
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_audit import audit_dump
from pypi_assets.dumps.dump_manifest import read_manifest
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.dump_writer import commit, write_late_changes, write_missing_ranges, write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.latest import open_latest
from pypi_assets.storage.store import Storage
from pypi_assets.upkeep.due import due_datasets, due_ranges, what_is_due
from pypi_assets_tests.demo_catalog import add_range, dumped_storage
from pypi_assets_tests.dumps.test_compaction import live
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

LATE = "late-1.0.tar.gz"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    small.add(1, "early", "1.0", "early-1.0.tar.gz", modules=("early",))
    small.add(2, "late", "1.0", LATE, modules=None)
    small.complete(100)
    yield small
    small.catalog.close()


@pytest.fixture
def storage(small: SmallCatalog, tmp_path: Path) -> Storage:
    """Return a storage folder with a full dump up to serial 100, in which the only file was not read yet."""
    return dumped_storage(small, tmp_path)


def read_late(small: SmallCatalog, module: str) -> None:
    assert small.read(LATE, (module,), ()) == cover(small.catalog).serial + 1


def late_rows(small: SmallCatalog, storage: Storage) -> list[tuple[str, object]]:
    manifest = write_late_changes(small.catalog, storage)
    assert manifest is not None
    assert manifest.serials.start == manifest.serials.end == cover(small.catalog).serial
    assert not due_ranges(small.catalog).are_late_undumped
    return [(str(row["filename"]), row["modules"]) for row in iter_dump(storage, manifest.directory)]


def providers(storage: Storage, module: str) -> list[str]:
    with open_latest("modules", storage) as modules:
        return [str(entry["project"]) for entry in modules.module(module).results]


def in_use(small: SmallCatalog) -> tuple[str, ...]:
    return cover(small.catalog).directories


def same_as_a_new_full_dump(small: SmallCatalog, storage: Storage) -> bool:
    before = live(small, storage)
    directory = full_dump(small.catalog, storage, 1).directory
    return before == {(row["normalized"], row["filename"]): row for row in iter_dump(storage, directory)}


def test_late_read_is_due_dumped_and_built_without_new_events(small: SmallCatalog, storage: Storage):
    build_version("modules", storage=storage, catalog=small.catalog)
    assert write_late_changes(small.catalog, storage) is None
    assert list(write_missing_ranges(small.catalog, storage)) == []
    read_late(small, "module_of_late")
    assert due_ranges(small.catalog).are_late_undumped
    assert what_is_due(small.catalog, storage).counts["late_dump"] == 1
    [manifest] = write_missing_ranges(small.catalog, storage)
    assert (manifest.directory, manifest.rows) == ("100-100", 1)
    assert in_use(small) == ("0-100", "100-100")
    assert providers(storage, "module_of_late") == []
    need = due_datasets(small.catalog, storage, cover(small.catalog))["modules"].need
    assert [dump.directory for dump in need.dumps] == ["100-100"]  # it is applied to the existing version
    result = build_version("modules", storage=storage, catalog=small.catalog)
    assert (result.published, result.serial) == (True, 100)
    assert providers(storage, "module_of_late") == ["late"]
    assert what_is_due(small.catalog, storage).counts["late_dump"] == 0
    assert list(write_missing_ranges(small.catalog, storage)) == []
    assert not build_version("modules", storage=storage, catalog=small.catalog).published
    assert same_as_a_new_full_dump(small, storage)


def test_late_dumps_have_new_changes_and_stay_in_the_cover(small: SmallCatalog, storage: Storage):
    for number in range(3):  # the same change again, which is logged once
        read_late(small, f"module_{number}")
        assert late_rows(small, storage) == [(LATE, [f"module_{number}"])]
    assert in_use(small) == ("0-100", "100-100", "100-100.2", "100-100.3")
    build_version("modules", storage=storage, catalog=small.catalog)
    assert [providers(storage, f"module_{number}") for number in range(3)] == [[], [], ["late"]]
    add_range(small, storage, 100, serials=10)
    assert in_use(small) == ("0-100", "100-100", "100-100.2", "100-100.3", "100-110")
    assert build_version("modules", storage=storage, catalog=small.catalog).serial == 110
    assert providers(storage, "module_2") == ["late"]
    read_late(small, "at_110")
    assert late_rows(small, storage) == [(LATE, ["at_110"])]
    assert in_use(small)[-2:] == ("100-110", "110-110")
    assert same_as_a_new_full_dump(small, storage)
    assert in_use(small) == ("0-110",)


def test_changes_of_an_open_range_are_left_to_its_dump(small: SmallCatalog, storage: Storage):
    read_late(small, "module_of_late")
    serials = small.complete(120)
    assert not due_ranges(small.catalog).are_late_undumped
    [manifest] = write_missing_ranges(small.catalog, storage)
    assert (manifest.serials, [row["filename"] for row in iter_dump(storage, manifest.directory)]) == (serials, [LATE])
    assert list(write_missing_ranges(small.catalog, storage)) == []


def test_range_dumped_meanwhile_takes_over(small: SmallCatalog, storage: Storage):
    read_late(small, "module_of_late")
    last = cover(small.catalog).dumps[-1]
    opened = open_late_dump(small.catalog, last)
    assert opened is not None
    assert opened.is_late
    serials = small.complete(120)
    open_range_dump(small.catalog, serials)
    assert open_late_dump(small.catalog, last) is None
    write_range(small.catalog, storage, serials)
    assert in_use(small) == ("0-100", "100-120.2")
    assert same_as_a_new_full_dump(small, storage)


def test_change_during_a_late_dump_is_due_again(small: SmallCatalog, storage: Storage):
    read_late(small, "first")
    last = cover(small.catalog).dumps[-1]
    opened = open_late_dump(small.catalog, last)
    assert isinstance(opened, Dump)
    read_late(small, "second")
    assert due_ranges(small.catalog).are_late_undumped
    assert late_rows(small, storage) == [(LATE, ["second"])]
    assert in_use(small) == ("0-100", "100-100.2")


def test_range_dumped_again_has_late_changes(small: SmallCatalog, storage: Storage):
    small.add(105, "late", "2.0", "late-2.0.tar.gz", modules=None)
    serials = small.complete(110)
    write_range(small.catalog, storage, serials)
    for module in ("one", "other"):
        assert small.read("late-2.0.tar.gz", (module,), ()) == 111
        write_late_changes(small.catalog, storage)
    assert in_use(small) == ("0-100", "100-110", "110-110", "110-110.2")
    manifest = write_range(small.catalog, storage, serials, again=True)
    assert in_use(small) == ("0-100", "100-110.2")
    assert manifest.rows == 1
    assert audit_dump(small.catalog, storage, cover(small.catalog).dumps[-1]).ok
    assert same_as_a_new_full_dump(small, storage)


def test_compactions_join_only_late_dumps_between_ranges(small: SmallCatalog, storage: Storage):
    for start in (100, 110, 120):
        read_late(small, f"at_{start}")
        late_rows(small, storage)
        add_range(small, storage, start, serials=10)
    read_late(small, "at_130")
    late_rows(small, storage)
    before = live(small, storage)
    assert in_use(small) == ("0-100", "100-100", "100-110", "110-110", "110-120", "120-120", "120-130", "130-130")
    [manifest] = compact(small.catalog, storage, growth=1)
    assert manifest.inputs == ("100-110", "110-110", "110-120", "120-120", "120-130")
    assert in_use(small) == ("0-100", "100-100", "100-130", "130-130")
    assert live(small, storage) == before
    assert list(compact(small.catalog, storage, growth=1)) == []
    read_late(small, "at_130_again")
    late_rows(small, storage)
    assert in_use(small) == ("0-100", "100-100", "100-130", "130-130", "130-130.2")
    assert same_as_a_new_full_dump(small, storage)


def test_compaction_size_is_bounded_with_late_dumps_in_between(small: SmallCatalog, storage: Storage):
    for start in (100, 110, 120, 130):
        add_range(small, storage, start, serials=10)
        for number in range(3):
            read_late(small, f"at_{start}_{number}")
            late_rows(small, storage)
    before = live(small, storage)
    joined = [manifest.inputs for manifest in compact(small.catalog, storage, growth=2, most=5)]
    assert joined == [
        ("100-110", "110-110", "110-110.2", "110-110.3", "110-120"),
        ("100-120", "120-120", "120-120.2", "120-120.3", "120-130"),
    ]
    assert live(small, storage) == before


def test_versions_with_late_dumps_are_extended_after_compactions(small: SmallCatalog, storage: Storage):
    for start in (100, 110, 120, 130):
        add_range(small, storage, start, serials=10)
        read_late(small, f"at_{start}")
        late_rows(small, storage)
    build_version("modules", storage=storage, catalog=small.catalog)
    list(compact(small.catalog, storage, growth=1))
    assert in_use(small) == ("0-100", "100-140", "140-140")
    assert not build_version("modules", storage=storage, catalog=small.catalog).published
    read_late(small, "last")
    late_rows(small, storage)
    need = due_datasets(small.catalog, storage, cover(small.catalog))["modules"].need
    assert [dump.directory for dump in need.dumps] == ["140-140.2"]
    build_version("modules", storage=storage, catalog=small.catalog)
    assert [providers(storage, name) for name in ("at_130", "last")] == [[], ["late"]]


def test_late_dumps_are_restored_from_their_manifests(small: SmallCatalog, storage: Storage):
    read_late(small, "module_of_late")
    late_rows(small, storage)
    manifest = read_manifest(storage, "100-100")
    assert restore_index(small.catalog, storage).damaged == ()
    assert in_use(small) == ("0-100", manifest.directory)
    assert commit(small.catalog, storage, cover(small.catalog).dumps[-1]) == manifest
