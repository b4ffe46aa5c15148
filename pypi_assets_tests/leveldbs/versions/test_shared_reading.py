"""Builds of several datasets that follow one another read each dump once, and publish what separate builds publish."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.build import loading
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.versions import shared_reading
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.private_copy import copy_published
from pypi_assets.leveldbs.versions.publish import BuildResult, build_version
from pypi_assets.leveldbs.versions.shared_reading import LEASE_TTL_S, SharedReading
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.storage.store import Storage
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.compaction import compact
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.small_catalog import SmallCatalog

Contents = dict[str, dict[bytes, bytes]]


@contextmanager
def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count how often each file of a dump is opened in this process."""
    opened: Counter[str] = Counter()
    without = Storage.open

    def count(storage: Storage, path: str, *arguments: object) -> object:
        if "/python_distribution_data" in path:
            opened[path] += 1
        return without(storage, path, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "open", count)
        yield opened


def build_all(catalog: Catalog, storage: Storage, **options: bool) -> list[BuildResult]:
    with SharedReading(DATASETS) as shared:
        return [
            build_version(name, storage=storage, catalog=catalog, shared=shared, **options)  # type: ignore[arg-type]
            for name in shared.names
        ]


def contents(storage: Storage, results: list[BuildResult], folder: Path) -> Contents:
    """Return all records of these versions by dataset, and verify each version."""
    found = {}
    for result in results:
        assert verify(result.dataset, result.version, storage=storage, deep=True).problems == ()
        path = folder / f"{result.dataset}-{result.version}"
        copy_published(storage, read_published(storage, result.dataset, result.version), path, None)
        with open_leveldb(path, "a test") as db:
            found[result.dataset] = dict(db.iterator())
    return found


@pytest.mark.parametrize("least_rows", [1, 50_000])
def test_shared_build_from_scratch_has_the_records_of_separate_builds(
    small: SmallCatalog, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least_rows: int
) -> None:
    add_range(small, storage, 100)
    monkeypatch.setattr(loading, "LEAST_ROWS", least_rows)
    with counted_reads(monkeypatch) as opened:
        together = build_all(small.catalog, storage)
    alone = [build_version(name, storage=storage, catalog=small.catalog, from_scratch=True) for name in DATASETS]
    assert [result.base_version for result in (*together, *alone)] == [None] * 10
    assert contents(storage, together, tmp_path) == contents(storage, alone, tmp_path)
    assert list((storage.root or Path()).glob(".private/*")) == []
    of_full = [count for path, count in opened.items() if "/0-100/" in path]
    assert of_full == ([] if least_rows == 1 else [1])  # by other processes, or by this one


@pytest.mark.parametrize("ranges", [1, 3])
@pytest.mark.parametrize("held_bytes", [0, shared_reading.HELD_BYTES])
def test_shared_update_reads_each_dump_once(
    small: SmallCatalog,
    storage: Storage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ranges: int,
    held_bytes: int,
) -> None:
    base = build_all(small.catalog, storage)
    directories = [add_range(small, storage, start) for start in range(100, 100 + 50 * ranges, 50)]
    monkeypatch.setattr(shared_reading, "HELD_BYTES", held_bytes)
    with counted_reads(monkeypatch) as opened:
        results = build_all(small.catalog, storage)
    assert [result.base_version for result in results] == [result.version for result in base]
    contents(storage, results, tmp_path)
    counts = [count for path, count in opened.items() if any(f"/{name}/" in path for name in directories)]
    assert len(counts) == ranges
    if held_bytes:
        assert set(counts) == {1}
    else:  # abandoned at the first row, and then streamed, or read once into a database
        assert set(counts) <= ({1 + len(DATASETS)} if ranges == 1 else {1, 2})


