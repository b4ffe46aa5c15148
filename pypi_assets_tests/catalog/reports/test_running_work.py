"""What workers are at work on, with how far it is."""

import platform

from pypi_assets.catalog.coordination.claims import claim_workload, expire_claims, new_worker
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import allocate_ranges, begin_range, complete_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.catalog_status import RunningWork, running_work
from pypi_assets.catalog.work.audits import open_audit
from pypi_assets.catalog.work.full_crawls import find_open_crawl
from pypi_assets.catalog.work.visit_queue import queue_visits, range_workload
from pypi_assets_tests.catalog.ended_visits import enter

NOW = 100.0
HERE = (platform.node(),)


def running(catalog: Catalog) -> list[RunningWork]:
    with catalog.read() as connection:
        return running_work(connection, NOW)


def at_work(catalog: Catalog, workload: str, until: float = NOW + 10) -> str:
    worker = new_worker()
    with catalog.write() as connection:
        claim_workload(connection, workload, worker, NOW, until)
    return worker


def test_an_open_full_crawl_runs_while_a_worker_is_at_work_on_it(opened: Catalog) -> None:
    with opened.read() as connection:
        crawl = find_open_crawl(connection)
    assert crawl is not None
    assert running(opened) == []
    workers = [at_work(opened, crawl.workload) for _ in range(2)]
    name = f"full crawl at serial {crawl.serial}"
    assert running(opened) == [RunningWork(name, True, 1, crawl.opened_at, 0, 0, 0, HERE)]
    with opened.write() as connection:
        [project] = enter(connection, 1)
        queue_visits(connection, crawl.workload, [(project.id, 0, 0)])
    assert running(opened) == [RunningWork(name, True, 1, crawl.opened_at, 0, 1, 0, HERE)]
    for worker in workers:
        with opened.write() as connection:
            expire_claims(connection, worker)
    assert running(opened) == []


def test_a_range_and_an_audit_run_at_the_same_time(opened: Catalog) -> None:
    with opened.write() as connection:
        complete_range(connection, SerialRange(0, 10), 1.0)
        [serials] = allocate_ranges(connection, [20], 5.0)
        begin_range(connection, serials, 50.0)
    audit = open_audit(opened, 5.0)
    at_work(opened, range_workload(serials))
    at_work(opened, audit.workload)
    assert running(opened) == [
        RunningWork("range 10-20", False, 1, 50.0, 0, 0, 0, HERE),
        RunningWork("audit", False, 1, audit.opened_at, 0, 0, 0, HERE),
    ]


def test_a_worker_whose_claim_has_ended_does_not_count(opened: Catalog) -> None:
    audit = open_audit(opened, 5.0)
    at_work(opened, audit.workload, until=NOW)
    assert running(opened) == []
