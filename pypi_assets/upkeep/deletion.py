"""Delete superseded and abandoned data, as one chain of steps in a fixed order.

LevelDB versions are deleted first, then the dumps that no remaining version names, then Parquet exports: each of these
steps needs the step before it. The other steps are independent, so they run even if an earlier step fails: snapshots of
Iceberg tables, packs, rows of the catalog, days of solvability, orphaned files of the journal, unwanted kept files, and
old ranges, versions and runs in Dagster.

Every step keeps the objects that a reader can have open: objects that were in use within the grace time, or since the
oldest active lease was taken. The rules of each step are in its own module; this module only has their order. The job
and the commands that delete call this module, and never a step directly.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pypi_assets.catalog.coordination.leases import LeaseTakenError, deletion_deadlines, lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.pruning import (
    forget_dumps,
    forget_versions,
    old_attempts,
    old_requests,
    old_visits,
    sweep,
    unused_details,
    unused_lists,
)
from pypi_assets.catalog.tables import dumps, leveldb_versions
from pypi_assets.components import table_options_from
from pypi_assets.dumps.dump_manifest import DUMPS
from pypi_assets.dumps.unused_dumps import clean_dumps
from pypi_assets.extracts.packs import CleanedPacks, clean_packs
from pypi_assets.iceberg.table_catalog import TableOptions
from pypi_assets.iceberg.unused_files import clean_tables
from pypi_assets.journal.unused_segments import clean_journal
from pypi_assets.keeping.unwanted_files import clean_files
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import leveldbs_path
from pypi_assets.leveldbs.versions.leveldb_manifest import publish_leveldbs
from pypi_assets.leveldbs.versions.unused_versions import clean_versions
from pypi_assets.parquet.export_manifest import clean_exports
from pypi_assets.resolve.solvability import clean_days
from pypi_assets.settings import Settings
from pypi_assets.storage.store import Storage, StoredObject
from pypi_assets.storage.sweeping import DeletionReason, Removal, by_directory
from pypi_assets.upkeep.old_partitions import DAY_S, OldPartitions, old_partitions, runs_kept_since

LEASE_NAME = "clean up"
_LEASE_TTL_S = 3600.0
_NAMES_OUTLIVE_PARTITIONS_DAYS = 30.0
"""Dagster must remove a version while the catalog still knows it, so the catalog keeps the names longer."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The times and numbers for which superseded data is kept.

    All of it is kept for `grace_s` seconds. The newest `versions` of each dataset and the newest `exports` are always
    kept. Dagster shows ranges, versions and runs for `partition_days` days. The catalog keeps visits for `visit_days`
    days and attempts to read files for `attempt_days` days. Days of solvability are kept for `solvability_days` days
    after they were computed. Of `tables`, the last snapshot of each of the last `table_days` days is kept.
    """

    grace_s: float
    versions: int
    exports: int
    partition_days: float
    visit_days: float = 90.0
    attempt_days: float = 90.0
    solvability_days: float = 400.0
    table_days: float = 30.0
    tables: TableOptions = field(default_factory=TableOptions)


@dataclass(frozen=True, slots=True)
class Pruning:
    """Functions that remove partitions from Dagster, and runs that ended before a time (unix seconds).

    Both return the number of items that they removed.
    """

    partitions: Callable[[OldPartitions], int]
    runs: Callable[[float], int]


@dataclass(slots=True)
class CleanedUp:
    """The deletions of the chain, and the errors of failed steps by name. The numbers of a failed step are None."""

    removals: list[Removal] = field(default_factory=list)
    packs: CleanedPacks | None = None
    rows: Mapping[str, int] | None = None
    days: list[StoredObject] | None = None
    journal: list[StoredObject] | None = None
    kept_files: list[StoredObject] | None = None
    partitions: int | None = None
    runs: int | None = None
    failures: dict[str, Exception] = field(default_factory=dict)

    @property
    def deletions(self) -> int:
        """Return the number of deleted folders, packs, days, journal files and kept files."""
        return len(self.removals) + (len(self.packs.deleted) if self.packs else 0) + len(self._files)

    @property
    def _files(self) -> list[StoredObject]:
        return [*(self.days or ()), *(self.journal or ()), *(self.kept_files or ())]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of deleted items by kind, and the files and bytes of all of them.

        The kinds are folders by reason, packs, rows, days, journal files, kept files, partitions and runs. The kind of
        a failed step is missing, but folders that were deleted before the failure are counted.
        """
        by_reason = {reason.value: sum(one.reason == reason for one in self.removals) for reason in DeletionReason}
        packs = self.packs or CleanedPacks(0, (), 0)
        counts = by_reason | {
            "files": sum(one.files for one in self.removals) + len(packs.deleted) + len(self._files),
            "bytes": sum(one.size for one in self.removals) + sum(one.size for one in self._files) + packs.size,
        }
        of_links = {
            "packs": len(self.packs.deleted) if self.packs else None,
            "rows": None if self.rows is None else sum(self.rows.values()),
            "days": None if self.days is None else len(self.days),
            "journal": None if self.journal is None else len(self.journal),
            "kept_files": None if self.kept_files is None else len(self.kept_files),
            "partitions": self.partitions,
            "runs": self.runs,
        }
        return counts | {name: count for name, count in of_links.items() if count is not None}


