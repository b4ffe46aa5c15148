"""What may be deleted, as one chain that is performed in order.

LevelDB versions come first, then the dumps that no remaining version names, Parquet exports, packs, and at last what
Dagster shows of old ranges, versions and runs. Each link keeps what a reader may have open: what was in use within the
grace time, or since a lease that is held was taken. The rules of each link are in its own module; their order is here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pypi_assets.catalog.coordination.leases import end_expired_leases, lease, oldest_lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.unused_dumps import ABANDONED_AFTER_S, Reason, Removal, clean_dumps
from pypi_assets.extracts.unused_packs import CleanedPacks, clean_packs
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.unused_versions import clean_versions
from pypi_assets.parquet.unused_exports import clean_exports
from pypi_assets.settings import Settings
from pypi_assets.storage.store import Storage
from pypi_assets.upkeep.old_partitions import OldPartitions, old_partitions

LEASE_NAME = "clean up"
_LEASE_TTL_S = 3600.0


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays of what has been superseded: all for `grace_s` seconds, and the newest `versions` of each dataset and
    `exports`. Dagster shows ranges, versions and runs for `partition_days` days."""

    grace_s: float
    versions: int
    exports: int
    partition_days: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """The count of partitions and runs that were removed from Dagster."""

    partitions: int
    runs: int


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """What the whole chain deleted."""

    removals: tuple[Removal, ...]
    packs: CleanedPacks
    pruned: Pruned

    @property
    def counts(self) -> dict[str, int]:
        """The count of folders by reason, of packs, partitions and runs; files and bytes of folders and packs."""
        by_reason = {reason.value: sum(one.reason == reason for one in self.removals) for reason in Reason}
        return by_reason | {
            "files": sum(one.files for one in self.removals) + len(self.packs.deleted),
            "bytes": sum(one.size for one in self.removals) + self.packs.size,
            "packs": len(self.packs.deleted),
            "partitions": self.pruned.partitions,
            "runs": self.pruned.runs,
        }


def kept_from(settings: Settings) -> Kept:
    return Kept(
        grace_s=settings.superseded_kept_hours * 3600,
        versions=settings.leveldb_versions_kept,
        exports=settings.parquet_exports_kept,
        partition_days=settings.partitions_kept_days,
    )


def clean_all(
    catalog: Catalog,
    storage: Storage,
    kept: Kept,
    prune: Callable[[OldPartitions], Pruned],
    progress: Callable[[int], None],
) -> CleanedUp:
    """Performs the whole chain. `prune` removes what it is given from Dagster; `progress` gets the count of deletions.

    Raises LeaseTakenError where another process cleans up, CatalogError where catalog and storage do not belong
    together, and StorageError: what comes later in the chain stays then.
    """
    removals = []
    for removal in clean_publications(catalog, storage, kept):
        removals.append(removal)
        progress(len(removals))
    packs = clean_packs(catalog, storage)
    progress(len(removals) + len(packs.deleted))
    pruned = prune(old_partitions(catalog, kept.partition_days))
    return CleanedUp(tuple(removals), packs, pruned)


def clean_publications(catalog: Catalog, storage: Storage, kept: Kept, *, dry_run: bool = False) -> Iterator[Removal]:
    """Deletes LevelDB versions, dumps and Parquet exports, and yields what it deletes; nothing in a `dry_run`.

    Raises what `clean_versions_and_dumps` raises.
    """
    yield from clean_versions_and_dumps(
        catalog, storage, grace_s=kept.grace_s, versions_kept=kept.versions, dry_run=dry_run
    )
    yield from clean_exports(catalog, storage, grace_s=kept.grace_s, kept=kept.exports, dry_run=dry_run)


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
        now = catalog.clock()
        with catalog.write() as connection:
            if not dry_run:  # so its holder, if it wakes up, publishes nothing of what is deleted here
                end_expired_leases(connection, now)
            since = min(now - grace_s, oldest_lease(connection, now))
        old = min(since, now - ABANDONED_AFTER_S)
        for stored in storage.delete_unfinished(old, dry_run=dry_run):
            yield Removal(stored.path, Reason.ABANDONED, 1, stored.size)
        named: set[str] = set()
        for dataset in DATASETS:
            yield from clean_versions(
                catalog,
                storage,
                dataset,
                count=versions_kept,
                since=since,
                old=old,
                renew=renew,
                named=named,
                dry_run=dry_run,
            )
        for removal in clean_dumps(catalog, storage, named, since, dry_run=dry_run):
            yield removal
            renew(0)