@pytest.mark.parametrize("held_bytes", [0, shared_reading.HELD_BYTES])
def test_shared_update_of_datasets_at_different_serials_updates_each(
    small: SmallCatalog, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_bytes: int
) -> None:
    build_all(small.catalog, storage)
    add_range(small, storage, 100)
    for name in list(DATASETS)[1::2]:
        build_version(name, storage=storage, catalog=small.catalog)
    for start in (150, 200):
        add_range(small, storage, start)
    monkeypatch.setattr(shared_reading, "HELD_BYTES", held_bytes)
    results = build_all(small.catalog, storage)
    assert {(result.serial, result.base_version is None) for result in results} == {(250, False)}
    contents(storage, results, tmp_path)
    assert list((storage.root or Path()).glob(".private/*")) == []


def test_project_that_several_dumps_change_is_read_once(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_version("modules", storage=storage, catalog=small.catalog)
    for number in range(4):
        small.add(110 + 10 * number, "demo", f"9.{number}", f"demo-9.{number}.tar.gz")
        add_range(small, storage, 100 + 50 * number)
    changed = Counter[str]()
    dataset = DATASETS["modules"]

    def change(db: object, project: str, rows: list[object]) -> object:
        changed[project] += 1
        return dataset.change(db, project, rows)  # type: ignore[arg-type]

    monkeypatch.setitem(DATASETS, "modules", replace(dataset, change=change))  # type: ignore[arg-type]
    result = build_version("modules", storage=storage, catalog=small.catalog)
    assert result.base_version is not None
    assert changed
    assert set(changed.values()) == {1}


def test_dataset_that_another_process_publishes_does_not_join(small: SmallCatalog, storage: Storage) -> None:
    with lease(small.catalog, "publish commands"), SharedReading(DATASETS) as shared:
        published = []
        for name in shared.names:
            try:
                published.append(build_version(name, storage=storage, catalog=small.catalog, shared=shared).dataset)
            except LeaseTakenError:
                assert name == "commands"
    assert published == [name for name in DATASETS if name != "commands"]


def test_end_without_builds_releases_what_joined(small: SmallCatalog, storage: Storage) -> None:
    with SharedReading(DATASETS) as shared:
        build_version("modules", storage=storage, catalog=small.catalog, shared=shared)
        with pytest.raises(LeaseTakenError):
            build_version("simple", storage=storage, catalog=small.catalog)
    assert build_version("simple", storage=storage, catalog=small.catalog).published
    assert list((storage.root or Path()).glob(".private/*")) == []


def test_joined_datasets_hold_the_dumps_of_the_pass_whatever_happens_meanwhile(
    small: SmallCatalog, storage: Storage, tmp_path: Path
) -> None:
    ranges = [add_range(small, storage, start) for start in (100, 150)]
    with SharedReading(DATASETS) as shared:
        results = [build_version("modules", storage=storage, catalog=small.catalog, shared=shared)]
        compact(small.catalog, storage, *ranges)
        add_range(small, storage, 200)
        full_dump(small.catalog, storage, 1)
        list(clean_versions_and_dumps(small.catalog, storage, grace_s=0, versions_kept=1))
        results += [
            build_version(name, storage=storage, catalog=small.catalog, version=results[0].version, shared=shared)
            for name in shared.names[1:]
        ]
    assert {result.serial for result in results} == {200}
    assert {result.version for result in results} == {results[0].version}
    contents(storage, results, tmp_path)
    assert {result.serial for result in build_all(small.catalog, storage)} == {250}


def test_dataset_whose_lease_was_lost_is_built_without_the_others(
    small: SmallCatalog, storage: Storage, tmp_path: Path
) -> None:
    now = time.time()
    catalog = replace(small.catalog, clock=lambda: now)
    with SharedReading(DATASETS) as shared:
        results = [build_version("modules", storage=storage, catalog=catalog, shared=shared)]
        now += 2 * LEASE_TTL_S
        with lease(catalog, "publish simple"):  # another process builds and publishes it
            results.append(build_version("depgraph", storage=storage, catalog=catalog, shared=shared))
        now += LEASE_TTL_S / 2
        results += [build_version(name, storage=storage, catalog=catalog, shared=shared) for name in shared.names[2:]]
    assert [result.published for result in results] == [True] * len(DATASETS)
    contents(storage, results, tmp_path)
