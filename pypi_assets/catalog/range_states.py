"""How the serial ranges stand, for people: complete, failed, interrupted, waiting, or missing from the ledger."""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection

from pypi_assets.catalog.ledger import LedgerRange, RangeState, gaps, ledger
from pypi_assets.catalog.queue import ScopeProgress, range_scope, scope_progress
from pypi_assets.catalog.ranges import SerialRange


class ShownState(StrEnum):
    """WAITING: nobody has begun. INTERRUPTED: somebody has, and is at work or gone without an error. MISSING: the index
    is beyond the last range, or the ledger has a hole, which it never should have."""

    COMPLETE = "complete"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    WAITING = "waiting"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class RangeStatus:
    """One range. Times are unix seconds; `visits` counts the projects to visit as far as they are known.

    `lister` and `exact_from` as of a LedgerRange.
    """

    serials: SerialRange
    state: ShownState
    visits: ScopeProgress
    asked_at: float | None = None
    begun_at: float | None = None
    completed_at: float | None = None
    error_text: str | None = None
    lister: str | None = None
    exact_from: int | None = None


def range_statuses(
    connection: Connection, *, index_serial: int | None = None, complete: int | None = None
) -> list[RangeStatus]:
    """The ranges in order of their start: all, or all that are not complete and the last `complete` ones that are.

    What lies between the last one and `index_serial`, the index's last serial, is missing.
    """
    entries = ledger(connection)
    missing = gaps(entries, index_serial or 0)
    if complete is not None:
        done = [entry for entry in entries if entry.state == RangeState.COMPLETE]
        left_out = {entry.serials for entry in done[: max(len(done) - complete, 0)]}
        entries = [entry for entry in entries if entry.serials not in left_out]
    told = [_status(connection, entry) for entry in entries]
    told += [RangeStatus(serials, ShownState.MISSING, ScopeProgress(0, 0, 0)) for serials in missing]
    return sorted(told, key=lambda status: status.serials)


def _status(connection: Connection, entry: LedgerRange) -> RangeStatus:
    return RangeStatus(
        entry.serials,
        _state(entry),
        scope_progress(connection, range_scope(entry.serials)),
        entry.asked_at,
        entry.begun_at,
        entry.completed_at,
        entry.error_text,
        entry.lister,
        entry.exact_from,
    )


def _state(entry: LedgerRange) -> ShownState:
    if entry.state == RangeState.COMPLETE:
        return ShownState.COMPLETE
    if entry.error_text is not None:
        return ShownState.FAILED
    return ShownState.WAITING if entry.begun_at is None else ShownState.INTERRUPTED