def kept_from(settings: Settings) -> Kept:
    return Kept(
        grace_s=settings.superseded_kept_hours * 3600,
        versions=settings.leveldb_versions_kept,
        exports=settings.parquet_exports_kept,
        partition_days=settings.partitions_kept_days,
        visit_days=settings.visits_kept_days,
        attempt_days=settings.read_attempts_kept_days,
        solvability_days=settings.solvability_kept_days,
        table_days=settings.tables_days_kept,
        tables=table_options_from(settings),
    )


@dataclass(frozen=True, slots=True)
class DeletionChain:
    """The steps of the clean-up over one catalog and storage.

    `clean_all` runs all steps in order. Each command runs a single step:

        DeletionChain(catalog, storage, kept_from(settings)).clean_packs(dry_run=True)
    """

    catalog: Catalog
    storage: Storage
    kept: Kept

    def clean_all(self, pruning: Pruning, progress: Callable[[int], None]) -> CleanedUp:
        """Run all steps, and return the deletions and the failures. `progress` receives `deletions`.

        A failed step does not stop the next one, because these steps do not depend on each other. Raises only
        LeaseTakenError, if another process runs the clean-up.
        """
        cleaned = CleanedUp()

        @contextmanager
        def link(name: str) -> Iterator[None]:
            try:
                yield
            except LeaseTakenError:
                raise
            except Exception as error:  # noqa: BLE001 - every error is returned to the caller with the name of its step
                cleaned.failures[name] = error

        with link("LevelDB versions, dumps and exports"):
            for removal in self.clean_publications():
                cleaned.removals.append(removal)
                progress(cleaned.deletions)
        with link("tables"):
            for removal in self.clean_tables():
                cleaned.removals.append(removal)
                progress(cleaned.deletions)
        with link("packs"):
            cleaned.packs = self.clean_packs()
            progress(cleaned.deletions)
        with link("rows"):
            cleaned.rows = self.clean_rows()
        with link("days"):
            cleaned.days = self.clean_days()
            progress(cleaned.deletions)
        with link("journal"):
            cleaned.journal = self.clean_journal()
            progress(cleaned.deletions)
        with link("kept files"):
            cleaned.kept_files = self.clean_files()
            progress(cleaned.deletions)
        with link("partitions"):
            cleaned.partitions = self.clean_partitions(pruning)
        with link("runs"):
            cleaned.runs = self.clean_runs(pruning)
        return cleaned

    def clean_publications(self, *, dry_run: bool = False) -> Iterator[Removal]:
        """Delete LevelDB versions, dumps and Parquet exports, and yield the deletions. A `dry_run` deletes nothing.

        Exports come last, because the step for dumps first checks that catalog and storage belong together. Raises the
        errors of `clean_versions_and_dumps`; the exports are then kept.
        """
        kept = self.kept
        yield from clean_versions_and_dumps(
            self.catalog, self.storage, grace_s=kept.grace_s, versions_kept=kept.versions, dry_run=dry_run
        )
        deadlines = deletion_deadlines(self.catalog, kept.grace_s, dry_run=dry_run)
        yield from clean_exports(self.storage, deadlines, kept=kept.exports, dry_run=dry_run)

    def clean_tables(self, *, dry_run: bool = False) -> Iterator[Removal]:
        """Expire old snapshots of the Iceberg tables, delete their files, and yield the deletions of each table.

        A `dry_run` deletes nothing. Raises TablesError.
        """
        first_day = datetime.fromtimestamp(self.catalog.clock() - self.kept.table_days * DAY_S, UTC).date()
        deadlines = deletion_deadlines(self.catalog, self.kept.grace_s, dry_run=dry_run)
        yield from clean_tables(self.catalog, self.storage, self.kept.tables, deadlines, first_day, dry_run=dry_run)

    def clean_packs(self, *, dry_run: bool = False) -> CleanedPacks:
        """Delete unused packs, and return them. A `dry_run` deletes nothing. Raises the errors of `extracts.packs`."""
        return clean_packs(self.catalog, self.storage, dry_run=dry_run)

    def clean_rows(self, *, dry_run: bool = False) -> dict[str, int]:
        """Delete old and unreferenced rows of the catalog, in bounded batches.

        Returns the number of deleted rows by table. Rows that are deleted together with them are not counted. A
        `dry_run` deletes nothing, and skips the names of dumps and versions. Raises StorageError.
        """
        now = self.catalog.clock()
        sweeps = (
            old_visits(now - self.kept.visit_days * DAY_S),
            old_requests(now - self.kept.visit_days * DAY_S),
            old_attempts(now - self.kept.attempt_days * DAY_S),
            unused_lists(),
            unused_details(),
        )
        found = {one.name: sweep(self.catalog, one, dry_run=dry_run) for one in sweeps}
        return found if dry_run else found | self._forget_names(now)

    def _forget_names(self, now: float) -> dict[str, int]:
        """Delete the rows of dumps and LevelDB versions that have no files and that Dagster no longer shows."""
        before = now - (self.kept.partition_days + _NAMES_OUTLIVE_PARTITIONS_DAYS) * DAY_S
        builds = {
            (dataset, directory)
            for dataset in DATASETS
            for directory in by_directory(self.storage, leveldbs_path(dataset))
        }
        return {
            str(leveldb_versions.name): forget_versions(self.catalog, before, builds),
            str(dumps.name): forget_dumps(self.catalog, before, by_directory(self.storage, DUMPS)),
        }

    def clean_days(self, *, dry_run: bool = False) -> list[StoredObject]:
        """Delete old days of solvability, and return their files. A `dry_run` deletes nothing."""
        return clean_days(self.storage, self.catalog.clock() - self.kept.solvability_days * DAY_S, dry_run=dry_run)

    def clean_journal(self, *, dry_run: bool = False) -> list[StoredObject]:
        """Delete and return orphaned journal files that are older than the grace time. A `dry_run` deletes nothing."""
        deadlines = deletion_deadlines(self.catalog, self.kept.grace_s, dry_run=dry_run)
        return clean_journal(self.catalog, self.storage, deadlines.since, dry_run=dry_run)

    def clean_files(self) -> list[StoredObject]:
        """Delete kept files that no scope wants, and orphaned objects of kept files. Return the deleted objects."""
        return clean_files(self.catalog, self.storage, deletion_deadlines(self.catalog, self.kept.grace_s).old)

    def clean_partitions(self, pruning: Pruning) -> int:
        """Remove old ranges and versions from Dagster, and return the number of removed partitions."""
        return pruning.partitions(old_partitions(self.catalog, self.kept.partition_days))

    def clean_runs(self, pruning: Pruning) -> int:
        """Remove old runs from Dagster, and return their number."""
        return pruning.runs(runs_kept_since(self.catalog, self.kept.partition_days))


