"""Several processes drain one queue: no file is read twice, and if a process is killed, the others finish its work."""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update
from starlette.requests import Request

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.visits import ABANDONED_VISIT, VisitStatus
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    read_attempts,
    read_queue,
    visit_queue,
    visit_statuses,
    visits,
)
from pypi_assets.catalog.work import visit_queue as visit_queue_module
from pypi_assets.catalog.work.read_queue import ABANDONED
from pypi_assets.catalog.work.visit_queue import VisitTask
from pypi_assets.crawl import visiting
from pypi_assets.crawl.draining import claiming, drain
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.served_index import ServedIndex, live
from pypi_assets_tests.waiting import until

PROJECTS = 12

WORKER = """
import sys
from dataclasses import replace
from pypi_assets.components import catalog_from, crawler_from, index_from, readers_from, storage_from
from pypi_assets.crawl import draining
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.settings import load_settings

url, database_url, storage_url, work, name = sys.argv[1:]
settings = load_settings(
    index_url=url,
    database_url=database_url,
    storage_url=storage_url,
    contact=f"{name}@example.org",
    requests_per_second=1000,
    max_connections=2,
    request_attempts=1,
    in_flight=4,
)
catalog = catalog_from(settings)
crawler = crawler_from(
    settings, index_from(settings, catalog), catalog, storage_from(settings), readers_from(settings)
)
print("ready", flush=True)
sys.stdin.readline()
draining._FIRST_NAP_S, draining._LONGEST_NAP_S = 0.05, 0.2
{"full": crawl_full, "incremental": crawl_incremental}[work](replace(crawler, claim_lease_s=600.0))
"""


