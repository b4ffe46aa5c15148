"""The machine's clock is set forward or back by hours during a crawl, which ends as fast as without that, and exact."""

import random
import time
from collections import Counter
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.coordination.rates import SharedRate
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.rate import Rates
from pypi_assets_tests.crawl.clocks import SetClock
from pypi_assets_tests.crawl.test_faults import change, fill, rows
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.served_index import ServedIndex, live

HOUR_S = 3600.0
PATIENCE_S = 60.0
"""A crawl that takes this long waits for the clock."""


class Jumps:
    """Sets the clock at drawn requests, and first fails some of the requests.

    A crawl checks the clock several times a second, so it has noticed the previous step by then.
    """

    def __init__(self, seed: int, clock: SetClock, hours: tuple[float, ...], crawler: Crawler) -> None:
        self._draw, self._clock, self._hours, self._crawler = random.Random(seed), clock, hours, crawler
        self._failed: Counter[str] = Counter()
        self.set = 0

    def __call__(self, request: Request) -> Response | None:
        path = request.url.path
        if self._draw.random() < 0.15:
            self._crawler.clock_steps.follow(self._crawler.catalog)
            self._clock.ahead_s += self._draw.choice(self._hours) * HOUR_S
            self.set += 1
        if path != "/pypi" and self._failed[path] < 3 and self._draw.random() < 0.3:
            self._failed[path] += 1
            is_page = path.startswith("/simple/") and path != "/simple/"
            return PlainTextResponse("", self._draw.choice((404, 503)) if is_page else 503)
        return None


def follower(index: ServedIndex, catalog: Catalog) -> Crawler:
    rates = Rates(SharedRate(catalog, "requests", 2_000.0), SharedRate(catalog, "changelog", 2_000.0))
    client = index.client(rates=rates)
    return index.crawler(catalog, index=client, retry_deadline_s=6 * HOUR_S, retry_pause_s=0.02, page_attempts=10)


@pytest.mark.nightly
@pytest.mark.parametrize("hours", [(5.0, 30.0), (-5.0, -30.0), (-30.0, -2.0, 2.0, 30.0)])
def test_crawl_with_clock_steps_is_exact(hours: tuple[float, ...], index: ServedIndex, tmp_path: Path) -> None:
    undisturbed = index.crawler(open_catalog(sqlite_database(tmp_path / "undisturbed.sqlite")))
    homes = [open_catalog(sqlite_database(tmp_path / f"{seed}.sqlite")) for seed in range(max(1, examples(2)))]
    clocks = [SetClock() for _ in homes]
    for upload, crawl in ((fill, crawl_full), (change, crawl_incremental)):
        upload(index)
        crawl(undisturbed)
        for seed, (home, clock) in enumerate(zip(homes, clocks, strict=True)):
            disturbed, began = follower(index, clock.of(home)), time.monotonic()
            jumps = index.faults = Jumps(seed, clock, hours, disturbed)
            crawl(disturbed)
            assert time.monotonic() - began < PATIENCE_S
            index.faults = None
            assert jumps.set > 0
            assert live(disturbed.catalog) == live(undisturbed.catalog) == index.shown()
            assert rows(disturbed) == rows(undisturbed)
            status = catalog_status(disturbed.catalog)
            assert (status.failed_visits, status.outcomes["gave up"], status.outcomes["error"]) == (0, 0, 0)
    for catalog in (*homes, undisturbed.catalog):
        catalog.close()


@pytest.mark.parametrize("hours", [-9.0, 9.0])
def test_absence_is_not_believed_because_of_a_clock_step(
    hours: float, index: ServedIndex, sqlite_catalog: Catalog
) -> None:
    index.wheel("demo", "1.0")
    clock = SetClock()
    crawl_full(follower(index, clock.of(sqlite_catalog)))
    index.wheel("demo", "2.0")
    missing = [True] * 4

    def answer(request: Request) -> Response | None:
        if request.url.path != "/simple/demo/" or not missing:
            return None
        missing.pop()
        if len(missing) == 2:
            clock.ahead_s += hours * HOUR_S
        return PlainTextResponse("", 404)

    index.faults = answer
    began = time.monotonic()
    crawl_incremental(follower(index, clock.of(sqlite_catalog)))
    assert time.monotonic() - began < PATIENCE_S
    assert missing == []
    assert live(sqlite_catalog) == index.shown()
    assert catalog_status(sqlite_catalog).unexplained_changes == 0


@pytest.mark.parametrize("hours", [-9.0, 9.0])
def test_crawl_continues_after_a_clock_step_while_stopped(
    hours: float, index: ServedIndex, sqlite_catalog: Catalog
) -> None:
    for number in range(3):
        index.wheel(f"demo{number}", "1.0")
    clock = SetClock()

    class StoppedError(Exception):
        """Ends the crawl."""

    def stop(_seconds: float) -> None:
        raise StoppedError

    def down(request: Request) -> Response | None:
        is_read = request.url.path.startswith(("/packages/", "/simple/demo"))
        return PlainTextResponse("", 503) if is_read else None

    index.faults = down
    crawler = follower(index, clock.of(sqlite_catalog))
    object.__setattr__(crawler, "sleep", stop)
    with pytest.raises(StoppedError):
        crawl_full(crawler)
    index.faults = None
    clock.ahead_s += hours * HOUR_S
    began = time.monotonic()
    crawl_full(follower(index, clock.of(sqlite_catalog)))
    assert time.monotonic() - began < PATIENCE_S
    assert live(sqlite_catalog) == index.shown()
    assert catalog_status(sqlite_catalog).outcomes["gave up"] == 0
