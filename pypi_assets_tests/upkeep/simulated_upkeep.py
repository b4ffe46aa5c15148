"""A catalog and a storage whose time passes on demand: dumps and LevelDB versions come, and clean-ups delete them."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.publications.dump_registry import (
    DumpState,
    known_dumps,
)
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import (
    MANIFEST_NAME,
    committed_directories,
    file_path,
    manifest_path,
    read_manifest,
)
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.dump_writer import missing_ranges, write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.versions.input_lists import input_list_path, published_versions, read_input_list
from pypi_assets.leveldbs.versions.leveldb_manifest import check_sizes, read_published
from pypi_assets.leveldbs.versions.publish import BuildResult, Progress, build_version
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.storage.sweeping import DeletionReason, Removal
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

HOUR = 3600.0
KEPT = 2


@dataclass
class Upkeep:
    """A catalog and a storage whose time passes on demand, and files that are added and removed."""

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
        """Let time pass. Files written since the last call get the time of their writing."""
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
        """Return all stored paths, except published.json and its parts."""
        return {stored.path for stored in self.storage.list() if not stored.path.startswith("published")}

    def assert_whole(self) -> None:
        """Check that the cover leads to the live files, and that all versions and their inputs exist."""
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
        """Check that each stored object has a reason to exist."""
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


def directories(removed: Sequence[Removal]) -> dict[str, DeletionReason]:
    return {removal.path.rpartition("/")[2]: removal.reason for removal in removed}
