"""What workers are at work on now: the open full crawl, scopes, serial ranges and audits, with how far each is."""

from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.coordination.claims import workers_of_workloads
from pypi_assets.catalog.ledger.range_ledger import unfinished_ranges
from pypi_assets.catalog.work.audits import find_open_audit
from pypi_assets.catalog.work.full_crawls import find_open_crawl
from pypi_assets.catalog.work.read_queue import count_pending_reads, count_queued_reads
from pypi_assets.catalog.work.scopes import all_scopes
from pypi_assets.catalog.work.visit_queue import range_workload, workload_progress


@dataclass(frozen=True, slots=True)
class RunningWork:
    """One piece of work. `name` is for people: `full crawl at serial 17`, `scope tools`, `range 17-23`.

    `processes` counts those that are known to live, on machines named `hosts`. `since` is when the work was begun first
    (unix seconds; None where that is not known), also where it was stopped and continued. `projects` is 0 before they
    are listed, and `reads_left` counts distributions of the projects that were visited. A full crawl visits every
    project, so of it they are all.
    """

    name: str
    is_full_crawl: bool
    processes: int
    since: float | None
    projects_done: int
    projects: int
    reads_left: int
    hosts: tuple[str, ...] = ()


def running_work(connection: Connection, now: float) -> list[RunningWork]:
    """What is at work at `now` (unix seconds), full crawls first; empty where no worker is known to live."""
    workers = workers_of_workloads(connection, now)
    if not workers:
        return []
    known: dict[str, tuple[str, float | None]] = {}
    if crawl := find_open_crawl(connection):
        known[crawl.workload] = (f"full crawl at serial {crawl.serial}", crawl.opened_at)
    known |= {scope.workload: (f"scope {scope.name}", scope.created_at) for scope in all_scopes(connection)}
    for entry in unfinished_ranges(connection):
        known.setdefault(range_workload(entry.serials), (f"range {entry.serials.key}", entry.begun_at))
    if audit := find_open_audit(connection):
        at = "" if audit.serial is None else f" at serial {audit.serial}"
        known[audit.workload] = (f"audit{at}", audit.opened_at)
    found = []
    for workload, (name, since) in known.items():
        if (by := workers.get(workload)) is not None:
            is_full_crawl = crawl is not None and workload == crawl.workload
            progress = workload_progress(connection, workload)
            reads_left = count_queued_reads(connection) if is_full_crawl else count_pending_reads(connection, workload)
            done = progress.total - progress.todo
            hosts = tuple(sorted(by.hosts))
            done_of = (done, progress.total, reads_left)
            found.append(RunningWork(name, is_full_crawl, len(by.processes), since, *done_of, hosts))
    return found