def clean_versions_and_dumps(
    catalog: Catalog, storage: Storage, *, grace_s: float, versions_kept: int, dry_run: bool = False
) -> Iterator[Removal]:
    """Delete superseded versions and dumps and the remains of stopped attempts, and yield the deletions.

    The newest `versions_kept` versions of each dataset are kept, and versions that were superseded less than `grace_s`
    seconds ago. The dumps that kept versions name are kept, too. A `dry_run` deletes nothing.

    Raises LeaseTakenError if another process runs the clean-up, and CatalogError if catalog and storage do not belong
    together.
    """
    with lease(catalog, LEASE_NAME, _LEASE_TTL_S) as held:
        renew = renewing(held)
        deadlines = deletion_deadlines(catalog, grace_s, dry_run=dry_run)
        for stored in storage.delete_unfinished(deadlines.old, dry_run=dry_run):
            yield Removal(stored.path, DeletionReason.ABANDONED, 1, stored.size)
        named: set[str] = set()
        if not dry_run:  # a process can be killed between committing a version and publishing its name
            publish_leveldbs(storage)
        for dataset in DATASETS:
            yield from clean_versions(
                catalog, storage, dataset, deadlines, count=versions_kept, renew=renew, named=named, dry_run=dry_run
            )
        for removal in clean_dumps(catalog, storage, deadlines, named, dry_run=dry_run):
            yield removal
            renew(0)
