"""Retries failures on request: exhausted visits, and reads that are exhausted or ended in an error.

`crawler.py` decides when a crawl retries by itself.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from packaging.utils import canonicalize_name
from sqlalchemy import Connection

from pypi_assets.catalog.derived.checkpoint import discard_checkpoints
from pypi_assets.catalog.ledger.range_ledger import unfinished_ranges
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import (
    classify_again,
    events_through,
    events_understood_now,
    has_at_least,
    store_events,
)
from pypi_assets.catalog.observed.index_state import KeptEntry, forget_rows, kept_rows
from pypi_assets.catalog.observed.projects import find_project, project_shard
from pypi_assets.catalog.reports.failures import BROKEN, VISIT
from pypi_assets.catalog.work.finished_workloads import forget_visits, retry_failed_reads, retry_failed_visits
from pypi_assets.catalog.work.full_crawls import find_open_crawl, require_followable
from pypi_assets.catalog.work.revisits import revisit_soon
from pypi_assets.catalog.work.visit_queue import (
    WorkloadProgress,
    range_workload,
    workload_progress,
    workloads_to_visit,
)
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.reading import ReadCounts, read_workload
from pypi_assets.crawl.scope_crawl import settle_workload
from pypi_assets.crawl.visiting import visit_workload
from pypi_assets.index.actions import NO_FILE_CHANGE, file_change
from pypi_assets.index.changelog import read_event
from pypi_assets.index.models import ChangelogEvent


@dataclass(frozen=True, slots=True)
class RetryResult:
    """The counts of retried reads and visits, and the outcomes of all pending reads.

    `understood_rows` counts rows of the changelog that could not be parsed before and can be parsed now, and events
    whose action was unknown before and is known now.
    """

    retried_reads: int
    retried_visits: int
    exhausted_visits: int
    understood_rows: int
    reads: ReadCounts


def retry(crawler: Crawler, kind: str | None = None, project: str | None = None) -> RetryResult:
    """Retry all failures, or only the failures of an error kind (`visit` for visits) or of a project, and pending work.

    Rows of the changelog that were set aside are stored if this version of the code can parse them. Events with an
    unknown action are classified again.

    Retries have the same pauses as a crawl, and can be stopped and run again. Visits of an open full crawl or range are
    left to that crawl. Raises CatalogError if no full crawl is complete.
    """
    catalog = crawler.catalog
    normalized = None if project is None else canonicalize_name(project)

    def requeue(connection: Connection) -> tuple[int, dict[str, WorkloadProgress]]:
        if kind in {None, VISIT}:
            retry_failed_visits(connection, normalized)
        reads = 0 if kind == VISIT else retry_failed_reads(connection, kind, normalized)
        crawl = find_open_crawl(connection)
        left_alone = {range_workload(entry.serials) for entry in unfinished_ranges(connection)}
        left_alone |= set() if crawl is None else {crawl.workload}
        wanted = (workload for workload in workloads_to_visit(connection) if workload not in left_alone)
        return reads, {workload: workload_progress(connection, workload) for workload in wanted}

    with catalog.read() as connection:
        require_followable(connection, crawler.index.index_url, crawler.selection)
    understood = store_readable_rows(crawler) if project is None and kind in {None, BROKEN} else 0
    reads, workloads = catalog.transact(requeue)
    after = [visit_workload(crawler, workload) for workload in workloads]
    read = read_workload(crawler, None)
    for workload in workloads:
        settle_workload(crawler, workload)
        forget_visits(catalog, workload)
    return RetryResult(
        retried_reads=reads,
        retried_visits=sum(progress.todo for progress in workloads.values()),
        exhausted_visits=max(_exhausted(after) - _exhausted(workloads.values()), 0),
        understood_rows=understood,
        reads=read,
    )


def _exhausted(workloads: Iterable[WorkloadProgress]) -> int:
    return sum(progress.exhausted for progress in workloads)


def store_readable_rows(crawler: Crawler) -> int:
    """Store the events of rows that can be parsed now, and classify events with unknown actions again.

    Returns the number of both together. Queues revisits of the projects whose files they change. A row whose serial
    does not fit its place stays set aside.
    """
    readable = crawler.catalog.transact(_store)
    late = [event for _, event in readable]
    rows = [id_ for id_, _ in readable]
    crawler.catalog.transact(
        partial(_revisit, late=late, rows=rows)
    )  # separate, since storing events locks the state first
    return len(readable) + crawler.catalog.transact(_classify_again)


def _classify_again(connection: Connection) -> int:
    understood = events_understood_now(connection)
    _revisit(connection, understood, [])
    classify_again(connection, understood)
    return len(understood)


def _store(connection: Connection) -> list[tuple[int, ChangelogEvent]]:
    """Store the events. Return them, each with the id of its row."""
    readable = [
        (kept.id, event)
        for kept in kept_rows(connection)
        if (event := _event_of(kept)) is not None and _fits(connection, kept.entry.after or 0, event.serial)
    ]
    for _, event in readable:
        store_events(connection, [event], event.serial - 1, event.serial)
    return readable


def _revisit(connection: Connection, late: Sequence[ChangelogEvent], rows: Sequence[int]) -> None:
    visits: dict[int, tuple[int, int, int]] = {}
    for event in late:
        project = find_project(connection, event.name)
        if project is not None and file_change(event).action not in NO_FILE_CHANGE:
            visits[project.id] = (project.id, project_shard(project.normalized), event.serial)
    discard_checkpoints(connection, list(visits))  # they were computed without these events
    revisit_soon(connection, list(visits.values()))
    forget_rows(connection, rows)


def _event_of(kept: KeptEntry) -> ChangelogEvent | None:
    try:
        return read_event(json.loads(kept.entry.text))
    except ValueError:  # the stored text was cut off
        return None


def _fits(connection: Connection, after: int, serial: int) -> bool:
    """Check whether a row after the serial `after` may have this serial, that is, whether no stored event is
    between."""
    if not after < serial <= events_through(connection):
        return False
    return serial == after + 1 or not has_at_least(connection, SerialRange(after, serial - 1), 1)
