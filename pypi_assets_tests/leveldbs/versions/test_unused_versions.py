"""What is deleted and what stays: after any sequence of dumps, builds, clean-ups and kills all is whole."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_files import DumpKind
from pypi_assets.catalog.publications.dump_registry import (
    DumpDroppedError,
    DumpState,
    begin_commit,
    known_dumps,
    open_compaction,
    open_full_dump,
    open_range_dump,
)
from pypi_assets.catalog.publications.leveldb_versions import allocate_version, begin_build
from pypi_assets.dumps.compaction import compact, joined_rows
from pypi_assets.dumps.cover import cover, inputs_of
from pypi_assets.dumps.dump_manifest import committed_directories, read_manifest
from pypi_assets.dumps.dump_paths import MANIFEST_NAME, file_path, manifest_path
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.dump_writer import commit, missing_ranges, write_file, write_range, write_shard
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.unused_dumps import Reason, Removal
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError
from pypi_assets.leveldbs.versions.input_lists import InputList, published_versions, read_input_list, write_input_list
from pypi_assets.leveldbs.versions.leveldb_manifest import check_sizes, read_published
from pypi_assets.leveldbs.versions.leveldb_paths import input_list_path, leveldb_path
from pypi_assets.leveldbs.versions.publish import BuildResult, Progress, build_version
from pypi_assets.lookup import open_latest
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

HOUR = 3600.0
KEPT = 2


class Killed(BaseException):
    pass


@dataclass
class Upkeep:
    """A catalog and a storage whose time passes as tests say, and files that come and go."""

    folder: Path
    database_url: str | None = None
    storage_url: str = ""
    small: SmallCatalog = field(init=False)
    storage: Storage = field(init=False)
    ahead_s: float = 0.0
    serial: int = 0
    files: dict[str, bool] = field(default_factory=dict)
    last_range: SerialRange = field(init=False)
    build_result: BuildResult = field(init=False)
    _stamped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        made = small_catalog(self.folder, self.database_url)
        self.small = SmallCatalog(Catalog(made.catalog.engine, lambda: time.time() + self.ahead_s))
        self.storage = open_storage(self.storage_url or (self.folder / "storage").as_uri())

    @property
    def catalog(self) -> Catalog:
        return self.small.catalog

    def wait(self, hours: float) -> None:
        """Files that were written since the last call are as old as their writing."""
        for stored in self.storage.list():
            if stored.path not in self._stamped and (path := self.storage.local_path(stored.path)):
                os.utime(path, (self.catalog.clock(),) * 2)
                self._stamped.add(stored.path)
        self.ahead_s += hours * HOUR

    def change(self, choose: Callable[[Sequence[str]], str] = min) -> SerialRange:
        for _ in range(3):
            self.serial += 1
            gone = [name for name, is_live in self.files.items() if is_live]
            if gone and choose(["add", "remove"]) == "remove":
                self.files[name := choose(gone)] = False
                self.small.remove(self.serial, name)
            else:
                project = choose(["a", "b-c", "d"])
                self.files[name := f"{project}-{self.serial}.tar.gz"] = True
                self.small.add(self.serial, project, str(self.serial), name)
        self.last_range = self.small.complete(self.serial)
        return self.last_range

    def dump_range(self, choose: Callable[[Sequence[str]], str] = min) -> str:
        self.change(choose)
        *_, last = (write_range(self.catalog, self.storage, serials) for serials in missing_ranges(self.catalog))
        return last.directory

    def build(self, *, from_scratch: bool = False, progress: Progress | None = None) -> int:
        self.build_result = build_version(
            "modules", storage=self.storage, catalog=self.catalog, from_scratch=from_scratch, progress=progress
        )
        return self.build_result.version

    def clean(self, *, dry_run: bool = False) -> list[Removal]:
        self.wait(0)
        removals = clean_versions_and_dumps(
            self.catalog, self.storage, grace_s=24 * HOUR, versions_kept=KEPT, dry_run=dry_run
        )
        return list(removals)

    def paths(self) -> set[str]:
        return {stored.path for stored in self.storage.list()}

    def assert_whole(self) -> None:
        """The cover leads to what is live, and every valid version and what its input list names is there."""
        found: dict[object, bool] = {}
        for directory in cover(self.catalog).directories:
            for row in iter_dump(self.storage, directory):
                found[row["filename"]] = not row["tombstone"]
        assert {name for name, is_live in found.items() if is_live} == {
            name for name, is_live in self.files.items() if is_live
        }
        assert cover(self.catalog).serial == self.serial
        paths = self.paths()
        for version in published_versions(self.storage, "modules"):
            published = read_published(self.storage, "modules", version)
            check_sizes(self.storage, published)
            assert paths.issuperset(published.inputs.inputs)
        committed = {dump.directory for dump in known_dumps(self.catalog) if dump.state == DumpState.COMMITTED}
        for directory in committed:
            manifest = read_manifest(self.storage, directory)
            assert paths.issuperset(file_path(directory, file.name) for file in manifest.files)

    def assert_nothing_left_over(self) -> None:
        """Whatever there is has its reason."""
        versions = published_versions(self.storage, "modules")
        assert len(versions) <= KEPT
        inputs = [read_input_list(self.storage, "modules", version) for version in versions]
        named = {path.split("/")[2] for one in inputs for path in one.inputs}
        known = {dump.directory: dump for dump in known_dumps(self.catalog)}
        unfinished = {name for name, dump in known.items() if dump.state == DumpState.OPEN}
        assert {known[name].kind for name in unfinished} <= {DumpKind.FULL}
        assert set(committed_directories(self.storage)) == {*cover(self.catalog).directories, *named}
        assert known.keys() == {*committed_directories(self.storage), *unfinished}
        reasons = {input_list_path("modules", version) for version in versions}
        for directory in committed_directories(self.storage):
            manifest = read_manifest(self.storage, directory)
            reasons |= {manifest_path(directory), *(file_path(directory, file.name) for file in manifest.files)}
        for version in versions:
            published = read_published(self.storage, "modules", version)
            reasons |= {f"{published.path}/{MANIFEST_NAME}", *map(published.path_of, published.manifest.files)}
        assert {path for path in self.paths() if path.split("/")[2] not in unfinished} == reasons


@pytest.fixture
def upkeep(tmp_path: Path) -> Iterator[Upkeep]:
    upkeep = Upkeep(tmp_path)
    upkeep.change()
    full_dump(upkeep.catalog, upkeep.storage, 1)
    yield upkeep
    upkeep.catalog.close()


def directories(removed: Sequence[Removal]) -> dict[str, Reason]:
    return {removal.path.rpartition("/")[2]: removal.reason for removal in removed}


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
    dump = open_compaction(catalog, SerialRange(3, 9), ranges[0].sequence, inputs_of(ranges[:2]))
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


def test_who_lets_a_lease_expire_and_wakes_up_publishes_nothing(upkeep: Upkeep) -> None:
    with lease(upkeep.catalog, "publish modules", ttl_s=HOUR) as held:
        upkeep.wait(2)
        upkeep.clean(dry_run=True)
        held.renew()
        upkeep.wait(2)
        upkeep.clean()
        with pytest.raises(LeaseTakenError, match="not renewed in time"):
            held.renew()


def test_the_newest_versions_stay_with_all_that_they_name(upkeep: Upkeep) -> None:
    upkeep.build()
    full_dump(upkeep.catalog, upkeep.storage, 1)
    upkeep.build()
    full_dump(upkeep.catalog, upkeep.storage, 1)
    upkeep.wait(50)
    assert upkeep.clean() == []
    assert upkeep.build() == 3
    assert directories(upkeep.clean()) == {"00001": Reason.SUPERSEDED, "0-3": Reason.SUPERSEDED}
    assert published_versions(upkeep.storage, "modules") == [2, 3]
    upkeep.wait(50)
    assert upkeep.clean() == []
    upkeep.assert_whole()
    upkeep.assert_nothing_left_over()


def test_a_version_stays_for_a_day_after_it_was_superseded(upkeep: Upkeep) -> None:
    for _ in range(3):
        upkeep.dump_range()
        upkeep.build()
    assert upkeep.clean() == []
    upkeep.wait(25)
    assert directories(upkeep.clean()) == {"00001": Reason.SUPERSEDED}


def test_a_version_whose_input_list_is_damaged_counts_for_nothing(upkeep: Upkeep) -> None:
    for _ in range(3):
        upkeep.dump_range()
        upkeep.build()
    before = upkeep.paths()
    upkeep.storage.put(input_list_path("modules", 3), b"damaged")
    upkeep.wait(50)
    assert upkeep.clean() == []
    upkeep.dump_range()
    upkeep.build()
    upkeep.wait(50)
    [removal] = upkeep.clean()
    assert (removal.path, removal.files) == (
        leveldb_path("modules", "00001"),
        0,
    )  # who knows what version 3 needs of it
    assert before - upkeep.paths() == {input_list_path("modules", 1)}
    assert published_versions(upkeep.storage, "modules") == [2, 3, 4]
    upkeep.dump_range()
    upkeep.build()
    upkeep.wait(50)
    assert directories(upkeep.clean()) == dict.fromkeys(["00001", "00002", "00003"], Reason.SUPERSEDED)
    assert published_versions(upkeep.storage, "modules") == [4, 5]
    upkeep.assert_whole()


def test_a_version_that_only_newer_software_can_read_keeps_all_that_it_may_name(upkeep: Upkeep) -> None:
    for _ in range(3):
        upkeep.dump_range()
        upkeep.build()
    inputs = read_input_list(upkeep.storage, "modules", 3)
    path = f"{leveldb_path('modules', '00003')}/{MANIFEST_NAME}"
    content = upkeep.storage.get(path).replace(b'"format": 2', b'"format": 99')
    upkeep.storage.put(path, content)
    write_input_list(upkeep.storage, replace(inputs, manifest_sha256=hashlib.sha256(content).hexdigest()))
    upkeep.wait(50)
    before = upkeep.paths()
    assert directories(upkeep.clean()) == {"00001": Reason.SUPERSEDED}
    assert before - upkeep.paths() == {input_list_path("modules", 1)}


def test_tables_stay_for_as_long_as_a_version_that_stays_names_them(upkeep: Upkeep) -> None:
    tables = f"{leveldb_path('modules', '00001')}/"
    for _ in range(3):
        upkeep.dump_range()
        upkeep.build()
        upkeep.wait(25)
        upkeep.clean()
        upkeep.assert_whole()
        upkeep.assert_nothing_left_over()
        if upkeep.build_result.version > KEPT:  # LevelDB merges four
            assert {path.rpartition(".")[2] for path in upkeep.paths() if path.startswith(tables)} == {"ldb"}
    assert published_versions(upkeep.storage, "modules") == [2, 3]
    before = upkeep.paths()
    for _ in range(KEPT):
        upkeep.build(from_scratch=True)
    upkeep.wait(25)
    removed = upkeep.clean()
    assert directories(removed) == dict.fromkeys(["00001", "00002", "00003"], Reason.SUPERSEDED)
    assert not any(path.startswith(tables) for path in upkeep.paths())
    assert len(before - upkeep.paths()) == sum(removal.files for removal in removed) + KEPT  # and their input lists
    upkeep.assert_nothing_left_over()


def test_what_a_build_stands_on_stays_however_old_it_is(upkeep: Upkeep) -> None:
    upkeep.dump_range()
    upkeep.build()
    upkeep.wait(1000)
    upkeep.dump_range()

    def cleaned(_rows: int) -> None:
        upkeep.wait(0.1)
        assert list(clean_versions_and_dumps(upkeep.catalog, upkeep.storage, grace_s=0, versions_kept=1)) == []

    upkeep.build(progress=cleaned)
    upkeep.assert_whole()
    assert len(read_published(upkeep.storage, "modules", 2).manifest.files) > 3
    upkeep.wait(1)
    list(clean_versions_and_dumps(upkeep.catalog, upkeep.storage, grace_s=0, versions_kept=1))
    assert published_versions(upkeep.storage, "modules") == [2]
    upkeep.assert_whole()


def test_a_writer_that_wakes_up_too_late_hides_no_version_that_is_whole(upkeep: Upkeep) -> None:
    """It slept between its last look at its lease and its last write, and the tables that it names are gone."""
    upkeep.dump_range()
    upkeep.build()
    upkeep.dump_range()
    late: list[InputList] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "pypi_assets.leveldbs.versions.publish.write_input_list", lambda _storage, inputs: late.append(inputs)
        )
        upkeep.build()
    for _ in range(KEPT):
        upkeep.build(from_scratch=True)
        upkeep.wait(25)
        upkeep.clean()
    write_input_list(upkeep.storage, late[0])
    with pytest.raises(LeveldbDamagedError, match="is missing"):
        read_published(upkeep.storage, "modules", late[0].version)
    with open_latest("modules", upkeep.storage) as reader:
        assert reader.version == 4
    upkeep.dump_range()
    upkeep.build()
    assert upkeep.build_result.base_version == 4
    upkeep.wait(25)
    upkeep.clean()
    upkeep.assert_whole()
    upkeep.assert_nothing_left_over()


def test_what_stopped_attempts_have_left_goes_after_a_day(upkeep: Upkeep) -> None:
    catalog, storage = upkeep.catalog, upkeep.storage
    upkeep.dump_range()
    stopped = open_range_dump(catalog, upkeep.change())
    write_shard(catalog, storage, stopped, 0)
    storage.put(file_path("0-3", "python_distribution_data0000.9.json.gz"), b"of a writer that was too late")
    storage.put(file_path("77-88", "python_distribution_data0000.json.gz"), b"of a catalog that was lost")
    storage.put(manifest_path("88-99"), b"of a catalog that was lost")
    unfinished = begin_build(catalog, "modules", allocate_version(catalog, 3))
    storage.put(f"{leveldb_path('modules', unfinished.directory)}/000005.ldb", b"table")
    upkeep.wait(23)
    assert upkeep.clean() == []
    upkeep.wait(2)
    expected = {"6-9", "0-3", "77-88", "00001"}
    assert directories(upkeep.clean()) == dict.fromkeys(expected, Reason.ABANDONED)
    with pytest.raises(DumpDroppedError):  # its writer wakes up
        commit(catalog, storage, stopped)
    assert committed_directories(storage) == ["0-3", "3-6", "88-99"]
    upkeep.dump_range()
    upkeep.assert_whole()


def test_what_a_killed_put_has_left_goes_after_a_day(upkeep: Upkeep) -> None:
    left = upkeep.storage.local_path("modules/leveldbs/00001/CURRENT#1")
    assert left is not None
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    upkeep.wait(23)
    assert upkeep.clean() == []
    upkeep.wait(2)
    for dry_run in (True, False):
        removed = [Removal("modules/leveldbs/00001/CURRENT#1", Reason.ABANDONED, 1, 4)]
        assert upkeep.clean(dry_run=dry_run) == removed
    assert not left.exists()


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
    with pytest.raises(CatalogError, match="knows none of the 1 dumps there"):
        list(clean_versions_and_dumps(other.catalog, upkeep.storage, grace_s=0, versions_kept=1))
    other.catalog.close()
    elsewhere = open_storage((tmp_path / "elsewhere").as_uri())
    with pytest.raises(CatalogError, match="dump 0-3, which is in use, is not there"):
        list(clean_versions_and_dumps(upkeep.catalog, elsewhere, grace_s=0, versions_kept=1))


STEPS = [
    *["range", "range", "range", "compact", "compact all", "full", "redo", "build", "build", "clean", "clean"],
    *["wait", "wait", "open full", "open range", "stopped compaction", "stopped build", "killed clean", "lease"],
    *["range", "build", "rebuild", "clean while building", "late build"],
]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=16), st.randoms(use_true_random=False))
def test_after_any_sequence_all_is_whole_and_nothing_is_left_over(steps: list[str], random: object) -> None:
    choose: Callable[[Sequence[str]], str] = random.choice  # type: ignore[attr-defined]
    with TemporaryDirectory() as folder, ExitStack() as held:
        upkeep = Upkeep(Path(folder))
        catalog, storage = upkeep.catalog, upkeep.storage
        upkeep.change(choose)
        full_dump(catalog, storage, 1)
        for step in steps:
            ranges = cover(catalog).dumps[1:]
            if step == "range":
                upkeep.dump_range(choose)
            elif step.startswith("compact"):
                list(compact(catalog, storage, growth=1 if step == "compact all" else 2))
            elif step == "full":
                full_dump(catalog, storage, 1)
            elif step == "redo":
                full_dump(catalog, storage, 1, since=catalog.clock())
            elif step == "build":
                upkeep.build()
            elif step == "rebuild":
                upkeep.build(from_scratch=True)
            elif step == "clean while building":
                upkeep.dump_range(choose)
                upkeep.build(progress=lambda _rows: _clean_meanwhile(upkeep, 0))
            elif step == "late build":
                upkeep.dump_range(choose)
                with suppress(LeaseTakenError):
                    upkeep.build(progress=lambda _rows: _clean_meanwhile(upkeep, 25))
            elif step == "clean":
                upkeep.clean()
            elif step == "wait":
                upkeep.wait(13)
            elif step == "open full":
                write_shard(catalog, storage, open_full_dump(catalog, 16), 0)
            elif step == "open range" and ranges:
                write_shard(catalog, storage, open_range_dump(catalog, upkeep.last_range), 0)
            elif step == "stopped compaction" and len(ranges) > 1:
                serials = SerialRange(ranges[-2].serials.start, ranges[-1].serials.end)
                dump = open_compaction(catalog, serials, ranges[-2].sequence, inputs_of(ranges[-2:]))
                write_file(catalog, storage, dump, 0, joined_rows(storage, ranges[-2:]))
                with suppress(DumpDroppedError):  # it would cross an open full dump
                    begin_commit(catalog, dump, None if choose(["frozen", "checked"]) == "frozen" else lambda _: False)
            elif step == "stopped build":
                build = begin_build(catalog, "modules", allocate_version(catalog, upkeep.serial))
                storage.put(f"{leveldb_path('modules', build.directory)}/000005.ldb", b"table")
            elif step == "killed clean":
                _kill_clean_up(upkeep, int(choose("0123456789")))
            elif step == "lease":
                held.close()
                held.enter_context(lease(catalog, "publish depgraph", ttl_s=20 * HOUR))
            upkeep.assert_whole()
        held.close()
        full_dump(catalog, storage, 16)  # whatever was left open is finished or overtaken
        upkeep.build()
        for _ in range(2):
            upkeep.wait(25)
            upkeep.clean()
        upkeep.assert_whole()
        upkeep.assert_nothing_left_over()
        catalog.close()


def _clean_meanwhile(upkeep: Upkeep, hours: float) -> None:
    """Time passes for a build, in which others clean up."""
    upkeep.wait(hours)
    upkeep.clean()


def _kill_clean_up(upkeep: Upkeep, moment: int) -> None:
    """Ends a clean-up at its deletion number `moment`, if it comes so far."""
    delete, deleted = Storage.delete, 0

    def counted(self: Storage, path: str) -> None:
        nonlocal deleted
        if deleted == moment:
            raise Killed
        deleted += 1
        delete(self, path)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Storage, "delete", counted)
        with suppress(Killed):
            upkeep.clean()