@contextmanager
def worker(index: ServedIndex, catalog: Catalog, work: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that opens everything and starts on a line of input. If it is killed, its claims end with it."""
    database_url = catalog.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", WORKER, index.url, database_url, index.storage.url, work, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.close()


def fill(index: ServedIndex, version: str) -> None:
    for number in range(PROJECTS):
        index.wheel(f"project{number}", version)
        index.sdist(f"project{number}", version)


def attempts_of(catalog: Catalog) -> dict[str, Counter[str]]:
    """Return the number of attempts per outcome for each file."""
    found: dict[str, Counter[str]] = {}
    with catalog.read() as connection:
        query = select(distributions.c.filename, read_attempts.c.outcome).join(
            read_attempts, read_attempts.c.distribution_id == distributions.c.id
        )
        for filename, outcome in connection.execute(query):
            found.setdefault(filename, Counter())[outcome] += 1
    return found


def assert_nothing_is_left(catalog: Catalog) -> None:
    with catalog.read() as connection:
        assert connection.scalar(select(func.count()).select_from(read_queue)) == 0
        assert connection.scalar(select(func.count()).where(visit_queue.c.claimed_by.is_not(None))) == 0
        ended = select(visit_statuses.c.visit_id).where(visit_statuses.c.status != VisitStatus.ONGOING)
        assert connection.scalar(select(func.count()).where(visits.c.id.not_in(ended))) == 0


@pytest.mark.nightly
def test_two_processes_share_one_crawl(index: ServedIndex, catalog: Catalog):
    fill(index, "1.0")
    requested: set[str] = set()
    both_read = threading.Event()

    def wait_for_both(request: Request) -> None:
        """Serve files only after both processes have requested a file."""
        if "/packages/" in request.url.path:
            requested.add(request.headers["user-agent"])
            if len(requested) == 2:
                both_read.set()
            both_read.wait(300)

    index.faults = wait_for_both
    with ExitStack() as stack:
        processes = [stack.enter_context(worker(index, catalog, "full", name)) for name in ("one", "two")]
        for process in processes:
            begin(process)
        for process in processes:
            assert process.wait(300) == 0
    assert live(catalog) == index.shown()
    with catalog.read() as connection:
        assert complete_serial(connection) == index.serial
    assert both_read.is_set()
    assert catalog_status(catalog).open_crawl is None
    counts = attempts_of(catalog)
    assert set(counts) == {filename for filename, _ in live(catalog)}
    assert all(count == Counter([ReadOutcome.DATA]) for count in counts.values())
    assert_nothing_is_left(catalog)


@pytest.mark.nightly
@pytest.mark.parametrize(("work", "path"), [("full", "/simple/project"), ("incremental", "/packages/")])
def test_other_processes_finish_the_work_of_a_killed_one(index: ServedIndex, catalog: Catalog, work: str, path: str):
    fill(index, "1.0")
    if work == "incremental":
        crawl_full(index.crawler(catalog))
        fill(index, "2.0")
    with (
        index.holding(path, 3, "killed@") as held,
        worker(index, catalog, work, "killed") as victim,
        worker(index, catalog, work, "other") as other,
    ):
        begin(victim)
        held.wait()
        begin(other)
        victim.kill()
        victim.wait(300)
        held.release()
        assert other.wait(300) == 0
    assert live(catalog) == index.shown()
    assert catalog_status(catalog).complete_serial == index.serial
    counts = attempts_of(catalog)
    assert all(
        count[ReadOutcome.DATA] == 1 and set(count) <= {ReadOutcome.DATA, ABANDONED} for count in counts.values()
    )
    abandoned = sum(count[ABANDONED] for count in counts.values())
    with catalog.read() as connection:
        abandoned += connection.scalar(select(func.count()).where(visit_statuses.c.text == ABANDONED_VISIT))
    assert 0 < abandoned <= 4
    assert_nothing_is_left(catalog)


def test_worker_waits_for_claimed_work_and_takes_over_abandoned_work(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.sleeping_crawler(catalog)  # no claim ends during its work
    index.faults = lambda request: claim_for_another() if "/simple/one" in request.url.path else None

    def claim_for_another() -> None:
        """Make another worker take over the current visit and die soon."""
        index.faults = None
        with catalog.write() as connection:
            soon = crawler.catalog.clock() + 30.0
            connection.execute(update(visit_queue).values(claimed_by="another", claimed_until=soon))

    result = crawl_full(crawler)
    assert (result.visits.done, result.visits.lost) == (1, 1)
    assert live(catalog) == index.shown()


def test_read_lost_to_another_worker_is_dropped_and_counted(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0")
    crawler = index.sleeping_crawler(catalog)  # no claim ends during its work

    def claim_for_another() -> None:
        index.faults = None
        with catalog.write() as connection:
            soon = crawler.catalog.clock() + 30.0
            connection.execute(update(read_queue).values(claimed_by="another", claimed_until=soon))

    index.faults = lambda request: claim_for_another() if wheel in request.url.path else None
    result = crawl_full(crawler)
    assert (result.reads.data, result.reads.lost) == (1, 1)
    assert attempts_of(catalog)[wheel] == Counter([ReadOutcome.DATA, ABANDONED])


def test_file_that_kills_its_workers_is_exhausted(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0")
    crawler = index.crawler(catalog, max_attempts=2)

    def claim_for_another(request: Request) -> None:
        if wheel in request.url.path:
            with catalog.write() as connection:
                connection.execute(
                    update(read_queue)
                    .where(read_queue.c.claimed_by.is_not(None))
                    .values(claimed_by="another", claimed_until=0)
                )

    index.faults = claim_for_another
    result = crawl_full(crawler)
    assert (result.reads.exhausted, catalog_status(catalog).complete_serial) == (1, index.serial)
    assert attempts_of(catalog)[wheel][ABANDONED] == 2
    with catalog.read() as connection:
        exhausted = select(distribution_data.c.error_kind).where(distribution_data.c.outcome == ReadOutcome.EXHAUSTED)
        assert connection.scalars(exhausted).all() == ["worker died"]


def test_claims_are_renewed_during_the_work(index: ServedIndex, catalog: Catalog):
    """The catalog's clock advances only after a renewal was seen, so that the claim never expires before one."""
    index.wheel("one", "1.0")
    renewed, now, lease_s = threading.Event(), [time.time()], 0.3
    crawler = index.crawler(replace(catalog, clock=lambda: now[0]), claim_lease_s=lease_s)

    def wait_for_renewals(request: Request) -> None:
        if "/simple/one" not in request.url.path:
            return
        for _ in range(5):
            now[0] += 0.2
            until(lambda: claimed_until() > now[0] + lease_s - 0.01)
        renewed.set()

    def claimed_until() -> float:
        with catalog.read() as connection:
            return connection.scalar(select(visit_queue.c.claimed_until)) or 0.0

    index.faults = wait_for_renewals
    assert crawl_full(crawler).visits.lost == 0
    assert renewed.is_set()


def test_claim_expired_during_the_work_is_not_reclaimed_by_its_worker(
    index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    index.wheel("one", "1.0")
    now, claims, requested = [time.time()], [0], []

    def claim_visits(*arguments: object, **named: object) -> list[VisitTask]:
        claims[0] += 1
        return visit_queue_module.claim_visits(*arguments, **named)

    def expire(request: Request) -> None:
        if "/simple/one" in request.url.path:
            requested.append(request.url.path)
            now[0] += 1_000.0
            before = claims[0]
            until(lambda: claims[0] >= before + 2)

    monkeypatch.setattr(visiting, "claim_visits", claim_visits)
    index.faults = expire
    result = crawl_full(index.crawler(replace(catalog, clock=lambda: now[0])))
    assert (result.visits.done, result.visits.lost, len(requested)) == (1, 0, 1)
    assert live(catalog) == index.shown()


def test_claims_are_released_at_an_orderly_end(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    with claiming(crawler, None) as first, claiming(crawler, None) as second:
        assert first != second

    def fail(request: Request) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crawl_full(index.crawler(catalog, report=lambda progress: fail(None) if progress.stage == "reads" else None))
    with catalog.read() as connection:
        assert connection.scalar(select(func.count()).where(read_queue.c.claimed_by.is_not(None))) == 0
    crawl_full(crawler)
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()


class Bundled:
    """Work with one bundle of items. The second claim fails."""

    def __init__(self, items: int) -> None:
        self.bundles = [range(items)]
        self.has_failed = threading.Event()
        self.done: list[int] = []

    def claim(self, _: int) -> list[range]:
        if not self.bundles:
            self.has_failed.set()
        return [self.bundles.pop()]

    def do(self, bundle: Iterable[int]) -> list[None]:
        for item in bundle:
            self.done.append(item)
            self.has_failed.wait(0.001)
        return [None] * len(self.done)

    def store(self, done: Sequence[tuple[int, None]]) -> None: ...

    def is_enough(self, done: Sequence[tuple[int, None]]) -> bool:
        return False

    def ready_at(self) -> None: ...


def test_rest_of_a_bundle_is_skipped_once_the_work_has_ended(index: ServedIndex, catalog: Catalog):
    work = Bundled(10**7)
    with pytest.raises(IndexError):
        drain(index.crawler(catalog, in_flight=10**9), work)
    assert 0 < len(work.done) < 10**7
