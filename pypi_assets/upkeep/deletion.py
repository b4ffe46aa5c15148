"""What may be deleted, as one chain that is performed in order.

LevelDB versions come first, then the dumps that no remaining version names, and Parquet exports: each of these needs
the one before. Packs, rows of the catalog, days of solvability, what is no part of the journal, and what Dagster shows
of old ranges, versions and runs, depend on nothing else, so a link that fails does not stop them. Each link keeps what
a reader may have open: what was in use within the grace time, or since a lease that is held was taken. The rules of
each link are in its own module; their order is here. The job and the commands that delete go through this module, and
none of them calls a link in its own module.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pypi_assets.catalog.coordination.leases import LeaseTakenError, deletion_deadlines, lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.pruning import (
    forget_dumps,
    forget_versions,
    old_attempts,
    old_visits,
    sweep,
    unused_details,
    unused_lists,
)
from pypi_assets.catalog.tables import dumps, leveldb_versions
from pypi_assets.dumps.dump_manifest import DUMPS
from pypi_assets.dumps.unused_dumps import clean_dumps
from pypi_assets.extracts.packs import CleanedPacks, clean_packs
from pypi_assets.journal.unused_segments import clean_journal
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
"""A version is removed from Dagster while the catalog knows it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays of what has been superseded: all for `grace_s` seconds, and the newest `versions` of each dataset and
    `exports`. Dagster shows ranges, versions and runs for `partition_days` days. The catalog keeps visits and attempts
    to read for `visit_days` and `attempt_days`. Days of solvability stay for `solvability_days` after they were made.
    """

    grace_s: float
    versions: int
    exports: int
    partition_days: float
    visit_days: float = 90.0
    attempt_days: float = 90.0
    solvability_days: float = 400.0


@dataclass(frozen=True, slots=True)
class Pruning:
    """How partitions, and the runs that ended before a time (unix seconds), are removed from Dagster.

    Both return the count of what they removed.
    """

    partitions: Callable[[OldPartitions], int]
    runs: Callable[[float], int]


@dataclass(slots=True)
class CleanedUp:
    """What the chain deleted, and by name the links that failed. The numbers of a link that failed are None."""

    removals: list[Removal] = field(default_factory=list)
    packs: CleanedPacks | None = None
    rows: Mapping[str, int] | None = None
    days: list[StoredObject] | None = None
    journal: list[StoredObject] | None = None
    partitions: int | None = None
    runs: int | None = None
    failures: dict[str, Exception] = field(default_factory=dict)

    @property
    def deletions(self) -> int:
        """The count of folders, packs, days and files of the journal that were deleted."""
        return len(self.removals) + (len(self.packs.deleted) if self.packs else 0) + len(self._files)

    @property
    def _files(self) -> list[StoredObject]:
        return [*(self.days or ()), *(self.journal or ())]

    @property
    def counts(self) -> dict[str, int]:
        """The count of folders by reason, of packs, rows, days, files of the journal, partitions and runs; files and
        bytes of all of these.

        What a link that failed would have counted is left out, except for folders that it had deleted by then.
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
    )


