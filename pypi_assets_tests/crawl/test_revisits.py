"""Each range also visits a few projects with the oldest last visit, without waiting for them."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.tables import projects, visits
from pypi_assets.catalog.work.visit_queue import REVISITS, workload_progress
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets_tests.crawl.test_second_crawl import change_page
from pypi_assets_tests.derived_statistics import find_visit_statistics
from pypi_assets_tests.served_index import ServedIndex, live


def audited(catalog: Catalog) -> list[str]:
    """Return the projects that were visited as an audit, in order."""
    with catalog.read() as connection:
        query = select(projects.c.normalized).join(visits, visits.c.project_id == projects.c.id)
        return list(connection.scalars(query.where(visits.c.kind == "audit").order_by(visits.c.id)))


@pytest.mark.nightly
def test_revisit_share_cycles_through_all_projects(index: ServedIndex, catalog: Catalog):
    for number in range(4):
        index.wheel(f"still{number}", "1.0")
    crawl_full(index.crawler(catalog))
    crawler = index.crawler(catalog, revisit_share=100.0)
    for number in range(4):
        index.wheel("moving", f"1.{number}")
        [result] = crawl_incremental(crawler)
        assert result.visits.total == 1
    assert sorted(audited(catalog)) == [f"still{number}" for number in range(4)]
    index.wheel("moving", "2.0")
    crawl_incremental(replace(crawler, revisit_share=0.0))
    assert len(audited(catalog)) == 4


def test_rerun_range_has_no_further_share(index: ServedIndex, catalog: Catalog):
    for name in ("one", "two", "three"):
        index.wheel(name, "1.0")
    crawl_full(index.crawler(catalog))
    index.wheel("moving", "1.0")
    crawler = index.crawler(catalog, revisit_share=100.0)
    crawl_incremental(crawler)
    crawl_incremental(crawler)
    assert len(audited(catalog)) == 1


def test_change_without_event_is_found_by_a_revisit(index: ServedIndex, catalog: Catalog):
    gone = index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    change_page(index, "one", **{gone: None})
    index.wheel("moving", "1.0")
    [result] = crawl_incremental(index.crawler(catalog, revisit_share=100.0))
    assert live(catalog) == {("moving-1.0-py3-none-any.whl", False)}
    assert result.unexplained_changes == 1


@pytest.mark.nightly
def test_file_found_by_an_audit_is_read(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    index.wheel("moving", "1.0")
    crawler = index.crawler(catalog, revisit_share=100.0)
    index.faults = None
    answered = []

    def upload(request):
        if "/simple/one/" in request.url.path and not answered:
            answered.append(index.wheel("one", "2.0"))  # after the range was allocated
        return

    index.faults = upload
    [result] = crawl_incremental(crawler)
    assert result.reads.data == 1
    assert catalog_status(catalog).outcomes["data"] == 3


@pytest.mark.nightly
def test_failing_audit_delays_no_range_and_is_retried_later(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    index.faults = lambda request: PlainTextResponse("", 404) if "/simple/one/" in request.url.path else None
    now = 2e9
    timed = replace(catalog, clock=lambda: now)
    crawler = index.crawler(timed, revisit_share=100.0, retry_deadline_s=3_600.0, retry_pause_s=60.0)
    index.wheel("moving", "1.0")
    before = live(catalog)
    crawl_incremental(crawler)
    with catalog.read() as connection:
        assert complete_serial(connection) == index.serial
        assert workload_progress(connection, REVISITS).todo == 1
        project = find_project(connection, "one")
        assert project is not None
        found = find_visit_statistics(connection, project.id)
    assert found is not None
    assert (found.last_outcome, found.successive_outcomes, found.next_due_at is not None) == ("failed", 1, True)
    assert before <= live(catalog)  # a 404 is not believed at once
    assert catalog_status(catalog).visited.failing == 1

    index.wheel("moving", "1.1")
    crawl_incremental(crawler)
    assert audited(catalog).count("one") == 1  # it is not due yet
    index.faults = None
    now += 600.0
    index.wheel("moving", "1.2")
    crawl_incremental(crawler)
    assert audited(catalog).count("one") == 2
    assert catalog_status(catalog).visited.failing == 0
    assert live(catalog) == index.shown()


def test_exhausted_revisit_is_counted_and_retried(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    index.faults = lambda request: PlainTextResponse("", 403) if "/simple/one/" in request.url.path else None
    crawler = index.crawler(catalog, revisit_share=100.0)
    index.wheel("moving", "1.0")
    [result] = crawl_incremental(crawler)
    assert (result.visits.exhausted, catalog_status(catalog).failed_visits) == (0, 1)
    index.faults = None
    assert retry(crawler).retried_visits == 1
    assert catalog_status(catalog).failed_visits == 0
    with catalog.read() as connection:
        kinds = select(visits.c.kind, func.count()).where(visits.c.workload == REVISITS).group_by(visits.c.kind)
        assert connection.execute(kinds).all() == [("audit", 2)]
