"""Compute the pending work of all stages, from the full crawl to the LevelDB versions.

Work is due if a run would do something now. Sensors, status, checks and metrics display these answers. They decide
nothing themselves; they only add the age from which pending work counts as late. Doing the work does not belong here.

Each function costs a few queries or reads a few objects of the storage, however old the catalog is.
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
from pypi_assets.iceberg.newest_tables import are_tables_due
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.build_need import BuildNeed, Need, Newest, build_need, newest_version
from pypi_assets.parquet.export_manifest import newest_export
from pypi_assets.storage.store import Storage

AUDIT_AFTER_CRAWL_S = 8 * 24 * 3600.0
"""More than a week, because a schedule makes an audit each week if schedules are on."""
STAGES = (
    *("full_crawl", "scopes", "ranges", "journal", "full_dump", "range_dumps", "late_dump", "compaction"),
    *("parquet", "tables", "redump", "retry"),
)
"""The kinds of work that `Due.counts` has in addition to the datasets."""


def require_other_names(datasets: Iterable[str]) -> None:
    """Raise ValueError if a dataset has the name of a stage, because `Due.counts` could not have both."""
    if taken := sorted(set(STAGES) & set(datasets)):
        raise ValueError(f"a dataset cannot have the name of a stage: {', '.join(taken)}")


require_other_names(DATASETS)


@dataclass(frozen=True, slots=True)
class CrawlDue:
    """The last completed full crawl and the open one; each is None if it does not exist.

    `is_followable`: ranges can be crawled, since a full crawl or the first scope is complete. `is_scoped`: only the
    projects that scopes lead to are followed.
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
        """Return the job that makes the index followable."""
        return "follow_scopes" if self.is_scoped and self.open is None else "full_crawl"

    @property
    def unfollowable(self) -> str | None:
        """Return the reason why ranges cannot be crawled yet, or None if they can."""
        if self.is_followable:
            return None
        if self.open is not None and self.open.limited_to is not None:
            return f"only a trial of {self.open.limited_to} projects was crawled"
        if self.open is not None:
            return f"the full crawl at serial {self.open.serial} is not complete yet"
        return f"no {'scope' if self.is_scoped else 'full crawl'} is complete yet"


@dataclass(frozen=True, slots=True)
class ScopesDue:
    """The names of the scopes that a run would work on now, in order of priority, and whether any scopes `exist`."""

    ready: tuple[str, ...] = ()
    exist: bool = False


@dataclass(frozen=True, slots=True)
class RangesDue:
    """The ranges that are not crawled, and the crawled ranges without a dump, both in order.

    `are_late_undumped`: there are late changes to dumped serials, such as a file that was read only at a second
    attempt, and neither an existing dump nor the dump of a later range has them.
    """

    uncrawled: tuple[SerialRange, ...]
    undumped: tuple[SerialRange, ...]
    are_late_undumped: bool = False

    @property
    def all(self) -> list[SerialRange]:
        return sorted({*self.uncrawled, *self.undumped})


@dataclass(frozen=True, slots=True)
class JournalDue:
    """The last published serial of the journal, and the complete ranges that it lacks, in order.

    `serial` is None if the journal was not started yet, which a person does; nothing is due then. `lacks_since` is the
    time (unix seconds) of the first missing event. It is None if no event is missing, or if the time is unknown.
    """

    serial: int | None = None
    missing: tuple[SerialRange, ...] = ()
    lacks_since: float | None = None


@dataclass(frozen=True, slots=True)
class FullDumpDue:
    """The serial of the first full dump if it is due, else None; and the reason."""

    serial: int | None
    reason: str

    @property
    def is_due(self) -> bool:
        return self.serial is not None


@dataclass(frozen=True, slots=True)
class DatasetDue:
    """The pending work of one dataset, and since when (unix seconds).

    `lacks_since` is the time of the first event in the catalog that the newest version lacks. It is None if no event is
    missing, or if there is no version. `lags_dumps`: the dumps reach further than the newest version. `full_dump_at` is
    the commit time of the cover's full dump if the newest version was not built from it, else None.
    """

    need: BuildNeed
    lacks_since: float | None
    lags_dumps: bool
    full_dump_at: float | None

    @property
    def is_due(self) -> bool:
        return self.need.is_due

    def due_for_s(self, now: float) -> float | None:
        """Return how long a build has been due, 0 if it is not due, or None if the time is unknown."""
        if not self.is_due:
            return 0.0
        since = self.lacks_since if self.lags_dumps else self.full_dump_at
        return None if since is None else max(now - since, 0.0)


