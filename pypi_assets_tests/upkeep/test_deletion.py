"""What may be deleted is one chain: its order, what it counts, and that a link that fails stops no independent one."""

import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease
from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.dumps.dump_manifest import committed_directories
from pypi_assets.dumps.dump_paths import DUMPS
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.extracts.packs import EXTRACTS, make_pack, pack_path
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_paths import manifest_path
from pypi_assets.settings import load_settings
from pypi_assets.upkeep.deletion import LEASE_NAME, CleanedUp, Kept, Pruning, clean_all, clean_publications, kept_from
from pypi_assets.upkeep.old_partitions import OldPartitions
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex, served_index

DAY_S = 24 * 3600.0
KEPT = Kept(grace_s=DAY_S, versions=1, exports=1, partition_days=90)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        served.wheel("demo", "1.0")
        yield served


@pytest.fixture
def catalog(index: ServedIndex, tmp_path: Path) -> Iterator[Catalog]:
    """A crawled catalog with two full dumps, of which the first has been superseded."""
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    crawl_full(index.crawler(catalog))
    for _ in range(2):
        full_dump(catalog, index.storage, 1, since=catalog.clock())
    yield catalog
    catalog.close()


def later(catalog: Catalog) -> Catalog:
    return Catalog(catalog.engine, lambda: time.time() + 3 * DAY_S)


def put_unused_pack(index: ServedIndex) -> str:
    """A pack of nothing, as a crawl that was killed leaves it."""
    pack = make_pack([])
    index.storage.put(pack_path(pack.name), pack.content)
    return pack_path(pack.name)


def clean(index: ServedIndex, catalog: Catalog, failing: Collection[str] = ()) -> tuple[CleanedUp, list[str]]:
    """What the chain deleted, and what was in the storage when it came to Dagster, of which these removals fail."""
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

    return clean_all(catalog, index.storage, KEPT, Pruning(prune_partitions, prune_runs), lambda _count: None), found


def lose_packs(index: ServedIndex) -> None:
    for stored in list(index.storage.list(EXTRACTS)):
        index.storage.delete(stored.path)


def test_dumps_then_packs_then_partitions(index: ServedIndex, catalog: Catalog) -> None:
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


def test_a_dry_run_deletes_nothing(index: ServedIndex, catalog: Catalog) -> None:
    before = {stored.path for stored in index.storage.list()}
    [removal] = clean_publications(later(catalog), index.storage, KEPT, dry_run=True)
    assert removal.files == 2
    assert {stored.path for stored in index.storage.list()} == before


def test_one_chain_at_a_time(index: ServedIndex, catalog: Catalog) -> None:
    with lease(catalog, LEASE_NAME), pytest.raises(LeaseTakenError):
        clean(index, catalog)


def test_packs_of_another_catalog_stop_no_other_link(index: ServedIndex, catalog: Catalog) -> None:
    _, second = committed_directories(index.storage)
    lose_packs(index)
    cleaned, _ = clean(index, later(catalog))
    [(name, error)] = cleaned.failures.items()
    assert name == "packs"
    assert isinstance(error, CatalogError)
    assert "seems to belong to another catalog" in str(error)
    assert committed_directories(index.storage) == [second]
    counts = cleaned.counts
    assert (counts["superseded"], counts["files"], counts["partitions"], counts["runs"]) == (1, 2, 2, 3)
    assert "packs" not in counts


def test_dumps_of_another_catalog_keep_exports_and_stop_no_other_link(index: ServedIndex, catalog: Catalog) -> None:
    unused = put_unused_pack(index)
    export = export_parquet(catalog, index.storage).export
    full_dump(catalog, index.storage, 1, since=catalog.clock())
    export_parquet(catalog, index.storage)  # supersedes the first
    for stored in list(index.storage.list(DUMPS)):
        index.storage.delete(stored.path)
    cleaned, seen = clean(index, later(catalog))
    [(name, error)] = cleaned.failures.items()
    assert name == "LevelDB versions, dumps and exports"
    assert "which is in use, is not there" in str(error)
    assert manifest_path(export.directory) in seen
    assert unused not in seen
    counts = cleaned.counts
    assert (counts["superseded"], counts["packs"], counts["partitions"], counts["runs"]) == (0, 1, 2, 3)


def test_partitions_and_runs_stop_each_other_no_more_than_packs_stop_them(index: ServedIndex, catalog: Catalog) -> None:
    without_partitions, _ = clean(index, catalog, {"partitions"})
    assert list(without_partitions.failures) == ["partitions"]
    assert without_partitions.counts["runs"] == 3
    assert "partitions" not in without_partitions.counts
    lose_packs(index)
    nothing_left, seen = clean(index, catalog, {"partitions", "runs"})
    assert list(nothing_left.failures) == ["packs", "partitions", "runs"]
    assert [str(error) for error in nothing_left.failures.values()][1:] == ["no partitions", "no runs"]
    assert seen  # partitions were tried after packs had failed
    assert nothing_left.counts == {"superseded": 0, "abandoned": 0, "files": 0, "bytes": 0}


def test_what_is_kept_follows_from_the_settings(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, superseded_kept_hours=2, leveldb_versions_kept=4, parquet_exports_kept=5)
    assert kept_from(settings) == Kept(2 * 3600, 4, 5, settings.partitions_kept_days)
