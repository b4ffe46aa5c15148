"""For any history of dumps, compactions, redone dumps, reprocessing, updates and clean-ups, each new version equals its
rebuild record by record and matches the catalog at its serial.
"""

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from pypi_assets.catalog.coordination.leases import LeaseTakenError
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import read_state
from pypi_assets.catalog.publications.dump_columns import DumpFormat
from pypi_assets.catalog.publications.dump_registry import (
    Dump,
    DumpDroppedError,
    open_compaction,
    open_full_dump,
    open_range_dump,
)
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.dumps.compaction import compact, joined_rows
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_writer import (
    commit,
    missing_ranges,
    write_file,
    write_missing_ranges,
    write_range,
    write_shard,
)
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records as depgraph
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions import shared_reading
from pypi_assets.leveldbs.versions.input_lists import newest_serials, published_versions
from pypi_assets.leveldbs.versions.publish import BuildResult, build_version
from pypi_assets.leveldbs.versions.shared_reading import HELD_BYTES, LEASE_TTL_S, SharedReading
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup.latest import open_latest
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

HISTORIES = examples(25)
MEMORY = next(
    (folder for folder in ("/dev/shm",) if Path(folder).is_dir()), None
)  # waiting for the disk takes most of the time
HOUR = 3600.0
PROJECTS = ("Alpha", "beta.pkg")
FILES = {
    f"{project.lower().replace('.', '_')}-{version}{ending}": (project, version)
    for project in PROJECTS
    for version in ("1.0", "2")
    for ending in (".tar.gz", ".zip", "-py3-none-any.whl", "-py2-none-any.whl")
}


class Known(NamedTuple):
    """The read result of a file. None stands for unreadable."""

    modules: tuple[str, ...] | None
    requires_dist: tuple[str, ...] | None


@dataclass
class File:
    """The read results of a file, the newest last, and the dumps that have the newest: ranges beyond a serial, and full
    dumps from a sequence on.
    """

    known: list[Known]
    published_at: float = 0
    published_from: int = 0


files = st.sampled_from(list(FILES))
knowledge = st.builds(
    Known,
    st.none() | st.lists(st.sampled_from(["a", "a.b", "c"]), max_size=3, unique=True).map(tuple),
    st.none()
    | st.lists(st.sampled_from(["alpha", "other>1", "alpha; extra=='x'"]), max_size=2, unique=True).map(tuple),
)


