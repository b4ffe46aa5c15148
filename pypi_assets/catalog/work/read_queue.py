"""The queue of reads: the distributions that are still to be read, and the workers that have claimed them.

It contains each distribution that is pending and has a URL. So it is small, however many were read before. The results
of reads are stored in `reads/`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, delete, func, insert, select, update

from pypi_assets.catalog.coordination.claims import (
    RELEASED,
    WORKER_DIED,
    claim_values,
    failures_at_claim,
    is_claimable,
    ready_at,
)
from pypi_assets.catalog.counters import add_counts, read_counts
from pypi_assets.catalog.database import at_a_time, insert_missing, storable
from pypi_assets.catalog.observed.followed import mark_projects_of, versions_in_force
from pypi_assets.catalog.reads.file_counts import counting_files
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, ReadOutcome, StoredPack, store_reads, without_vanished
from pypi_assets.catalog.tables import (
    distributions,
    projects,
    read_attempts,
    read_queue,
    visit_queue,
)
from pypi_assets.distributions.record import DistributionKind

QUEUED_READS = "reads in the queue"
"""The name of the count of queued reads."""
ABANDONED = "abandoned"
"""The outcome of an attempt whose worker died."""


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A distribution that a worker has claimed to read. `size` is in bytes; `attempts` have failed so far."""

    distribution_id: int
    project: str
    filename: str
    url: str
    sha256: str | None
    size: int | None
    attempts: int
    first_failed_at: float | None
    shard: int
    core_metadata: bool
    core_metadata_sha256: str | None
    kind: DistributionKind


def queue_reads(
    connection: Connection, reads: Iterable[tuple[int, int]], nice: int = 0, first: Collection[int] = ()
) -> None:
    """Queue reads, given as (distribution id, project id). The distributions must be pending and have a URL.

    Distributions in `first` are read before the others. Existing claims on them end: a worker that reads one right now
    may read its old content.
    """
    reset: dict[str, Any] = {"nice": nice, "due_at": 0.0, "attempts": 0, "first_failed_at": None, **RELEASED}
    rows = [
        {"distribution_id": distribution_id, "project_id": project_id, "is_first": distribution_id in first} | reset
        for distribution_id, project_id in sorted(reads)
    ]
    new = insert_missing(connection, read_queue, rows)
    add_counts(connection, {QUEUED_READS: new})
    if new < len(rows):
        for ids in at_a_time(row["distribution_id"] for row in rows):
            connection.execute(update(read_queue).where(read_queue.c.distribution_id.in_(ids)).values(reset))


def claim_reads(
    connection: Connection,
    workload: str | None,
    shards: Sequence[int] | None,
    *,
    worker: str,
    now: float,
    until: float,
    limit: int,
    only_first: bool = False,
) -> list[PendingRead]:
    """Claim the next reads for `worker` in the projects of `workload` (None: all), within `shards` (None: all).

    Reads with lower nice values come first, then reads that lead a scope on to further projects, then those that have
    been due for longest. With `only_first`, only reads that lead a scope on are claimed. The query scans all pending
    reads in the shards, so workers claim from a large workload in groups of shards.
    """
    query = (
        _queued(workload, shards, only_first=only_first)
        .join(distributions, distributions.c.id == read_queue.c.distribution_id)
        .where(is_claimable(read_queue, worker, now))
        .order_by(read_queue.c.nice, read_queue.c.is_first.desc(), read_queue.c.due_at, read_queue.c.distribution_id)
        .limit(limit)
        .with_for_update(of=read_queue, skip_locked=True)
        .add_columns(
            distributions,
            projects.c.normalized,
            projects.c.shard,
            read_queue.c.attempts,
            read_queue.c.first_failed_at,
            read_queue.c.claimed_by,
        )
    )
    rows = connection.execute(query).all()
    if not rows:
        return []
    connection.execute(
        update(read_queue)
        .where(read_queue.c.distribution_id.in_([row.id for row in rows]))
        .values(claim_values(read_queue, worker, now, until))
    )
    _append_attempts(connection, [_abandoned(row) for row in rows if row.claimed_by is not None])
    return [_pending_read(row, now) for row in rows]


def _pending_read(row: Row[Any], now: float) -> PendingRead:
    """Return the claimed read. `row` has its columns from before the claim."""
    attempts, first_failed_at = failures_at_claim(row, now)
    return PendingRead(
        distribution_id=row.id,
        project=row.normalized,
        filename=row.filename,
        url=row.url,
        sha256=row.sha256,
        size=row.size,
        attempts=attempts,
        first_failed_at=first_failed_at,
        shard=row.shard,
        core_metadata=row.core_metadata,
        core_metadata_sha256=row.core_metadata_sha256,
        kind=DistributionKind(row.kind),
    )


