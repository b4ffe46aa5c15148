"""Audits: compare the serial of every listed project with the catalog, and visit the projects that differ.

An audit also visits a share of the projects, which the visit policy chooses. Only a visit finds changes without an
event and without a new serial, for example that a project was archived.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection

from pypi_assets.catalog.ledger.range_ledger import complete_serial, last_allocated_serial
from pypi_assets.catalog.observed.events import events_through
from pypi_assets.catalog.observed.index_state import replace_list
from pypi_assets.catalog.observed.visit_statistics import note_seen
from pypi_assets.catalog.work.audits import (
    Audit,
    Drift,
    Findings,
    complete_audit,
    lock_audit,
    note_listed,
    open_audit,
)
from pypi_assets.catalog.work.finished_workloads import forget_visits
from pypi_assets.catalog.work.full_crawls import last_completed_crawl, require_all_followed, require_followable
from pypi_assets.catalog.work.listed_projects import ComparedProject, known_serials, queue_listed, rename_listed
from pypi_assets.catalog.work.revisits import choose_projects
from pypi_assets.catalog.work.visit_queue import WorkloadProgress, exhausted_visits, queue_visits
from pypi_assets.crawl.crawler import Crawler, observe
from pypi_assets.crawl.listers import query_changelog
from pypi_assets.crawl.reading import ReadCounts, read_workload
from pypi_assets.crawl.simple_lister import ComparedList, require_serial
from pypi_assets.crawl.stored_events import catch_up
from pypi_assets.crawl.visiting import visit_workload
from pypi_assets.index.models import ListedProject


@dataclass(frozen=True, slots=True)
class AuditResult:
    audit: Audit
    visits: WorkloadProgress
    reads: ReadCounts


def audit_index(crawler: Crawler, share_percent: float) -> AuditResult:
    """Run an audit, or the rest of the open one.

    Its findings are stored in the catalog and in the log of changes, so that the next dumps have them.
    """
    with crawler.catalog.read() as connection:
        require_followable(connection, crawler.index.index_url, crawler.selection)
        require_all_followed(connection, crawler.selection)
    observe(crawler, everything=True, with_list=True)
    audit = open_audit(crawler.catalog, share_percent)
    if audit.serial is None:
        audit = _compare(crawler, audit)
    visits = visit_workload(crawler, audit.workload)
    reads = read_workload(crawler, audit.workload)
    completed = complete_audit(crawler.catalog, audit)
    for workload in _complete_workloads(crawler, completed):
        forget_visits(crawler.catalog, workload)
    return AuditResult(completed, visits, reads)


def _complete_workloads(crawler: Crawler, audit: Audit) -> list[str]:
    """Return the workloads of the audit and of the last full crawl, whose visits may not have been deleted yet."""
    with crawler.catalog.read() as connection:
        crawl = last_completed_crawl(connection)
    return [audit.workload] if crawl is None else [audit.workload, crawl.workload]


def _compare(crawler: Crawler, audit: Audit) -> Audit:
    """Compare the list page by page, and then queue visits of the projects that differ and of the share.

    The events up to the list's serial are stored first, so that their changes do not count as drift. All visits are
    queued in one transaction; if the comparison is stopped before, no visit is queued. If several processes compare a
    list at the same time, the first one fills the queue of the audit, and the others use that queue.
    """
    with crawler.index.iter_listing() as (listing_serial, listed):
        serial = require_serial(crawler, listing_serial)
        is_followed = query_changelog(crawler, partial(catch_up, crawler, serial), again=True) is not None
        comparing = _ListComparison(crawler, audit, ComparedList(crawler, serial, listed), is_followed)
        for page in comparing.list.pages():
            comparing.differing += crawler.catalog.transact(partial(comparing.compare, page=page))
        return crawler.catalog.transact(comparing.end)


class _ListComparison:
    """The comparison of one list with the catalog, and the projects that differ, each with the cause.

    `is_followed` is set if the events up to the list's serial are stored.
    """

    def __init__(self, crawler: Crawler, audit: Audit, compared: ComparedList, is_followed: bool) -> None:
        self.list = compared
        self.differing: list[tuple[ComparedProject, Drift]] = []
        self._audit = audit
        self._now = crawler.catalog.clock
        self._is_followed = is_followed
        with crawler.catalog.read() as connection:
            self._complete = complete_serial(connection)
            self._followed_to = max(events_through(connection), last_allocated_serial(connection))

    def compare(self, connection: Connection, page: Sequence[ListedProject]) -> list[tuple[ComparedProject, Drift]]:
        """Return the projects of `page` that differ, each with the cause."""
        compared = self.list.compare(connection, page)
        rename_listed(connection, page)
        note_seen(connection, dict.fromkeys((one.id for one in compared), self._now()))
        return [(project, cause) for project in compared if (cause := self._cause(project)) is not None]

    def _cause(self, project: ComparedProject) -> Drift | None:
        """Return why a listed project has drifted; None if it has not, or if the next range will update it."""
        listed = project.listed_serial or 0
        if listed > self._followed_to or project.known_serial > self.list.serial:
            return None
        if project.known_serial < 0:
            return Drift.UNKNOWN_PROJECT
        if listed == project.known_serial:
            return None
        return Drift.SERIAL_AHEAD if listed > project.known_serial else Drift.SERIAL_LAGS

    def end(self, connection: Connection) -> Audit:
        """Queue the projects that differ, the projects that are no longer listed, and the share.

        Unlisted projects with changes in an open range are skipped. Unlisted projects with exhausted visits are queued,
        since nothing else visits them again.

        Returns the audit with its findings so far. If another process has already filled its queue, the audit is
        returned unchanged.
        """
        audit = lock_audit(connection, self._audit)
        if audit.serial is not None:
            return audit
        findings = Findings()
        unlisted = [one for one in self.list.unlisted(connection) if one.known_serial <= self._complete]
        for project, cause in [*self.differing, *((project, Drift.NOT_LISTED) for project in unlisted)]:
            findings.add(cause, project.name)
        if self._is_followed:  # then its events are known, and its page is believed
            unlisted = [replace(project, known_serial=-1) for project in unlisted]
        differing = [project for project, _ in self.differing]
        queue_listed(connection, [*differing, *unlisted], self.list.serial, audit.workload)
        share = math.ceil(self.list.projects * audit.share_percent / 100)
        chosen = choose_projects(connection, share, is_wanted=self.list.has)
        tasks = known_serials(connection, [one.project_id for one in chosen])
        queue_visits(connection, audit.workload, tasks)
        gone = [(id_, shard, 0) for id_, shard in exhausted_visits(connection) if not self.list.has(id_)]
        queue_visits(connection, audit.workload, gone)
        replace_list(connection, self.list.broken, self._now())
        return note_listed(connection, audit, self.list.serial, findings)