class Published(RuleBasedStateMachine):
    """A catalog that changes, and the versions published from it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.ahead_s = 0.0
        self.small = small_catalog(Path(self.folder.name), clock=lambda: time.time() + self.ahead_s)
        self.catalog = self.small.catalog
        self.storage = open_storage(Path(self.folder.name, "storage").as_uri())
        self.serial = self.allocated = 0
        self.files: dict[str, File] = {}
        self.live: set[str] = set()
        self.yanked: set[str] = set()
        self.quarantined: dict[str, set[str]] = {}
        self.shown: dict[int, set[tuple[str, bool]]] = {0: set()}
        self.stopped: list[Dump] = []

    def teardown(self) -> None:
        try:
            self.finish()
        finally:
            self.catalog.close()
            self.folder.cleanup()

    @initialize(filenames=st.lists(files, min_size=1, unique=True), known=knowledge)
    def begin(self, filenames: list[str], known: Known) -> None:
        for filename in filenames:
            self.show(filename, known)
        self.complete(0)
        full_dump(self.catalog, self.storage, 1)

    # Changes

    @rule(filename=files, known=knowledge)
    def show(self, filename: str, known: Known) -> None:
        """Show a new file, or one that was removed before."""
        if filename in self.live:
            return
        if filename in self.files:
            self.small.show_again(self.next_serial(), filename)
        else:
            project, version = FILES[filename]
            self.small.add(self.next_serial(), project, version, filename, **known._asdict())
            self.files[filename] = File([known])
        self.live.add(filename)
        self.note()

    @rule(filename=files)
    def remove(self, filename: str) -> None:
        if filename in self.live:
            self.small.remove(self.next_serial(), filename)
            self.live.remove(filename)
            self.note()

    @rule(filename=files)
    def yank_or_unyank(self, filename: str) -> None:
        if filename in self.files:
            (self.small.unyank if filename in self.yanked else self.small.yank)(self.next_serial(), filename)
            self.yanked ^= {filename}
            self.note()

    @rule(project=st.sampled_from(PROJECTS))
    def quarantine_or_clear(self, project: str) -> None:
        """Quarantine a project, which hides all its files, or clear it, which shows the files that are not back yet."""
        if project in self.quarantined:
            back = self.quarantined.pop(project) - self.live
            self.small.show_again(self.next_serial(), *back)
            self.live |= back
        else:
            self.quarantined[project] = {filename for filename in self.live if FILES[filename][0] == project}
            self.small.remove(self.next_serial(), *self.quarantined[project])
            self.live -= self.quarantined[project]
        self.note()

    @rule(filename=files, known=knowledge)
    def read_late(self, filename: str, known: Known) -> None:
        if filename in self.files:
            published_at = self.small.read(filename, *known)
            self.learn(filename, known, published_at)

    @rule(filename=files, known=knowledge)
    def reprocess(self, filename: str, known: Known) -> None:
        if filename in self.files:
            self.small.reprocess(filename, *known)
            self.learn(filename, known, math.inf)

    def learn(self, filename: str, known: Known, published_at: float) -> None:
        with self.catalog.read() as connection:
            published_from = read_state(connection)["next_dump_sequence"]
        self.files[filename] = File([*self.files[filename].known, known], published_at, published_from)

    def next_serial(self) -> int:
        self.serial += 1
        return self.serial

    def note(self) -> None:
        self.shown[self.serial] = {(filename, filename in self.yanked) for filename in self.live}

    # Publishing

    @rule(gap=st.integers(0, 2))
    def complete(self, gap: int) -> None:
        if self.serial > self.allocated:
            self.serial += gap
            self.note()
            self.small.complete(self.serial)
            self.allocated = self.serial

    @rule(gap=st.integers(0, 2))
    def complete_and_dump(self, gap: int) -> None:
        self.complete(gap)
        list(write_missing_ranges(self.catalog, self.storage))

    @rule(choose=st.randoms(use_true_random=False))
    def dump_any_range(self, choose: Random) -> None:
        if ranges := missing_ranges(self.catalog):
            write_range(self.catalog, self.storage, choose.choice(ranges))

    @rule(choose=st.randoms(use_true_random=False))
    def dump_a_range_again(self, choose: Random) -> None:
        if ranges := [dump for dump in cover(self.catalog).dumps[1:] if not dump.inputs and not dump.is_late]:
            write_range(self.catalog, self.storage, choose.choice(ranges).serials, again=True)

    @rule(form=st.sampled_from(DumpFormat))
    def write_dumps_in_another_format(self, form: DumpFormat) -> None:
        self.catalog = self.small.catalog = replace(self.catalog, dump_ending=form.ending)

    @rule(growth=st.integers(1, 2), is_held=st.booleans())
    def compact(self, growth: int, is_held: bool) -> None:
        held = newest_serials(self.storage, DATASETS) if is_held else []
        list(compact(self.catalog, self.storage, held=held, growth=growth))

    @rule(shards=st.sampled_from([1, 1, 4, 16]))
    def go_on_with_a_full_dump(self, shards: int) -> None:
        full_dump(self.catalog, self.storage, shards)

    @rule(shards=st.sampled_from([1, 1, 4, 16]))
    def redo_the_full_dump(self, shards: int) -> None:
        full_dump(self.catalog, self.storage, shards, since=self.catalog.clock())

    @rule(wanted=st.sets(st.integers(0, 15), max_size=3))
    def stop_in_a_full_dump(self, wanted: set[int]) -> None:
        dump = open_full_dump(self.catalog, 16)
        for shard in wanted:
            write_shard(self.catalog, self.storage, dump, shard)

    @precondition(lambda self: len(cover(self.catalog).dumps) > 2)
    @rule(choose=st.randoms(use_true_random=False))
    def stop_in_a_compaction(self, choose: Random) -> None:
        ranges = cover(self.catalog).dumps[1:]
        start = choose.randrange(len(ranges) - 1)
        joined = ranges[start : choose.randrange(start + 2, len(ranges) + 1)]
        dump = open_compaction(self.catalog, joined)
        write_file(self.catalog, self.storage, dump, 0, joined_rows(self.storage, joined))
        self.stopped.append(dump)

    @precondition(lambda self: len(cover(self.catalog).dumps) > 1)
    @rule(choose=st.randoms(use_true_random=False))
    def stop_in_a_range(self, choose: Random) -> None:
        if ranges := [dump for dump in cover(self.catalog).dumps[1:] if not dump.inputs and not dump.is_late]:
            dump = open_range_dump(self.catalog, choose.choice(ranges).serials)
            write_shard(self.catalog, self.storage, dump, 0)
            self.stopped.append(dump)

    @precondition(lambda self: self.stopped)
    @rule(choose=st.randoms(use_true_random=False))
    def wake_up(self, choose: Random) -> None:
        dump = self.stopped.pop(choose.randrange(len(self.stopped)))
        with suppress(DumpDroppedError):
            commit(self.catalog, self.storage, dump)

    @rule(hours=st.sampled_from([1, 25]))
    def clean_up(self, hours: int) -> None:
        """Clean up as if `hours` had passed since the last writes."""
        self.ahead_s += hours * HOUR
        list(clean_versions_and_dumps(self.catalog, self.storage, grace_s=0, versions_kept=2))

    @rule(are_shared=st.booleans(), held_bytes=st.sampled_from([0, HELD_BYTES]))
    def update(self, are_shared: bool, held_bytes: int) -> None:
        with pytest.MonkeyPatch.context() as limits, SharedReading(DATASETS) as shared:
            limits.setattr(shared_reading, "HELD_BYTES", held_bytes)
            for dataset in shared.names:
                result = build_version(
                    dataset, storage=self.storage, catalog=self.catalog, shared=shared if are_shared else None
                )
                if result.published:
                    assert verify(dataset, result.version, storage=self.storage, deep=True).problems == ()
        self.newest_holds_what_the_catalog_shows()

    @rule(dataset=st.sampled_from(list(DATASETS)))
    def update_one(self, dataset: str) -> None:
        """Build one dataset, so that the next update finds the others at an earlier serial."""
        build_version(dataset, storage=self.storage, catalog=self.catalog)

    # Invariants

    def newest_holds_what_the_catalog_shows(self) -> None:
        covered = cover(self.catalog)
        with open_latest("depgraph", self.storage) as depgraph, open_latest("modules", self.storage) as modules:
            assert depgraph.serial == modules.serial == covered.serial
            by_filename = {row["filename"]: row for row in depgraph.projects()}
            provided = {
                (row["project"], version, row["module"]) for row in modules.modules() for version in row["versions"]
            }
        with open_latest("commands", self.storage) as commands, open_latest("hashes", self.storage) as hashes:
            assert commands.serial == hashes.serial == covered.serial
            installed = {
                (row["project"], version, row["command"]) for row in commands.commands() for version in row["versions"]
            }
            assert {row["filename"]: row["sha256"] for row in hashes.files()} == {
                filename: row["sha256"] for filename, row in by_filename.items()
            }
        shown = self.shown[max(serial for serial in self.shown if serial <= covered.serial)]
        assert {(filename, row["yanked"]) for filename, row in by_filename.items()} == shown
        assert {(file.filename, file.yanked) for file in live_files(self.catalog, covered.serial)} == shown
        certain, possible = set(), set()
        for filename, row in by_filename.items():
            assert (row["project"], row["version"]) == FILES[filename]
            file = self.files[filename]
            is_published = covered.serial >= file.published_at or covered.dumps[0].sequence >= file.published_from
            published = file.known[-1:] if is_published else file.known
            requires_dist = row["requires_dist"]
            assert (None if requires_dist is None else tuple(requires_dist)) in {
                known.requires_dist for known in published
            }
            by_list = [{(*FILES[filename], module) for module in known.modules or ()} for known in published]
            certain |= set.intersection(*by_list)
            possible |= set.union(*by_list)
        assert certain <= provided <= possible
        assert certain <= installed <= possible

    def finish(self) -> None:
        """Complete all pending work and publish the reprocessed results."""
        self.complete_and_dump(0)
        self.update(are_shared=False, held_bytes=0)
        full_dump(self.catalog, self.storage, 1, since=self.catalog.clock())
        self.update(are_shared=True, held_bytes=0)
        self.clean_up(25)
        for dataset in DATASETS:
            for version in published_versions(self.storage, dataset):
                assert verify(dataset, version, storage=self.storage, deep=True).problems == ()


def test_random_histories_keep_the_invariants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depgraph, "FEW_FILES", 3)
    histories = settings(
        max_examples=HISTORIES,
        stateful_step_count=20,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
    )
    run_state_machine_as_test(Published, settings=histories)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    """Yield a catalog that is complete up to 100, with two wheels of demo 1.0 and two sdists of demo 2.0."""
    small = small_catalog(tmp_path)
    small.add(1, "demo", "1.0", "demo-1.0-py3-none-any.whl", modules=("a", "b"), requires_dist=("x", "y"))
    small.add(2, "demo", "1.0", "demo-1.0-py2-none-any.whl", modules=("a", "c"), requires_dist=("x", "z"))
    small.add(3, "demo", "2.0", "demo-2.0.tar.gz", modules=("a", "b"), requires_dist=("x",))
    small.add(4, "demo", "2.0", "demo-2.0.zip", modules=("a", "c"), requires_dist=None)
    small.complete(100)
    yield small
    small.catalog.close()


@pytest.fixture
def storage(small: SmallCatalog, tmp_path: Path) -> Storage:
    """Return a folder with a full dump and a version of each dataset up to serial 100."""
    storage = open_storage((tmp_path / "storage").as_uri())
    full_dump(small.catalog, storage, 1)
    update(small.catalog, storage)
    return storage


def update(catalog: Catalog, storage: Storage) -> list[BuildResult]:
    """Build the next version of each dataset, with one reading, and verify that it equals its rebuild."""
    with SharedReading(DATASETS) as shared:
        results = [build_version(name, storage=storage, catalog=catalog, shared=shared) for name in shared.names]
    for result in results:
        assert verify(result.dataset, result.version, storage=storage, deep=True).problems == ()
    return results


def dump(small: SmallCatalog, storage: Storage, end: int) -> None:
    write_range(small.catalog, storage, small.complete(end))
    update(small.catalog, storage)


def contents_of_demo(storage: Storage) -> tuple[list[str], dict[str, list[str]], dict[str, list[str]]]:
    """Return the files of demo, its versions that provide each module, and its versions that require each project."""
    with open_latest("depgraph", storage) as depgraph, open_latest("modules", storage) as modules:
        files = [result["filename"] for result in depgraph.project("demo").results]
        provided = {result["module"]: result["versions"] for result in modules.modules()}
        required = {result["required"]: result["always"] for result in depgraph.all_dependents()}
    return files, provided, required


def test_removing_one_of_two_wheels_keeps_the_release(small: SmallCatalog, storage: Storage) -> None:
    both = ["1.0", "2.0"]
    assert contents_of_demo(storage)[1:] == ({"a": both, "b": both, "c": both}, {"x": both, "y": ["1.0"], "z": ["1.0"]})
    small.remove(110, "demo-1.0-py2-none-any.whl")
    dump(small, storage, 120)
    files, provided, required = contents_of_demo(storage)
    assert files == ["demo-1.0-py3-none-any.whl", "demo-2.0.tar.gz", "demo-2.0.zip"]
    assert provided == {"a": both, "b": both, "c": ["2.0"]}
    assert required == {"x": both, "y": ["1.0"]}


@pytest.mark.parametrize(("goes", "stays", "module"), [(".tar.gz", ".zip", "c"), (".zip", ".tar.gz", "b")])
def test_removing_one_of_two_sdists_keeps_the_release(
    small: SmallCatalog, storage: Storage, goes: str, stays: str, module: str
) -> None:
    small.remove(110, f"demo-2.0{goes}")
    dump(small, storage, 120)
    files, provided, required = contents_of_demo(storage)
    assert files[2:] == [f"demo-2.0{stays}"]
    assert [name for name, versions in provided.items() if "2.0" in versions] == ["a", module]
    assert required["x"] == (["1.0"] if stays == ".zip" else ["1.0", "2.0"])


def test_file_history_across_range_ends_equals_a_rebuild(small: SmallCatalog, storage: Storage) -> None:
    filename = "demo-3.0.zip"
    small.add(110, "demo", "3.0", filename)
    dump(small, storage, 110)  # its range ends with the event
    assert filename in contents_of_demo(storage)[0]
    small.remove(111, *contents_of_demo(storage)[0])
    dump(small, storage, 120)
    assert contents_of_demo(storage) == ([], {}, {})
    small.show_again(120 + 1, filename)
    small.remove(122, filename)
    dump(small, storage, 130)
    assert contents_of_demo(storage) == ([], {}, {})
    small.show_again(131, filename, "demo-2.0.zip")
    dump(small, storage, 140)
    assert contents_of_demo(storage)[0] == ["demo-2.0.zip", filename]
    incremental = update(small.catalog, storage)
    list(compact(small.catalog, storage, growth=1))
    rebuilt = [build_version(name, storage=storage, catalog=small.catalog, from_scratch=True) for name in DATASETS]
    assert [one.content_hash for one in rebuilt] == [one.content_hash for one in incremental]


def test_late_read_in_a_sealed_range_is_in_the_next_range(small: SmallCatalog, storage: Storage) -> None:
    small.add(110, "demo", "3.0", "demo-3.0.zip", modules=None, requires_dist=None)
    dump(small, storage, 120)
    assert small.read("demo-3.0.zip", ("late",), ("later",)) == 121
    assert "late" not in contents_of_demo(storage)[1]
    dump(small, storage, 130)
    assert contents_of_demo(storage)[1]["late"] == contents_of_demo(storage)[2]["later"] == ["3.0"]


def test_full_dump_redone_between_compactions_is_covered(small: SmallCatalog, storage: Storage) -> None:
    for start in (100, 110, 120, 130, 140, 150):
        add_range(small, storage, start, serials=10)
        if start in {120, 150}:
            list(compact(small.catalog, storage, growth=1))
            update(small.catalog, storage)
        if start == 120:
            small.reprocess("demo-2.0.zip", ("anew",), ("new",))
            full_dump(small.catalog, storage, 16, since=small.catalog.clock())
    assert cover(small.catalog).directories == ("0-130", "130-160")
    files, provided, required = contents_of_demo(storage)
    assert len(files) == 4
    assert provided["anew"] == required["new"] == ["2.0"]
    assert provided["demo"] == [str(start) for start in range(100, 160, 10)]


def test_writer_with_an_expired_lease_changes_nothing(small: SmallCatalog, storage: Storage) -> None:
    now = time.time()
    catalog = replace(small.catalog, clock=lambda: now)
    add_range(small, storage, 100)
    quicker: list[BuildResult] = []

    def stall(_rows: int) -> None:
        nonlocal now
        if not quicker:
            now += 2 * LEASE_TTL_S
            add_range(small, storage, 150)
            quicker.extend(update(catalog, storage))

    with pytest.raises(LeaseTakenError):
        build_version("modules", storage=storage, catalog=catalog, progress=stall)
    assert quicker[0].published
    assert published_versions(storage, "modules")[-1] == quicker[0].version
    assert quicker[0].serial == 200
    assert mentions(update(catalog, storage)[0].reason, f"version {quicker[0].version}")