def finish_reads(
    connection: Connection, finished: Sequence[FinishedRead], worker: str, now: float, pack: StoredPack | None = None
) -> list[FinishedRead]:
    """Store the results of attempts of `worker`, and remove reads from the queue that will not be retried.

    Return the results that were stored. A result is dropped if another worker has taken over its claim. A 404 of a file
    that is not live is stored as VANISHED. `pack` has the extracts in the storage.
    """
    mine = (
        select(read_queue.c.distribution_id, read_queue.c.attempts, read_queue.c.project_id)
        .where(
            read_queue.c.distribution_id.in_([read.distribution_id for read in finished]),
            read_queue.c.claimed_by == worker,
        )
        .order_by(read_queue.c.distribution_id)
        .with_for_update()
    )
    claimed = {row.distribution_id: row for row in connection.execute(mine)}
    stored = without_vanished(connection, [read for read in finished if read.distribution_id in claimed])
    if not stored:
        return []
    with counting_files(connection, [read.distribution_id for read in stored]):
        store_reads(connection, stored, now, pack)
    rulesets = versions_in_force(connection, [claimed[read.distribution_id].project_id for read in stored])
    _append_attempts(
        connection,
        [
            _attempt(read, row.attempts + 1, worker, rulesets.get(row.project_id))
            for read in stored
            for row in [claimed[read.distribution_id]]
        ],
    )
    over = [read.distribution_id for read in stored if read.outcome != ReadOutcome.PENDING]
    mark_projects_of(connection, over)
    if over:
        remove_reads(connection, read_queue.c.distribution_id.in_(over))
    postponed = [
        {"read_id": read.distribution_id, "later": read.due_at}
        for read in stored
        if read.outcome == ReadOutcome.PENDING
    ]
    if postponed:
        connection.execute(
            update(read_queue)
            .where(read_queue.c.distribution_id == bindparam("read_id"))
            .values(
                attempts=read_queue.c.attempts + 1,
                first_failed_at=func.coalesce(read_queue.c.first_failed_at, now),
                due_at=bindparam("later"),
                **RELEASED,
            ),
            postponed,
        )
    return stored


def remove_reads(connection: Connection, *conditions: ColumnElement[bool]) -> None:
    """Remove the reads that meet these conditions from the queue. The caller has locked them."""
    gone = connection.execute(delete(read_queue).where(*conditions)).rowcount
    add_counts(connection, {QUEUED_READS: -gone})


def count_pending_reads(connection: Connection, workload: str | None, shards: Sequence[int] | None = None) -> int:
    """Return the number of reads left in projects that `workload` visits (None: all), within `shards` (None: all)."""
    return int(connection.scalar(_queued(workload, shards).add_columns(func.count())) or 0)


def count_queued_reads(connection: Connection) -> int:
    """Return the number of all reads left. The query is fast on any catalog."""
    return read_counts(connection).get(QUEUED_READS, 0)


def is_read_pending(connection: Connection, workload: str) -> bool:
    """Check whether reads are left in the projects that `workload` visits."""
    query = _queued(workload, None).add_columns(read_queue.c.distribution_id).limit(1)
    return connection.scalar(query) is not None


def pending_by_shard(
    connection: Connection, workload: str | None, shards: Sequence[int] | None, *, only_first: bool = False
) -> dict[int, int]:
    """Return the number of reads left, by shard and in the order of shards. Shards without reads are omitted."""
    counts = (
        _queued(workload, shards, only_first=only_first)
        .add_columns(projects.c.shard, func.count())
        .group_by(projects.c.shard)
    )
    return {shard: count for shard, count in connection.execute(counts.order_by(projects.c.shard))}


def reads_ready_at(
    connection: Connection, workload: str | None, shards: Sequence[int] | None, *, only_first: bool = False
) -> float | None:
    """Return when the next read can be claimed, unless its worker finishes it first; None if none is left."""
    return connection.scalar(
        _queued(workload, shards, only_first=only_first).add_columns(func.min(ready_at(read_queue)))
    )


def _queued(workload: str | None, shards: Sequence[int] | None, *, only_first: bool = False) -> Select[Any]:
    """Return a query of the queue, limited to projects that `workload` visits in `shards`.

    With `only_first`, it is also limited to reads that lead a scope on.
    """
    query = select().select_from(read_queue).join(projects, projects.c.id == read_queue.c.project_id)
    if only_first:
        query = query.where(read_queue.c.is_first)
    if workload is None:
        return query if shards is None else query.where(projects.c.shard.in_(shards))
    query = query.join(visit_queue, visit_queue.c.project_id == read_queue.c.project_id)
    query = query.where(visit_queue.c.workload == workload)
    return query if shards is None else query.where(visit_queue.c.shard.in_(shards))


def _attempt(read: FinishedRead, attempt: int, worker: str, rulesets: str | None) -> dict[str, Any]:
    error = None if read.record is None else read.record.error
    error_kind, error_text = (read.error_kind, read.error_text) if error is None else (error.kind, error.text)
    return {
        "distribution_id": read.distribution_id,
        "attempt": attempt,
        "worker": worker,
        "started_at": read.started_at,
        "seconds": read.seconds,
        "outcome": read.outcome,
        "error_kind": error_kind,
        "error_text": None if error_text is None else storable(error_text),
        "bytes_fetched": read.bytes_fetched,
        "requests": read.requests,
        "rulesets": rulesets,
    }


def _abandoned(row: Row[Any]) -> dict[str, Any]:
    """Return the attempt of a worker that died, whose result is unknown."""
    return {
        "distribution_id": row.id,
        "attempt": row.attempts + 1,
        "worker": row.claimed_by,
        "started_at": None,
        "seconds": 0.0,
        "outcome": ABANDONED,
        "error_kind": WORKER_DIED,
        "error_text": None,
        "bytes_fetched": 0,
        "requests": 0,
        "rulesets": None,
    }


def _append_attempts(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(read_attempts), rows)
