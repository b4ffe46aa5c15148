"""The state of each serial range as people see it: complete, running, failed, interrupted, waiting, or missing."""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection

from pypi_assets.catalog.coordination.claims import workloads_at_work
from pypi_assets.catalog.ledger.range_ledger import (
    LedgerRange,
    RangeState,
    complete_ranges,
    ledger,
    missing_spans,
    unfinished_ranges,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.work.full_crawls import first_crawl
from pypi_assets.catalog.work.read_queue import count_pending_reads
from pypi_assets.catalog.work.visit_queue import WorkloadProgress, range_workload, workload_progress


class ShownState(StrEnum):
    """RUNNING: a worker is active on it. FAILED: the last worker's work ended in an error. INTERRUPTED: it was stopped,
    or its process died. WAITING: work on it, or on its next step, has not begun. MISSING: the index is beyond the last
    range, or the ledger has a gap, which is a fault."""

    COMPLETE = "complete"
    RUNNING = "running"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    WAITING = "waiting"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class RangeStatus:
    """One range. Times are unix seconds. `visits` counts its projects, as far as they are known; `reads_to_do` counts
    the distributions left to read in the visited ones. A complete range has none left.

    `lister` and `exact_from` are as in LedgerRange.
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
    """The ranges in order of their start, at `now` (unix seconds): all, or the incomplete ones and the last `complete`
    complete ones.

    Serials between the last range and `index_serial`, the index's last serial, are missing.
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
