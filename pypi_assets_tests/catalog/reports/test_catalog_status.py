"""The status of the catalog, from an empty one to an open crawl."""

from dataclasses import replace

import pytest

from pypi_assets.catalog.coordination.claims import claim_workload, new_worker
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import allocate_ranges, complete_range
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reports.catalog_status import MOST_SPANS, OpenCrawl, catalog_status
from pypi_assets.catalog.work.full_crawls import complete_crawl, list_projects, open_crawl
from pypi_assets.catalog.work.visit_queue import TaskState, claim_visits, finish_visits, range_workload
from pypi_assets.index.models import ListedProject

INDEX = "https://index.example.org/simple/"


def test_an_empty_catalog_has_a_status(catalog: Catalog):
    status = catalog_status(catalog)
    assert (status.complete_serial, status.exact_from, status.events_through) == (None, None, None)
    assert (status.live_distributions, status.outcomes) == (0, dict.fromkeys((one.value for one in Outcome), 0))
    assert (status.open_crawl, status.open_ranges, status.failed_visits) == (None, 0, 0)
    assert (status.ledger_faults, status.inexact_spans) == ((), ())


def test_the_end_of_an_open_crawl_is_expected_once_a_visit_has_ended(catalog: Catalog):
    started = replace(catalog, clock=lambda: 1_000.0)
    crawl = open_crawl(started, 10, 10, INDEX, Selection())
    list_projects(started, crawl, [ListedProject(f"project{number}", number) for number in range(4)], 10)
    now = replace(catalog, clock=lambda: 1_030.0)
    before = catalog_status(now).open_crawl
    assert before is not None
    assert (before.projects, before.projects_done, before.expected_end) == (4, 0, None)
    with catalog.write() as connection:
        tasks = claim_visits(connection, crawl.workload, None, worker="one", now=1.0, until=9.0, limit=3)
        finish_visits(connection, [(task, TaskState.DONE, None) for task in tasks])
    after = catalog_status(now).open_crawl
    assert after == OpenCrawl(10, 3, 4, 3, 4, pytest.approx(0.1), pytest.approx(1_040.0))


def test_ranges_count_as_running_while_a_worker_is_active_on_them(catalog: Catalog):
    crawl = open_crawl(catalog, 10, 10, INDEX, Selection())
    list_projects(catalog, crawl, [], 10)
    assert complete_crawl(catalog, crawl)
    with catalog.write() as connection:
        one, _ = allocate_ranges(connection, [20, 30], 1.0)
        claim_workload(connection, range_workload(one), new_worker(), catalog.clock(), catalog.clock() + 60)
    status = catalog_status(catalog)
    assert (status.complete_serial, status.open_ranges, status.running_ranges) == (10, 2, 1)
    assert status.exact_from == 10
    assert status.last_crawl_completed_at is not None


def test_the_newest_inexact_spans_are_shown_and_no_more_of_them_with_age(catalog: Catalog):
    list_projects(catalog, crawl := open_crawl(catalog, 10, 10, INDEX, Selection()), [], 10)
    assert complete_crawl(catalog, crawl)
    with catalog.write() as connection:
        for serials in allocate_ranges(connection, list(range(11, 14 + MOST_SPANS)), 1.0):
            complete_range(connection, serials, 2.0, exact_from=serials.end)
    spans = catalog_status(catalog).inexact_spans
    assert [span.end for span in spans] == list(range(14, 14 + MOST_SPANS))