@dataclass(frozen=True, slots=True)
class Due:
    """The pending work of each stage.

    `committed` are all committed dumps; `cover` are the dumps in use. `dumps_lack_since` is the time (unix seconds) of
    the first stored event beyond the cover, if there is one. `datasets` is empty if the storage was not read.
    `compaction` names the dumps that would be joined first. `exhausted` counts the reads and visits that are not
    retried any more. `is_reprocessed`: records were made again that the full dump in use lacks.
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
    are_tables_due: bool
    is_reprocessed: bool
    exhausted: int

    @property
    def unbuildable(self) -> list[BuildNeed]:
        """Return the datasets that cannot be built until a new full dump, because some dumps lack columns."""
        return [one.need for one in self.datasets.values() if one.need.need == Need.LACKS_COLUMNS]

    @property
    def counts(self) -> dict[str, int]:
        """Return the amount of pending work of each kind. It is 1 or 0 for work that is done in a single run."""
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
            "tables": int(self.are_tables_due),
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
    """Return the job to run next if there is no LevelDB version.

    It is the first missing step of: the full crawl or the scopes, the full dump, the versions.
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
    """Return the reason why no audit can be made, or None if one can.

    An audit needs the list of all projects, and with scopes this list is never requested.
    """
    if not due_crawl(catalog).is_scoped:
        return None
    return "an audit needs the list of all projects, which is never requested if there are scopes"


def is_audit_missing(connection: Connection, now: float) -> bool:
    """Check whether an audit is overdue: none was ever completed, and no recent full crawl has visited every project.

    With scopes, an audit is never missing, because ranges revisit the projects that were not visited for long.
    """
    if last_completed_audit(connection) is not None or not follows_all(connection):
        return False
    crawl = last_completed_crawl(connection)
    return crawl is None or now - (crawl.completed_at or 0.0) > AUDIT_AFTER_CRAWL_S


def due_ranges(catalog: Catalog) -> RangesDue:
    """Return the ranges to crawl and the ranges to dump. A range is only dumped if there is a full dump before it."""
    with catalog.read() as connection:
        committed = read_committed_dumps(connection)
        return _ranges(connection, committed, cover_of(committed))


def _ranges(connection: Connection, committed: Sequence[Dump], cover: Cover) -> RangesDue:
    uncrawled = [entry.serials for entry in unfinished_ranges(connection)]
    undumped = ranges_without_dump(connection, committed, cover) if cover.dumps else []
    are_late = bool(cover.dumps) and not undumped and has_late_changes(connection, cover.dumps[-1])
    return RangesDue(tuple(uncrawled), tuple(undumped), are_late)


def due_redump(catalog: Catalog) -> bool:
    """Check whether the full dump in use lacks records that were made again since."""
    with catalog.read() as connection:
        return _is_reprocessed(connection, cover_of(read_committed_dumps(connection)))


def _is_reprocessed(connection: Connection, cover: Cover) -> bool:
    return bool(cover.dumps) and is_reprocessed_since(connection, cover.dumps[0].serials.end, cover.dumps[0].sequence)


def due_journal(catalog: Catalog) -> JournalDue:
    """Return the crawled ranges that the journal lacks."""
    with catalog.read() as connection:
        return _journal(connection)


def _journal(connection: Connection) -> JournalDue:
    ends = []
    for stream in (JournalStream.OBSERVED, JournalStream.CONTENT, JournalStream.VISITS):
        last = last_chained(connection, stream, latest_generation(connection, stream))
        ends.append(0 if last is None else last.file.serials.end)
    serial = min(ends)
    if serial == 0:
        return JournalDue()
    entries = recent_ranges(connection, beyond=serial)
    missing = tuple(entry.serials for entry in entries if entry.state == RangeState.COMPLETE)
    return JournalDue(serial, missing, first_event_time(connection, serial) if missing else None)


def due_full_dump(catalog: Catalog) -> FullDumpDue:
    """Return the first full dump if it is due.

    Later full dumps only keep the chain of ranges short, and a schedule requests them.
    """
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
    """Return the pending work of the `datasets`, by name. None stands for all datasets.

    All of them are computed in one transaction. Raises StorageError.
    """
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
    """Return the directories of the `known` dumps that a compaction would join first; empty if it would join none."""
    held = [one.need.serial for one in datasets.values() if one.need.serial is not None]
    return tuple(dump.directory for dump in next_join(known, held, now))


def due_parquet(storage: Storage, cover: Cover) -> bool:
    """Check whether an export would write anything. A person starts the first export, so none is due before it."""
    newest = newest_export(storage)
    return newest is not None and bool(cover.dumps) and not newest.has_dumps(cover.dumps)


def what_is_due(catalog: Catalog, storage: Storage | None) -> Due:
    """Return the pending work of all stages. Raises StorageError.

    If `storage` is None, only the stages that the catalog knows are computed. They are read in one transaction, which
    takes no lock. The storage is compared with the dumps that were in use at that time.
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
        are_tables_due=storage is not None and are_tables_due(storage, cover),
        is_reprocessed=is_reprocessed,
        exhausted=exhausted,
    )
