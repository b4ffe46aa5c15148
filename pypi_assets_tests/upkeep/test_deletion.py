"""Deletions form one chain: its order, its counts, and that a failing link stops no independent link.

After any sequence of dumps, builds, clean-ups and kills, nothing is missing and nothing is left over.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease
from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.publications.allocated_names import allocate_version, begin_build
from pypi_assets.catalog.publications.dump_registry import (
    DumpDroppedError,
    begin_commit,
    committed_dumps,
    open_compaction,
    open_full_dump,
    open_range_dump,
)
from pypi_assets.catalog.reads.stored_contents import store_lists
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.dumps.compaction import compact, joined_rows
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import DUMPS, committed_directories, file_path, manifest_path
from pypi_assets.dumps.dump_writer import commit, write_file, write_shard
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.extracts.packs import EXTRACTS, make_pack, pack_path
from pypi_assets.leveldbs.versions.input_lists import leveldb_path
from pypi_assets.parquet import export_manifest
from pypi_assets.parquet.export import export_parquet
from pypi_assets.resolve.solvability import solvability_path
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import Storage
from pypi_assets.storage.sweeping import DeletionReason, Removal
from pypi_assets.upkeep.deletion import LEASE_NAME, CleanedUp, DeletionChain, Kept, Pruning, kept_from
from pypi_assets.upkeep.old_partitions import OldPartitions
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.kills import killed_at
from pypi_assets_tests.served_index import ServedIndex, served_index
from pypi_assets_tests.upkeep.simulated_upkeep import HOUR, Upkeep, directories

DAY_S = 24 * 3600.0
KEPT = Kept(grace_s=DAY_S, versions=1, exports=1, partition_days=90)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        served.wheel("demo", "1.0")
        yield served


@pytest.fixture
def catalog(index: ServedIndex, tmp_path: Path) -> Iterator[Catalog]:
    """Yield a crawled catalog with two full dumps, the first of which is superseded."""
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    crawl_full(index.crawler(catalog))
    for _ in range(2):
        full_dump(catalog, index.storage, 1, since=catalog.clock())
    yield catalog
    catalog.close()


def later(catalog: Catalog, days: int = 3) -> Catalog:
    return Catalog(catalog.engine, lambda: time.time() + days * DAY_S)


def put_unused_pack(index: ServedIndex) -> str:
    """Store an unreferenced pack, as a killed crawl leaves it."""
    pack = make_pack([])
    index.storage.put(pack_path(pack.name), pack.content)
    return pack_path(pack.name)


def clean(index: ServedIndex, catalog: Catalog, failing: Collection[str] = ()) -> tuple[CleanedUp, list[str]]:
    """Run the chain. Return its deletions, and the stored paths at the time of the Dagster links. Links in `failing`
    fail.
    """
    found: list[str] = []

    def fail(name: str) -> None:
        if name in failing:
            raise RuntimeError(f"no {name}")

    def prune_partitions(_old: OldPartitions) -> int:
        found.extend(stored.path for stored in index.storage.list())
        fail("partitions")
        return 2

    def prune_runs(before: float) -> int:
        assert catalog.clock() - 91 * DAY_S < before < catalog.clock() - 89 * DAY_S
        fail("runs")
        return 3

    chain = DeletionChain(catalog, index.storage, KEPT)
    return chain.clean_all(Pruning(prune_partitions, prune_runs), lambda _count: None), found


def lose_packs(index: ServedIndex) -> None:
    for stored in list(index.storage.list(EXTRACTS)):
        index.storage.delete(stored.path)


def test_chain_deletes_dumps_then_packs_then_partitions(index: ServedIndex, catalog: Catalog) -> None:
    unused = put_unused_pack(index)
    first, second = committed_directories(index.storage)
    now, _ = clean(index, catalog)
    assert (now.counts["superseded"], now.counts["packs"]) == (0, 0)  # nothing is old enough
    cleaned, seen = clean(index, later(catalog))
    assert committed_directories(index.storage) == [second]
    assert not any(f"/{first}/" in path for path in seen)
    assert unused not in seen
    assert any(path.startswith(f"{EXTRACTS}/") for path in seen)  # the pack in use
    counts = cleaned.counts
    assert (counts["superseded"], counts["packs"], counts["partitions"], counts["runs"]) == (1, 1, 2, 3)
    assert counts["files"] == 3  # the dump's file and manifest, and the pack
    assert counts["bytes"] > 0


def test_dry_run_deletes_nothing(index: ServedIndex, catalog: Catalog) -> None:
    unused = put_unused_pack(index)
    before = {stored.path for stored in index.storage.list()}
    chain = DeletionChain(later(catalog), index.storage, KEPT)
    [removal] = chain.clean_publications(dry_run=True)
    assert removal.files == 2
    assert [f"{name}.pack" for name in chain.clean_packs(dry_run=True).deleted] == [unused.rpartition("/")[2]]
    assert {stored.path for stored in index.storage.list()} == before


def test_rows_are_deleted_by_the_chain_and_by_their_own_link(index: ServedIndex, catalog: Catalog) -> None:
    with catalog.write() as connection:
        store_lists(connection, [["nothing-requires-it"]])
    chain = DeletionChain(later(catalog), index.storage, KEPT)
    found = chain.clean_rows(dry_run=True)
    assert found == {"visits": 0, "requested_visits": 0, "read_attempts": 0, "name_lists": 1, "shared_details": 0}
    cleaned, _ = clean(index, later(catalog))
    assert cleaned.rows == found | {"leveldb_versions": 0, "dumps": 0}
    assert cleaned.counts["rows"] == 1
    long_after = Catalog(catalog.engine, lambda: time.time() + 200 * DAY_S)
    [first, *_] = [dump.directory for dump in committed_dumps(catalog)]
    assert DeletionChain(long_after, index.storage, KEPT).clean_rows()["dumps"] == 1  # the superseded dump
    assert open_full_dump(catalog, 1).directory not in {first, f"{first}.2"}


def test_each_link_deletes_only_its_own_objects(index: ServedIndex, catalog: Catalog) -> None:
    unused = put_unused_pack(index)
    first, second = committed_directories(index.storage)
    chain = DeletionChain(later(catalog), index.storage, KEPT)
    assert len(chain.clean_packs().deleted) == 1
    assert unused not in {stored.path for stored in index.storage.list()}
    assert committed_directories(index.storage) == [first, second]
    unused = put_unused_pack(index)
    assert len(list(chain.clean_publications())) == 1
    assert unused in {stored.path for stored in index.storage.list()}
    assert committed_directories(index.storage) == [second]


def test_only_one_chain_runs_at_a_time(index: ServedIndex, catalog: Catalog) -> None:
    with lease(catalog, LEASE_NAME), pytest.raises(LeaseTakenError):
        clean(index, catalog)


def test_packs_of_another_catalog_stop_no_other_link(index: ServedIndex, catalog: Catalog) -> None:
    _, second = committed_directories(index.storage)
    lose_packs(index)
    cleaned, _ = clean(index, later(catalog))
    [(name, error)] = cleaned.failures.items()
    assert name == "packs"
    assert isinstance(error, CatalogError)
    assert committed_directories(index.storage) == [second]
    counts = cleaned.counts
    assert (counts["superseded"], counts["files"], counts["partitions"], counts["runs"]) == (1, 2, 2, 3)
    assert "packs" not in counts


def test_dumps_of_another_catalog_keep_exports_and_stop_no_other_link(index: ServedIndex, catalog: Catalog) -> None:
    unused = put_unused_pack(index)
    export = export_parquet(catalog, index.storage).export
    full_dump(catalog, index.storage, 1, since=catalog.clock())
    export_parquet(catalog, index.storage)  # supersedes the first export
    for stored in list(index.storage.list(DUMPS)):
        index.storage.delete(stored.path)
    cleaned, seen = clean(index, later(catalog))
    assert list(cleaned.failures) == ["LevelDB versions, dumps and exports"]
    assert export_manifest.manifest_path(export.directory) in seen
    assert unused not in seen
    counts = cleaned.counts
    assert (counts["superseded"], counts["packs"], counts["partitions"], counts["runs"]) == (0, 1, 2, 3)


def test_failing_packs_partitions_and_runs_stop_no_other_link(index: ServedIndex, catalog: Catalog) -> None:
    without_partitions, _ = clean(index, catalog, {"partitions"})
    assert list(without_partitions.failures) == ["partitions"]
    assert without_partitions.counts["runs"] == 3
    assert "partitions" not in without_partitions.counts
    lose_packs(index)
    nothing_left, seen = clean(index, catalog, {"partitions", "runs"})
    assert list(nothing_left.failures) == ["packs", "partitions", "runs"]
    assert [str(error) for error in nothing_left.failures.values()][1:] == ["no partitions", "no runs"]
    assert seen  # partitions were tried after packs had failed
    assert nothing_left.counts == {
        "superseded": 0,
        "abandoned": 0,
        "files": 0,
        "bytes": 0,
        "rows": 0,
        "days": 0,
        "journal": 0,
        "kept_files": 0,
    }


def test_days_of_solvability_are_deleted_long_after_creation(index: ServedIndex, catalog: Catalog) -> None:
    path = solvability_path(date(2026, 3, 1))
    index.storage.put(path, b"a day")
    before = clean(index, later(catalog, 399))[0].counts
    assert before["days"] == 0
    assert DeletionChain(later(catalog, 401), index.storage, KEPT).clean_days(dry_run=True)
    assert index.storage.exists(path)
    counts = clean(index, later(catalog, 401))[0].counts
    assert (counts["days"], counts["files"], counts["bytes"]) == (1, 1, 5)
    assert not index.storage.exists(path)


def test_retention_follows_the_settings(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, superseded_kept_hours=2, leveldb_versions_kept=4, parquet_exports_kept=5)
    assert kept_from(settings) == Kept(2 * 3600, 4, 5, settings.partitions_kept_days)
    settings = load_settings(home=tmp_path, visits_kept_days=7, read_attempts_kept_days=8)
    assert kept_from(settings) == Kept(24 * 3600, 3, 2, settings.partitions_kept_days, 7, 8)
    assert kept_from(load_settings(home=tmp_path, solvability_kept_days=9)).solvability_days == 9


def test_expired_lease_holder_publishes_nothing(upkeep: Upkeep) -> None:
    with lease(upkeep.catalog, "publish modules", ttl_s=HOUR) as held:
        upkeep.wait(2)
        upkeep.clean(dry_run=True)
        held.renew()
        upkeep.wait(2)
        upkeep.clean()
        with pytest.raises(LeaseTakenError):
            held.renew()


def test_remains_of_stopped_attempts_are_deleted_after_a_day(upkeep: Upkeep) -> None:
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
    assert directories(upkeep.clean()) == dict.fromkeys(expected, DeletionReason.ABANDONED)
    with pytest.raises(DumpDroppedError):  # its writer resumes
        commit(catalog, storage, stopped)
    assert committed_directories(storage) == ["0-3", "3-6", "88-99"]
    upkeep.dump_range()
    upkeep.assert_whole()


def test_remains_of_a_killed_put_are_deleted_after_a_day(upkeep: Upkeep) -> None:
    left = upkeep.storage.local_path("modules/leveldbs/00001/CURRENT#1")
    assert left is not None
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    upkeep.wait(23)
    assert upkeep.clean() == []
    upkeep.wait(2)
    for dry_run in (True, False):
        removed = [Removal("modules/leveldbs/00001/CURRENT#1", DeletionReason.ABANDONED, 1, 4)]
        assert upkeep.clean(dry_run=dry_run) == removed
    assert not left.exists()


STEPS = [
    *["range", "range", "range", "compact", "compact all", "full", "redo", "build", "build", "clean", "clean"],
    *["wait", "wait", "open full", "open range", "stopped compaction", "stopped build", "killed clean", "lease"],
    *["range", "build", "rebuild", "clean while building", "late build"],
]


@pytest.mark.nightly
@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=16), st.randoms(use_true_random=False))
def test_any_sequence_leaves_nothing_missing_or_left_over(steps: list[str], random: object) -> None:
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
                dump = open_compaction(catalog, ranges[-2:])
                write_file(catalog, storage, dump, 0, joined_rows(storage, ranges[-2:]))
                with suppress(DumpDroppedError):  # it would cross an open full dump
                    begin_commit(catalog, dump, None if choose(["frozen", "checked"]) == "frozen" else lambda _: False)
            elif step == "stopped build":
                build = begin_build(catalog, "modules", allocate_version(catalog, upkeep.serial))
                storage.put(f"{leveldb_path('modules', build.directory)}/000005.ldb", b"table")
            elif step == "killed clean":
                with killed_at(1 + int(choose("0123456789")), (Storage, "delete"), moments=["before"]):
                    upkeep.clean()
            elif step == "lease":
                held.close()
                held.enter_context(lease(catalog, "publish depgraph", ttl_s=20 * HOUR))
            upkeep.assert_whole()
        held.close()
        full_dump(catalog, storage, 16)  # unfinished dumps are completed or overtaken
        upkeep.build()
        for _ in range(2):
            upkeep.wait(25)
            upkeep.clean()
        upkeep.assert_whole()
        upkeep.assert_nothing_left_over()
        catalog.close()


def _clean_meanwhile(upkeep: Upkeep, hours: float) -> None:
    """Let time pass during a build, while another process cleans up."""
    upkeep.wait(hours)
    upkeep.clean()
