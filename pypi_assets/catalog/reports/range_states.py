"""The displayed state of each serial range, and the changes in it."""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, func, literal_column, select

from pypi_assets.catalog.coordination.claims import workloads_at_work
from pypi_assets.catalog.counters import read_counts
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES
from pypi_assets.catalog.ledger.range_ledger import (
    LedgerRange,
    RangeState,
    complete_ranges,
    ledger,
    missing_spans,
    unfinished_ranges,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.tables import changes, distributions, projects, releases
from pypi_assets.catalog.work.full_crawls import first_crawl
from pypi_assets.catalog.work.read_queue import count_pending_reads
from pypi_assets.catalog.work.visit_queue import WorkloadProgress, range_workload, workload_progress

_IS_UNEXPLAINED: ColumnElement[bool] = changes.c.cause == literal_column(f"'{UNEXPLAINED}'")
"""It has no parameter, so that the partial index is used."""


@dataclass(frozen=True, slots=True)
class RangeChange:
    """One change of one distribution. `cause` is an event's action, or the reason for a change without one."""

    serial: int
    cause: str
    project: str
    version: str
    filename: str


def count_causes(connection: Connection, serials: SerialRange) -> dict[str, int]:
    """Return the number of changes of distributions in the range, by cause."""
    query = select(changes.c.cause, func.count()).where(*_within(serials)).group_by(changes.c.cause)
    return {cause: count for cause, count in connection.execute(query.order_by(changes.c.cause))}


def first_changes(connection: Connection, serials: SerialRange, limit: int) -> list[RangeChange]:
    """Return the first `limit` changes of the range, in order of serial."""
    query = (
        select(changes.c.serial, changes.c.cause, projects.c.name, releases.c.version, distributions.c.filename)
        .join(distributions, distributions.c.id == changes.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .where(*_within(serials))
        .order_by(changes.c.logged_serial, changes.c.serial, changes.c.id)
        .limit(limit)
    )
    return [RangeChange(*row) for row in connection.execute(query)]


def count_unexplained(connection: Connection, serials: SerialRange | None = None) -> int:
    """Return the number of file changes that no event explains: all logged ones, or those logged in `serials`."""
    if serials is None:
        return read_counts(connection).get(UNEXPLAINED_CHANGES, 0)
    query = select(func.count()).select_from(changes).where(_IS_UNEXPLAINED, *_within(serials))
    return int(connection.scalar(query) or 0)


def unexplained_projects(connection: Connection) -> list[int]:
    """Return, in order, the ids of the projects with logged changes of files that no event explains."""
    of_files = select(changes.c.distribution_id).where(_IS_UNEXPLAINED)
    query = select(distributions.c.project_id).where(distributions.c.id.in_(of_files)).distinct()
    return sorted(connection.scalars(query))


def _within(serials: SerialRange) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return changes.c.logged_serial > serials.start, changes.c.logged_serial <= serials.end


class ShownState(StrEnum):
    """The displayed state of a range.

    RUNNING: a worker is active on the range. FAILED: the last worker's work ended in an error. INTERRUPTED: the worker
    was stopped, or its process died. WAITING: work on the range, or on its next step, has not begun. MISSING: the index
    is beyond the last range, or the ledger has a gap, which is a fault.
    """

    COMPLETE = "complete"
    RUNNING = "running"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    WAITING = "waiting"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class RangeStatus:
    """One range. Times are unix seconds.

    `visits` counts its projects, as far as they are known. `reads_to_do` counts the unread distributions of its visited
    projects; it is 0 for a complete range. `lister` and `exact_from` are as in LedgerRange.
    """

    serials: SerialRange
    state: ShownState
    visits: WorkloadProgress
    reads_to_do: int = 0
    requested_at: float | None = None
    begun_at: float | None = None
    completed_at: float | None = None
    error_text: str | None = None
    lister: str | None = None
    exact_from: int | None = None


def range_statuses(
    connection: Connection, now: float, *, index_serial: int | None = None, complete: int | None = None
) -> list[RangeStatus]:
    """Return the ranges in order of their start, at `now` (unix seconds).

    With `complete`, only the incomplete ranges and the last `complete` complete ones. Serials between the last range
    and `index_serial`, the index's last serial, are MISSING.
    """
    missing = missing_spans(connection, index_serial or 0)
    if complete is None:
        entries = ledger(connection)
    else:
        entries = unfinished_ranges(connection) + complete_ranges(connection, complete)
    at_work, baseline = workloads_at_work(connection, now), first_crawl(connection)
    found = []
    for entry in entries:
        is_baseline = baseline is not None and entry.serials == SerialRange(0, baseline.serial)
        workload = baseline.workload if baseline and is_baseline else range_workload(entry.serials)
        found.append(_status(connection, entry, workload, is_running=workload in at_work))
    found += [RangeStatus(serials, ShownState.MISSING, WorkloadProgress(0, 0, 0)) for serials in missing]
    return sorted(found, key=lambda status: status.serials)


def _status(connection: Connection, entry: LedgerRange, workload: str, *, is_running: bool) -> RangeStatus:
    return RangeStatus(
        entry.serials,
        _state(entry, is_running=is_running),
        workload_progress(connection, workload),
        0 if entry.state == RangeState.COMPLETE else count_pending_reads(connection, workload),
        entry.requested_at,
        entry.begun_at,
        entry.completed_at,
        entry.error_text,
        entry.lister,
        entry.exact_from,
    )


def _state(entry: LedgerRange, *, is_running: bool) -> ShownState:
    if entry.state == RangeState.COMPLETE:
        return ShownState.COMPLETE
    if is_running:
        return ShownState.RUNNING
    if entry.error_text is not None:
        return ShownState.FAILED
    return ShownState.WAITING if entry.begun_at is None else ShownState.INTERRUPTED
