"""The work of an update, in rows applied and records read and written, follows from what it changes.

Counts repeat exactly, unlike times. `python -m benchmarks.leveldb_update` has the times.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.generated import (
    SERIAL,
    Project,
    generate_projects,
    release_rows,
    write_full_dump,
    write_range_dump,
)
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format import open_leveldb
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.versions import build_need
from pypi_assets.leveldbs.versions.publish import BuildResult, build_version
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.small_catalog import small_catalog

ROWS = 1_000
RANGES = 4


@dataclass
class Work:
    """The work of a build: rows applied, and records read and written."""

    rows: int = 0
    read: int = 0
    written: int = 0

    @property
    def units(self) -> int:
        return self.rows + self.read + self.written


class CountedDatabase:
    """A LevelDB that counts records."""

    def __init__(self, db: Database, work: Work) -> None:
        self._db, self._work = db, work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def get(self, key: bytes, **options: bool) -> bytes | None:
        self._work.read += 1
        return self._db.get(key, **options)

    @contextmanager
    def iterator(self, **options: Any) -> Iterator[Iterator[tuple[bytes, bytes]]]:
        with self._db.iterator(**options) as records:
            yield self._counted(records)

    def _counted(self, records: Any) -> Iterator[tuple[bytes, bytes]]:
        for record in records:
            self._work.read += 1
            yield record


@contextmanager
def counted(dataset: str) -> Iterator[Work]:
    work, open_database, known = Work(), open_leveldb.open_database, DATASETS[dataset]

    def change(db: Database | None, project: str, rows: list[Any]) -> Any:
        work.rows += len(rows)
        return known.change(db, project, rows)

    def opened(path: Path, **options: Any) -> Any:
        return CountedDatabase(open_database(path, **options), work)

    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(DATASETS, dataset, replace(known, change=change))
        patched.setattr(open_leveldb, "open_database", opened)
        yield work


def build(dataset: str, catalog: Catalog, storage: Storage, *, from_scratch: bool = False) -> tuple[BuildResult, Work]:
    with counted(dataset) as work:
        result = build_version(dataset, storage=storage, catalog=catalog, from_scratch=from_scratch)
    work.written = result.written
    return result, work


def new_releases(projects: Sequence[Project], changed: int, serial: int) -> list[Row]:
    """Return `changed` rows of new releases of the first of the projects, and of the others once they have many."""
    rows: list[Row] = []
    release = 0
    while len(rows) < changed:
        for project in projects:
            new = release_rows(project, project.releases + serial * 50 + release, SERIAL)
            rows += [row | {"live_since": SERIAL + serial} for row in new]
            if len(rows) >= changed:
                break
        release += 1
    return sorted(rows[:changed], key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))


@contextmanager
def dumped(folder: Path, projects: Sequence[Project]) -> Iterator[tuple[Catalog, Storage]]:
    """Yield a catalog and a storage with a full dump of the projects."""
    folder.mkdir()
    storage = open_storage((folder / "storage").as_uri())
    write_full_dump(storage, projects, shards=1)
    small = small_catalog(folder)
    small.complete(SERIAL)
    restore_index(small.catalog, storage)
    yield small.catalog, storage
    small.catalog.close()


def change(catalog: Catalog, storage: Storage, projects: Sequence[Project], changed: int) -> None:
    """Dump several ranges with `changed` rows together, all of the same projects."""
    for number in range(RANGES):
        end = SERIAL + number + 1
        rows = new_releases(projects, changed // RANGES, number + 1)
        write_range_dump(storage, rows, SerialRange(end - 1, end), sequence=number + 2)
    restore_index(catalog, storage)


@pytest.mark.parametrize("percent", [1, 5, pytest.param(20, marks=pytest.mark.nightly), 100])
@pytest.mark.parametrize("dataset", DATASETS)
def test_update_takes_at_most_a_fifth_more_work_than_a_rebuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, percent: int
) -> None:
    monkeypatch.setattr(build_need, "LEAST_ROWS_TO_REBUILD", 1)
    projects = sorted(generate_projects(ROWS), key=lambda project: -project.files)  # the largest ones change
    with dumped(tmp_path / "site", projects) as (catalog, storage):
        build(dataset, catalog, storage)
        change(catalog, storage, projects, ROWS * percent // 100)
        updated, update = build(dataset, catalog, storage)
        rebuilt, rebuild = build(dataset, catalog, storage, from_scratch=True)
    assert updated.content_hash == rebuilt.content_hash
    assert (updated.base_version is None) == (percent * DATASETS[dataset].update_cost > 100 + percent)
    assert update.units <= 1.2 * rebuild.units


@pytest.mark.parametrize("dataset", DATASETS)
def test_work_for_a_changed_row_does_not_grow_with_the_base(tmp_path: Path, dataset: str) -> None:
    units = []
    for size in (2 * ROWS, 4 * ROWS):  # of few rows, all edges are written again
        projects = list(generate_projects(size))
        with dumped(tmp_path / f"{size}", projects) as (catalog, storage):
            build(dataset, catalog, storage)
            change(catalog, storage, projects[:10], 40)
            result, work = build(dataset, catalog, storage)
            assert result.base_version is not None
            units.append(work)
    assert units[0] == units[1]
