"""What is due over all stages, from the full crawl to the LevelDB versions, computed in this one place.

Due means that a run now would do something. Sensors, status, checks and metrics display the answers and decide nothing
themselves; they only add how old something may become before it counts as late. Doing what is due does not belong here.

Each function costs a few queries, or a few objects of the storage, however long the catalog has lived.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.epochs import is_reprocessed_since
from pypi_assets.catalog.ledger.range_ledger import RangeState, recent_ranges, unfinished_ranges
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import first_event_time
from pypi_assets.catalog.observed.followed import follows_all
from pypi_assets.catalog.publications.dump_registry import (
    Dump,
    DumpState,
    exact_serial,
    has_late_changes,
    read_committed_dumps,
    read_known_dumps,
)
from pypi_assets.catalog.publications.journal_segments import last_chained, latest_generation
from pypi_assets.catalog.reports.catalog_status import read_exhausted
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.catalog.scopes.scope_status import ready_scopes
from pypi_assets.catalog.scopes.stored_scopes import has_scopes
from pypi_assets.catalog.work.audits import last_completed_audit
from pypi_assets.catalog.work.full_crawls import FullCrawl, find_open_crawl, has_baseline, last_completed_crawl
from pypi_assets.dumps.compaction import next_join
from pypi_assets.dumps.cover import Cover, cover_of
from pypi_assets.dumps.dump_writer import ranges_without_dump
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.build_need import BuildNeed, Need, Newest, build_need, newest_version
from pypi_assets.parquet.export_manifest import newest_export
from pypi_assets.storage.store import Storage

AUDIT_AFTER_CRAWL_S = 8 * 24 * 3600.0
"""An audit a week is scheduled, where schedules are on."""
STAGES = (
    *("full_crawl", "scopes", "ranges", "journal", "full_dump", "range_dumps", "late_dump", "compaction"),
    *("parquet", "redump", "retry"),
)
"""The kinds of work that `Due.counts` has in addition to the datasets."""


def require_other_names(datasets: Iterable[str]) -> None:
    """Raises ValueError where a dataset has the name of a stage: `Due.counts` could not have both."""
    if taken := sorted(set(STAGES) & set(datasets)):
        raise ValueError(f"a dataset cannot have the name of a stage: {', '.join(taken)}")


require_other_names(DATASETS)


@dataclass(frozen=True, slots=True)
class CrawlDue:
    """The full crawl that was completed last, and the one that is open; None where there is none. `is_followable`: the
    index can be followed in ranges, since a full crawl or the first scope is complete. `is_scoped`: only what scopes
    lead to is followed.
    """

    completed: FullCrawl | None
    open: FullCrawl | None
    is_followable: bool
    is_scoped: bool = False

    @property
    def is_due(self) -> bool:
        return self.open is not None or (self.completed is None and not self.is_scoped)

    @property
    def first_job(self) -> str:
        """The job that makes the index followable."""
        return "follow_scopes" if self.is_scoped and self.open is None else "full_crawl"

    @property
    def unfollowable(self) -> str | None:
        """Why the index cannot be followed in ranges yet; None where it can be."""
        if self.is_followable:
            return None
        if self.open is not None:
            return f"the full crawl at serial {self.open.serial} is not complete yet"
        return f"no {'scope' if self.is_scoped else 'full crawl'} is complete yet"


@dataclass(frozen=True, slots=True)
class ScopesDue:
    """The names of the scopes with work that a run would do now, in the order of their turns; `exist`: there is any
    scope."""

    ready: tuple[str, ...] = ()
    exist: bool = False


@dataclass(frozen=True, slots=True)
class RangesDue:
    """The ranges that are not crawled, and those that are and whose dump is missing, both in order.

    `are_late_undumped`: something was learnt late of dumped serials that no dump has, and no range will have.
    """

    uncrawled: tuple[SerialRange, ...]
    undumped: tuple[SerialRange, ...]
    are_late_undumped: bool = False

    @property
    def all(self) -> list[SerialRange]:
        return sorted({*self.uncrawled, *self.undumped})


@dataclass(frozen=True, slots=True)
class JournalDue:
    """The serial up to which the journal is published (None: a person has not begun it, so none of it is due), the
    complete ranges that it lacks, in order, and when the first event that it lacks was (unix seconds; None: it lacks
    none, or no time is known)."""

    serial: int | None = None
    missing: tuple[SerialRange, ...] = ()
    lacks_since: float | None = None


@dataclass(frozen=True, slots=True)
class FullDumpDue:
    """The serial of the first full dump that is due; None, and why, where none is."""

    serial: int | None
    reason: str

    @property
    def is_due(self) -> bool:
        return self.serial is not None


@dataclass(frozen=True, slots=True)
class DatasetDue:
    """What one dataset needs, and since when (unix seconds).

    `lacks_since` is when the first event in the catalog was that its newest version lacks; None where there is none, or
    no version. `lags_dumps` is whether the dumps reach further than that version. `full_dump_at` is when the full
    dump was committed that the version does not hold; None where it holds the one of the cover.
    """

    need: BuildNeed
    lacks_since: float | None
    lags_dumps: bool
    full_dump_at: float | None

    @property
    def is_due(self) -> bool:
        return self.need.is_due

    def due_for_s(self, now: float) -> float | None:
        """For how long a build has been due, 0 where none is; None where no time is known of what is missing."""
        if not self.is_due:
            return 0.0
        since = self.lacks_since if self.lags_dumps else self.full_dump_at
        return None if since is None else max(now - since, 0.0)


@dataclass(frozen=True, slots=True)
class Due:
    """What is due in each stage.

    `committed` are all dumps there are. `cover` are those in use, and `dumps_lack_since` is when the first event beyond
    them was (unix seconds), if one is stored. `datasets` is empty where the storage did not answer. `compaction` names
    the dumps that would be joined first, and `exhausted` counts the reads and visits that are not tried again.
    `is_reprocessed`: records were made anew that the full dump in use lacks.
    """

    crawl: CrawlDue
    scopes: ScopesDue
    ranges: RangesDue
    journal: JournalDue
    full_dump: FullDumpDue
    committed: tuple[Dump, ...]
    cover: Cover
    dumps_lack_since: float | None
    datasets: Mapping[str, DatasetDue]
    compaction: tuple[str, ...]
    is_parquet_due: bool
    is_reprocessed: bool
    exhausted: int

    @property
    def unbuildable(self) -> list[BuildNeed]:
        """The datasets that cannot be built, since some dumps lack columns: a full dump that is made again has them."""
        return [one.need for one in self.datasets.values() if one.need.need == Need.LACKS_COLUMNS]

    @property
    def counts(self) -> dict[str, int]:
        """How much is due of each kind of work; for what is done in one run, 1 or 0."""
        before = {
            "full_crawl": int(self.crawl.is_due),
            "scopes": len(self.scopes.ready),
            "ranges": len(self.ranges.uncrawled),
            "journal": len(self.journal.missing),
            "full_dump": int(self.full_dump.is_due),
            "range_dumps": len(self.ranges.undumped),
            "late_dump": int(self.ranges.are_late_undumped),
            "compaction": int(bool(self.compaction)),
        }
        built = {name: int(dataset.is_due) for name, dataset in self.datasets.items()}
        after = {
            "parquet": int(self.is_parquet_due),
            "redump": int(self.is_reprocessed or bool(self.unbuildable)),
            "retry": self.exhausted,
        }
        return before | built | after


def due_crawl(catalog: Catalog) -> CrawlDue:
    with catalog.read() as connection:
        return _crawl(connection)


def _crawl(connection: Connection) -> CrawlDue:
    return CrawlDue(
        last_completed_crawl(connection),
        find_open_crawl(connection),
        has_baseline(connection),
        not follows_all(connection),
    )


def job_before_versions(catalog: Catalog, cover: Cover) -> str:
    """The job to run next where there is no LevelDB version: of the full crawl or the scopes, the full dump and the
    versions, the first that is missing.
    """
    if cover.dumps:
        return "update_leveldbs"
    crawl = due_crawl(catalog)
    return "full_dump" if crawl.is_followable else crawl.first_job


def due_scopes(catalog: Catalog) -> ScopesDue:
    with catalog.read() as connection:
        return _scopes(connection, catalog.clock())


def _scopes(connection: Connection, now: float) -> ScopesDue:
    if not has_scopes(connection):
        return ScopesDue()
    return ScopesDue(tuple(scope.name for scope in ready_scopes(connection, now)), exist=True)


def audit_hindrance(catalog: Catalog) -> str | None:
    """Why no audit can be made: it needs the list of all projects, which scopes never request. None where one can."""
    if not due_crawl(catalog).is_scoped:
        return None
    return "an audit compares the list of all projects, which is never requested where scopes decide what is followed"


def is_audit_missing(connection: Connection, now: float) -> bool:
    """Whether no audit was ever completed, nor a full crawl lately, which visits every project as well. Where scopes
    decide what is followed, none is missing: ranges revisit what was not visited for long."""
    if last_completed_audit(connection) is not None or not follows_all(connection):
        return False
    crawl = last_completed_crawl(connection)
    return crawl is None or now - (crawl.completed_at or 0.0) > AUDIT_AFTER_CRAWL_S


def due_ranges(catalog: Catalog) -> RangesDue:
    """The ranges to crawl, and those to dump; a dump of a range is due only once there is a full dump before it."""
    with catalog.read() as connection:
        committed = read_committed_dumps(connection)
        return _ranges(connection, committed, cover_of(committed))


def _ranges(connection: Connection, committed: Sequence[Dump], cover: Cover) -> RangesDue:
    uncrawled = [entry.serials for entry in unfinished_ranges(connection)]
    undumped = ranges_without_dump(connection, committed, cover) if cover.dumps else []
    are_late = bool(cover.dumps) and not undumped and has_late_changes(connection, cover.dumps[-1])
    return RangesDue(tuple(uncrawled), tuple(undumped), are_late)


def due_redump(catalog: Catalog) -> bool:
    """Whether the full dump in use lacks records that were made anew since."""
    with catalog.read() as connection:
        return _is_reprocessed(connection, cover_of(read_committed_dumps(connection)))


def _is_reprocessed(connection: Connection, cover: Cover) -> bool:
    return bool(cover.dumps) and is_reprocessed_since(connection, cover.dumps[0].serials.end, cover.dumps[0].sequence)


def due_journal(catalog: Catalog) -> JournalDue:
    """What the journal lacks of what is crawled."""
    with catalog.read() as connection:
        return _journal(connection)


def _journal(connection: Connection) -> JournalDue:
    ends = []
    for stream in (JournalStream.OBSERVED, JournalStream.CONTENT):
        last = last_chained(connection, stream, latest_generation(connection, stream))
        ends.append(0 if last is None else last.file.serials.end)
    serial = min(ends)
    if serial == 0:
        return JournalDue()
    entries = recent_ranges(connection, beyond=serial)
    missing = tuple(entry.serials for entry in entries if entry.state == RangeState.COMPLETE)
    return JournalDue(serial, missing, first_event_time(connection, serial) if missing else None)


def due_full_dump(catalog: Catalog) -> FullDumpDue:
    """The first full dump. Later ones only keep the chain of ranges short: a schedule requests them."""
    with catalog.read() as connection:
        return _full_dump(connection, cover_of(read_committed_dumps(connection)), _crawl(connection))


def _full_dump(connection: Connection, cover: Cover, crawl: CrawlDue) -> FullDumpDue:
    if cover.dumps:
        return FullDumpDue(None, "there is a full dump")
    if not crawl.is_followable:
        return FullDumpDue(None, "no scope is complete yet" if crawl.is_scoped else "no full crawl is complete yet")
    try:
        serial = exact_serial(connection)
    except CatalogError as error:
        return FullDumpDue(None, str(error))
    return FullDumpDue(serial, f"there is no full dump yet: one at serial {serial} is due")


def due_datasets(
    catalog: Catalog, storage: Storage, cover: Cover, datasets: Iterable[Dataset] | None = None
) -> dict[str, DatasetDue]:
    """What each dataset needs (None: of all), by name, with one transaction for all of them. Raises StorageError."""
    wanted = list(DATASETS.values() if datasets is None else datasets)
    newest = {dataset.name: newest_version(storage, dataset.name) for dataset in wanted}
    needs = [build_need(one, newest[one.name].manifest, cover, newest[one.name].problems) for one in wanted]
    serials = {need.serial for need in needs if need.serial is not None}
    with catalog.read() as connection:
        lacks_since = {serial: first_event_time(connection, serial) for serial in sorted(serials)}
    return {need.dataset: _dataset(need, newest[need.dataset], cover, lacks_since) for need in needs}


def _dataset(need: BuildNeed, newest: Newest, cover: Cover, lacks_since: Mapping[int, float | None]) -> DatasetDue:
    full = cover.dumps[0] if cover.dumps else None
    holds_it = full is None or newest.manifest is None or full.directory == newest.manifest.held[0]
    return DatasetDue(
        need=need,
        lacks_since=None if need.serial is None else lacks_since[need.serial],
        lags_dumps=(need.serial or 0) < cover.serial,
        full_dump_at=None if holds_it or full is None else full.committed_at,
    )


def due_compaction(known: Sequence[Dump], datasets: Mapping[str, DatasetDue], now: float) -> tuple[str, ...]:
    """The directories of those `known` dumps that a compaction would join first; empty where it would join none."""
    held = [one.need.serial for one in datasets.values() if one.need.serial is not None]
    return tuple(dump.directory for dump in next_join(known, held, now))


def due_parquet(storage: Storage, cover: Cover) -> bool:
    """Whether an export would write anything. A person starts the first one: none is due before it."""
    newest = newest_export(storage)
    return newest is not None and bool(cover.dumps) and newest.cover != cover.directories


def what_is_due(catalog: Catalog, storage: Storage | None) -> Due:
    """What is due in all stages; with `storage` None, in those that the catalog knows of. Raises StorageError.

    The catalog's own stages are read in one transaction, which takes no lock. The storage is compared with the dumps
    that were in use then.
    """
    with catalog.read() as connection:
        known = read_known_dumps(connection)
        committed = [dump for dump in known if dump.state == DumpState.COMMITTED]
        cover = cover_of(committed)
        crawl, scopes = _crawl(connection), _scopes(connection, catalog.clock())
        ranges, journal = _ranges(connection, committed, cover), _journal(connection)
        full_dump = _full_dump(connection, cover, crawl)
        is_reprocessed = _is_reprocessed(connection, cover)
        exhausted = read_exhausted(connection).count
        dumps_lack_since = first_event_time(connection, cover.serial) if cover.dumps else None
    datasets = {} if storage is None else due_datasets(catalog, storage, cover)
    return Due(
        crawl=crawl,
        scopes=scopes,
        ranges=ranges,
        journal=journal,
        full_dump=full_dump,
        committed=tuple(committed),
        cover=cover,
        dumps_lack_since=dumps_lack_since,
        datasets=datasets,
        compaction=() if storage is None else due_compaction(known, datasets, catalog.clock()),
        is_parquet_due=storage is not None and due_parquet(storage, cover),
        is_reprocessed=is_reprocessed,
        exhausted=exhausted,
    )
