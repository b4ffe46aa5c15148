"""Failures: distributions that could not be read, projects that could not be visited, and broken entries."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, Row, Select, and_, func, or_, select

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.index_state import KeptEntry, count_kept_aside, kept_aside
from pypi_assets.catalog.reads.file_counts import failed_reads_by_kind
from pypi_assets.catalog.reads.read_outcomes import FAILED, ReadOutcome
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    projects,
    visit_queue,
)
from pypi_assets.catalog.work.finished_workloads import failed_reads, unread_live_files
from pypi_assets.catalog.work.visit_queue import IS_EXHAUSTED, TaskState

VISIT = "visit"
"""The kind of failure of a visit. The kind of a failed read is the kind of its error."""
BROKEN = "broken entry"
"""The kind of failure of an entry in the index's answers that breaks the protocol."""
WAITING = "waiting"
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class RecordedFailure:
    """A distribution that could not be read, a project whose page could not be judged, or a broken entry.

    `filename` is empty for a project. A broken entry breaks the protocol of the index; names that it lacks or that are
    unusable are empty.

    `outcome` is *error*, which reading the same content again would repeat; *gave up*, if no attempt is left; or
    *waiting* for the next attempt at `next_due` (unix seconds). `attempts` were made so far, and `attempts_remaining`
    are left.
    """

    project: str
    filename: str
    outcome: str
    kind: str
    text: str
    attempts: int
    attempts_remaining: int
    next_due: float | None


@dataclass(slots=True)
class FailureGroup:
    """The failures of one kind: their number, in total and by outcome, and a few examples."""

    kind: str
    count: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    examples: list[RecordedFailure] = field(default_factory=list)

    def add(self, failure: RecordedFailure) -> None:
        self.count += 1
        self.outcomes[failure.outcome] = self.outcomes.get(failure.outcome, 0) + 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(failure)


def list_failures(
    connection: Connection, max_attempts: int, kind: str | None = None, normalized: str | None = None
) -> Iterator[RecordedFailure]:
    """Yield all failures, or only failures of one kind or project.

    Failed reads come first, by project and filename. They are followed by live files that were neither read nor queued,
    visits by project, and broken entries of the index's answers. A read or visit is exhausted after `max_attempts`.
    """
    if kind != VISIT:
        for query in (failed_reads(kind, normalized), unread_live_files(kind, normalized)):
            for row in _stream(connection, query):
                yield _failed_read(row, max_attempts)
    if kind in {None, VISIT}:
        for row in _stream(connection, _failed_visits(normalized)):
            outcome = WAITING if row.outcome == TaskState.TODO else row.outcome
            yield _failure(row, VISIT, "", outcome, max_attempts)
    if kind in {None, BROKEN}:
        for kept in kept_aside(connection):
            if normalized is None or canonicalize_name(kept.project or kept.entry.name or "") == normalized:
                yield _broken_entry(kept)


def failed_reads_of_range(connection: Connection, serials: SerialRange, max_attempts: int) -> list[RecordedFailure]:
    """Return the failed reads of the distributions that changed in the range, by project and filename.

    The cost depends only on the number of these distributions, not on the number of all failures.
    """
    within = changes.c.logged_serial > serials.start, changes.c.logged_serial <= serials.end
    changed = connection.scalars(select(changes.c.distribution_id).where(*within).distinct()).all()
    rows = [
        row
        for ids in at_a_time(changed)
        for row in connection.execute(failed_reads(None, None).where(distribution_data.c.distribution_id.in_(ids)))
    ]
    found = [_failed_read(row, max_attempts) for row in rows]
    return sorted(found, key=lambda failure: (canonicalize_name(failure.project), failure.filename))


def failed_reads_of_shard(connection: Connection, shard: int, max_attempts: int, limit: int) -> list[RecordedFailure]:
    """Return the first `limit` failed reads of the projects in a shard, by project and filename."""
    query = failed_reads(None, None).where(projects.c.shard == shard).limit(limit)
    return [_failed_read(row, max_attempts) for row in connection.execute(query)]