@dataclass(frozen=True, slots=True)
class DeletionChain:
    """The links by name, over one catalog and storage: `clean_all` performs them in order, a command one of them.

    DeletionChain(catalog, storage, kept_from(settings)).clean_packs(dry_run=True)
    """

    catalog: Catalog
    storage: Storage
    kept: Kept

    def clean_all(self, pruning: Pruning, progress: Callable[[int], None]) -> CleanedUp:
        """Performs all links, and returns what they deleted and which failed. `progress` gets `deletions`.

        A link that fails does not stop the next one, since the links here depend on nothing that others do. Raises
        only LeaseTakenError, where another process cleans up: that process performs the chain.
        """
        cleaned = CleanedUp()

        @contextmanager
        def link(name: str) -> Iterator[None]:
            try:
                yield
            except LeaseTakenError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it with the name of the link
                cleaned.failures[name] = error

        with link("LevelDB versions, dumps and exports"):
            for removal in self.clean_publications():
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
        with link("partitions"):
            cleaned.partitions = self.clean_partitions(pruning)
        with link("runs"):
            cleaned.runs = self.clean_runs(pruning)
        return cleaned

    def clean_publications(self, *, dry_run: bool = False) -> Iterator[Removal]:
        """Deletes LevelDB versions, dumps and Parquet exports, and yields what it deletes; nothing in a `dry_run`.

        Exports come last: before a dump is deleted, its link makes sure that catalog and storage belong together.
        Raises what `clean_versions_and_dumps` raises, and what comes later stays then.
        """
        kept = self.kept
        yield from clean_versions_and_dumps(
            self.catalog, self.storage, grace_s=kept.grace_s, versions_kept=kept.versions, dry_run=dry_run
        )
        deadlines = deletion_deadlines(self.catalog, kept.grace_s, dry_run=dry_run)
        yield from clean_exports(self.storage, deadlines, kept=kept.exports, dry_run=dry_run)

    def clean_packs(self, *, dry_run: bool = False) -> CleanedPacks:
        """Deletes packs without use, and returns which; nothing in a `dry_run`. Raises what the packs' link raises."""
        return clean_packs(self.catalog, self.storage, dry_run=dry_run)

    def clean_rows(self, *, dry_run: bool = False) -> dict[str, int]:
        """Deletes rows of the catalog that are old or that nothing refers to, a bounded number at a time.

        Returns how many went, by table; what goes with them is not counted. In a `dry_run` nothing is deleted, and the
        names of publications are not looked at. Raises StorageError.
        """
        now = self.catalog.clock()
        sweeps = (
            old_visits(now - self.kept.visit_days * DAY_S),
            old_attempts(now - self.kept.attempt_days * DAY_S),
            unused_lists(),
            unused_details(),
        )
        found = {one.name: sweep(self.catalog, one, dry_run=dry_run) for one in sweeps}
        return found if dry_run else found | self._forget_names(now)

    def _forget_names(self, now: float) -> dict[str, int]:
        """Deletes the rows of dumps and LevelDB versions without files that are older than Dagster shows any."""
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
        """Deletes days of solvability that were made long ago, and returns their files; nothing in a `dry_run`."""
        return clean_days(self.storage, self.catalog.clock() - self.kept.solvability_days * DAY_S, dry_run=dry_run)

    def clean_journal(self, *, dry_run: bool = False) -> list[StoredObject]:
        """Deletes files that are no part of the journal and are older than the grace time, and returns them; nothing in
        a `dry_run`."""
        deadlines = deletion_deadlines(self.catalog, self.kept.grace_s, dry_run=dry_run)
        return clean_journal(self.catalog, self.storage, deadlines.since, dry_run=dry_run)

    def clean_partitions(self, pruning: Pruning) -> int:
        """Removes old ranges and versions from what Dagster shows, and returns the count of its partitions."""
        return pruning.partitions(old_partitions(self.catalog, self.kept.partition_days))

    def clean_runs(self, pruning: Pruning) -> int:
        """Removes old runs from what Dagster shows, and returns their count."""
        return pruning.runs(runs_kept_since(self.catalog, self.kept.partition_days))


def clean_versions_and_dumps(
    catalog: Catalog, storage: Storage, *, grace_s: float, versions_kept: int, dry_run: bool = False
) -> Iterator[Removal]:
    """Deletes superseded versions and dumps, and what stopped attempts have left, and yields it.

    Of each dataset the newest `versions_kept` versions stay, and those superseded less than `grace_s` seconds ago. The
    dumps that these name stay too. In a `dry_run` nothing is deleted.

    Raises LeaseTakenError where another process cleans up, CatalogError where catalog and storage do not belong
    together.
    """
    with lease(catalog, LEASE_NAME, _LEASE_TTL_S) as held:
        renew = renewing(held)
        deadlines = deletion_deadlines(catalog, grace_s, dry_run=dry_run)
        for stored in storage.delete_unfinished(deadlines.old, dry_run=dry_run):
            yield Removal(stored.path, DeletionReason.ABANDONED, 1, stored.size)
        named: set[str] = set()
        if not dry_run:  # what a kill after a publication has left out
            publish_leveldbs(storage)
        for dataset in DATASETS:
            yield from clean_versions(
                catalog, storage, dataset, deadlines, count=versions_kept, renew=renew, named=named, dry_run=dry_run
            )
        for removal in clean_dumps(catalog, storage, deadlines, named, dry_run=dry_run):
            yield removal
            renew(0)
