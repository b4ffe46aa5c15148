"""A page that keeps failing delays no other project, and no page is abandoned while the whole index fails."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.tables import distribution_data, distributions
from pypi_assets.crawl.crawler import MOST_FAILING, Crawler, PageFailures
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.served_index import JSON, ServedIndex, live

HOURS = 3600.0


class Steps:
    """A clock that advances while a crawl sleeps, and then calls `asleep`."""

    def __init__(self, asleep: Callable[[], None] = lambda: None) -> None:
        self.now, self._asleep = 1_000_000.0, asleep

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self._asleep()
        self.now += seconds


def patient(index: ServedIndex, catalog: Catalog, clock: Steps) -> Crawler:
    """Return a crawler that waits up to six hours for the index."""
    timed = replace(catalog, clock=clock)
    return index.crawler(timed, sleep=clock.sleep, retry_pause_s=1.0, retry_deadline_s=6 * HOURS)


def odd(*projects: str, answer: Response) -> Callable[[Request], Response | None]:
    paths = {f"/simple/{project}/" for project in projects}
    return lambda request: answer if request.url.path in paths else None


def failing(catalog: Catalog) -> dict[str, str]:
    with catalog.read() as connection:
        return {failure.project: failure.outcome for failure in list_failures(connection, 50, "visit")}


ANSWERS = {
    "HTTP 500": PlainTextResponse("", 500),
    "another media type": PlainTextResponse("<html></html>"),
    "no media type": Response("<html></html>"),
    "broken JSON": Response("{", media_type=JSON),
    "a byte order mark": Response(b"\xef\xbb\xbf{}", media_type=JSON),
    "HTML in between": Response("<html></html>", media_type="text/html"),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_failing_page_is_abandoned_while_others_are_read(index: ServedIndex, catalog: Catalog, answer: Response):
    index.wheel("good", "1.0")
    index.wheel("odd", "1.0")
    seen: list[set[str]] = []
    clock = Steps(lambda: seen.append(read_files(catalog)))
    index.faults = odd("odd", answer=answer)
    result = crawl_full(patient(index, catalog, clock))
    assert (result.visits.done, result.visits.exhausted) == (1, 1)
    assert result.reads.data == 1
    assert clock.now < 1_000_000 + 60
    assert seen[-1] == {"good-1.0-py3-none-any.whl"}  # it did not wait for the odd page
    assert failing(catalog) == {"odd": "gave up"}


def read_files(catalog: Catalog) -> set[str]:
    """Return the files that were read."""
    query = (
        select(distributions.c.filename).join(distribution_data).where(distribution_data.c.outcome == ReadOutcome.DATA)
    )
    with catalog.read() as connection:
        return set(connection.scalars(query))


def test_range_names_open_projects_and_later_crawls_visit_them(index: ServedIndex, catalog: Catalog):
    index.wheel("good", "1.0")
    index.wheel("odd", "1.0")
    clock = Steps()
    crawler = patient(index, catalog, clock)
    crawl_full(crawler)
    index.wheel("good", "2.0")
    index.wheel("odd", "2.0")
    index.faults = odd("odd", answer=PlainTextResponse("", 500))
    [result] = crawl_incremental(crawler)
    assert result.open_projects == ("odd",)
    assert live(catalog) == index.shown()  # from its events
    assert crawl_incremental(crawler) == []  # too early for another visit
    index.faults = None
    assert crawl_incremental(crawler) == []
    assert failing(catalog) == {"odd": "gave up"}
    clock.now += HOURS
    assert crawl_incremental(crawler) == []
    assert failing(catalog) == {}
    assert "odd-2.0-py3-none-any.whl" in read_files(catalog)


def test_page_that_still_fails_is_visited_less_often(index: ServedIndex, catalog: Catalog):
    index.wheel("good", "1.0")
    index.wheel("odd", "1.0")
    clock = Steps()
    crawler = patient(index, catalog, clock)
    requests = []

    def answer(request: Request) -> Response | None:
        if request.url.path != "/simple/odd/":
            return None
        requests.append(clock.now)
        return PlainTextResponse("", 500)

    index.faults = answer
    crawl_full(crawler)
    first = len(requests)
    for _ in range(4 * 24):
        clock.now += HOURS / 4
        crawl_incremental(crawler)
    assert first < len(requests) < first + 24
    assert failing(catalog).keys() == {"odd"}


@pytest.mark.nightly
def test_no_page_is_abandoned_while_the_index_fails(index: ServedIndex, catalog: Catalog):
    for number in range(MOST_FAILING + 1):
        index.wheel(f"demo-{number}", "1.0")
    clock = Steps()

    def answer(request: Request) -> Response | None:
        is_page = request.url.path.startswith("/simple/demo-")
        return PlainTextResponse("", 503) if is_page and clock.now < 1_000_000 + HOURS else None

    index.faults = answer
    result = crawl_full(patient(index, catalog, clock))
    assert clock.now >= 1_000_000 + HOURS
    assert (result.visits.done, result.visits.exhausted) == (MOST_FAILING + 1, 0)
    assert live(catalog) == index.shown()


def test_failure_belongs_to_the_page_if_other_pages_succeed():
    failures = PageFailures()
    failures.note(0, 5.0, is_answered=True)
    for project in range(MOST_FAILING - 1):
        failures.note(project, 10.0, is_answered=False)
    assert failures.is_of_page(10.0)
    failures.note(MOST_FAILING, 10.0, is_answered=False)
    assert not failures.is_of_page(10.0)
    assert failures.is_of_page(4.0)
    failures.note(0, 12.0, is_answered=True)
    assert failures.is_of_page(10.0)