def group_failures(failures: Iterable[RecordedFailure]) -> list[FailureGroup]:
    """Return the failures by kind, the most frequent first."""
    groups: dict[str, FailureGroup] = {}
    for failure in failures:
        groups.setdefault(failure.kind, FailureGroup(failure.kind)).add(failure)
    return sorted(groups.values(), key=lambda group: (-group.count, group.kind))


def count_failures(connection: Connection, *, only_exhausted: bool = False) -> dict[str, int]:
    """Return the number of failures of each kind, except those that wait for another attempt.

    With `only_exhausted`, only exhausted reads and visits are counted.
    """
    outcomes = (ReadOutcome.EXHAUSTED,) if only_exhausted else FAILED
    counts = failed_reads_by_kind(connection, *outcomes) | {VISIT: count_failed_visits(connection)}
    broken = 0 if only_exhausted else sum(count_kept_aside(connection).values())
    return counts | ({BROKEN: broken} if broken else {})


def count_failed_visits(connection: Connection) -> int:
    """Return the number of exhausted visits."""
    query = select(func.count()).select_from(visit_queue).where(IS_EXHAUSTED)
    return connection.scalar(query) or 0


def _failed_visits(normalized: str | None) -> Select[Any]:
    """Return a query of exhausted visits, and of visits that have failed and will be retried.

    A finished visit can have a remark, which is not a failure.
    """
    is_waiting = and_(visit_queue.c.state == TaskState.TODO, visit_queue.c.first_failed_at.is_not(None))
    query = (
        select(
            projects.c.name,
            visit_queue.c.state.label("outcome"),
            func.coalesce(visit_queue.c.error_text, WORKER_DIED).label("error_text"),
            visit_queue.c.attempts,
            visit_queue.c.attempts.label("used_attempts"),
            visit_queue.c.due_at,
        )
        .join(projects, projects.c.id == visit_queue.c.project_id)
        .where(or_(visit_queue.c.state == TaskState.EXHAUSTED, is_waiting))
        .order_by(projects.c.normalized, visit_queue.c.workload)
    )
    return query if normalized is None else query.where(projects.c.normalized == normalized)


def _broken_entry(kept: KeptEntry) -> RecordedFailure:
    entry = kept.entry
    place = f"{kept.source}, after serial {entry.after}" if entry.after is not None else str(kept.source)
    return RecordedFailure(
        project=kept.project or entry.name or "",
        filename=(entry.name or "") if kept.project else "",
        outcome=str(ReadOutcome.ERROR),
        kind=BROKEN,
        text=f"{place}: {entry.problem}: {entry.text}",
        attempts=1,
        attempts_remaining=0,
        next_due=None,
    )


def _stream(connection: Connection, query: Select[Any]) -> Iterable[Row[Any]]:
    return connection.execute(query, execution_options={"yield_per": 1_000})


def _failed_read(row: Row[Any], max_attempts: int) -> RecordedFailure:
    is_waiting = row.outcome == ReadOutcome.PENDING and row.used_attempts is not None
    outcome = row.outcome if row.outcome in FAILED else ReadOutcome.EXHAUSTED
    return _failure(row, row.error_kind, row.filename, WAITING if is_waiting else outcome, max_attempts)


def _failure(row: Row[Any], kind: str, filename: str, outcome: str, max_attempts: int) -> RecordedFailure:
    is_waiting = outcome == WAITING
    return RecordedFailure(
        project=row.name,
        filename=filename,
        outcome=str(outcome),
        kind=kind,
        text=row.error_text or "",
        attempts=row.attempts,
        attempts_remaining=max(max_attempts - row.used_attempts, 0) if is_waiting else 0,
        next_due=row.due_at if is_waiting else None,
    )
