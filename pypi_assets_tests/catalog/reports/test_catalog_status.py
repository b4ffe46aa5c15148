"""The status of the catalog, from an empty catalog to an open crawl."""

import platform
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import delete, insert, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED, claim_workload, expire_claims, new_worker
from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger import range_ledger
from pypi_assets.catalog.ledger.range_ledger import (
    SIMPLE,
    XMLRPC,
    RangeState,
    allocate_range,
    allocate_ranges,
    begin_range,
    complete_range,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.index_state import ListerState, save_lister_state
from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, ReadOutcome
from pypi_assets.catalog.reports.catalog_status import (
    MOST_SPANS,
    ExhaustedWork,
    Followed,
    ObservedState,
    OpenCrawl,
    RunningWork,
    about_known,
    catalog_status,
    count_again,
    count_differences,
    ledger_faults,
    observed_state,
    read_exhausted,
    read_followed,
    running_work,
    work_done,
)
from pypi_assets.catalog.reports.failures import VISIT
from pypi_assets.catalog.tables import changes, full_crawls, serial_ranges
from pypi_assets.catalog.work.audits import open_audit
from pypi_assets.catalog.work.full_crawls import complete_crawl, find_open_crawl, list_projects, open_crawl
from pypi_assets.catalog.work.read_queue import claim_reads, finish_reads
from pypi_assets.catalog.work.visit_queue import TaskState, claim_visits, finish_visits, queue_visits, range_workload
from pypi_assets.index.models import ChangelogEvent, ListedProject
from pypi_assets.index.observing.observed_index import ObservedIndex
from pypi_assets_tests.catalog.claimed_queues import Reads
from pypi_assets_tests.catalog.ended_visits import enter, visit
from pypi_assets_tests.index.observing.test_observed_index import POLICY, URL, Client, Source, Time, nothing, shown
from pypi_assets_tests.naming import mentions


def test_totals_grow_with_known_and_finished_work(catalog: Catalog):
    with catalog.read() as connection:
        assert (about_known(connection), work_done(connection)) == (0, (0, 0))
    reads = Reads(catalog, 3)
    reads.claim("one", 1.0, 2)
    reads.finish("one", reads.items[:2], 1.0, None)
    with catalog.write() as connection:
        visit(connection, enter(connection, 2), "page", 1.0)
        assert (about_known(connection), work_done(connection)) == (3 + 3, (2, 2))


def test_share_counts_all_known_projects_and_is_zero_when_empty(catalog: Catalog):
    with catalog.read() as connection:
        empty = read_exhausted(connection)
    assert (empty, empty.count, empty.percent) == (ExhaustedWork({VISIT: 0}, 0), 0, 0)
    assert ExhaustedWork({"transient": 3, VISIT: 1}, 200).percent == 2.0


def test_permanent_errors_are_not_exhausted_work(catalog: Catalog):
    queue = Reads(catalog, 3)
    with catalog.write() as connection:
        reads = claim_reads(connection, queue.workload, None, worker="one", now=1.0, until=9.0, limit=3)
        outcomes = (ReadOutcome.ERROR, ReadOutcome.EXHAUSTED, ReadOutcome.PENDING)
        finished = [FinishedRead(one.distribution_id, outcome) for one, outcome in zip(reads, outcomes, strict=True)]
        finish_reads(connection, finished, "one", 1.0)
        assert read_exhausted(connection) == ExhaustedWork({WORKER_DIED: 1, VISIT: 0}, 4)  # 3 files and 1 project


INDEX_URL = "http://127.0.0.1/simple/"


def read(catalog: Catalog) -> Followed:
    with catalog.read() as connection:
        return read_followed(connection)


def test_empty_catalog_reports_nothing(catalog: Catalog):
    assert read(catalog) == Followed(None, None, None, None, None, None)


def test_complete_serial_counts_after_a_complete_full_crawl(opened: Catalog):
    assert read(opened) == Followed(INDEX_URL, None, None, None, None, None)
    with opened.write() as connection:
        connection.execute(update(full_crawls).values(completed_at=5.0, open=None))
        complete_range(connection, SerialRange(0, 10), 5.0)
        store_events(connection, [ChangelogEvent("Demo", None, 77, "docupdate", 12)], 10, 12)
    assert read(opened) == Followed(INDEX_URL, 10, 77, None, None, None)


def test_listers_report_the_list_and_changelog_failures(opened: Catalog):
    with opened.write() as connection:
        for lister, content in (
            (SIMPLE, {"serial": 12, "ended_at": 9.0}),
            (XMLRPC, {"failing_since": 5.0, "off_since": 6.0, "error": "gone"}),
        ):
            save_lister_state(connection, ListerState(lister, INDEX_URL, {}), content, 9.0, lambda stored, _: stored)
    followed = read(opened)
    assert (followed.listed_serial, followed.listed_at, followed.is_changelog_off) == (12, 9.0, True)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def source() -> Source:
    return Source({name: shown(name, f"{name}-1.0.tar.gz") for name in ("demo", "other", "third")})


@pytest.fixture
def state(catalog: Catalog, time: Time) -> Callable[[], ObservedState]:
    def now() -> ObservedState:
        with catalog.read() as connection:
            return observed_state(connection, time.now, POLICY.confirm_after_s)

    return now


def test_due_and_waiting_work_is_counted(
    catalog: Catalog, source: Source, time: Time, state: Callable[[], ObservedState]
) -> None:
    assert state() == ObservedState(0, 0, None, 0, (), None)
    memory = Observations(replace(catalog, clock=lambda: time.now), URL)
    index = ObservedIndex(Client(), source, memory, POLICY)  # type: ignore[arg-type]
    index.observe(nothing)
    due_at = time.now + POLICY.shortest_s
    assert state() == ObservedState(3, 0, due_at, 0, (), None)

    time.now = due_at
    assert state() == ObservedState(3, 3, None, 0, (), None)
    for name in ("demo", "other"):
        del source.pages[name]
    index.observe(nothing)
    confirmed_from = time.now + POLICY.confirm_after_s
    assert state() == ObservedState(3, 0, confirmed_from, 2, ("demo", "other"), confirmed_from)

    time.now = confirmed_from
    assert (state().due, state().unconfirmed) == (2, 2)
    assert index.observe(nothing).events == 2
    assert (state().unconfirmed, state().confirmed_from) == (0, None)


def test_range_gaps_and_overlaps_are_found(opened: Catalog):
    with opened.write() as connection:
        allocate_range(connection, 20, 0.0)
        allocate_range(connection, 30, 0.0)
        connection.execute(delete(serial_ranges).where(serial_ranges.c.start == 10))
        [fault] = ledger_faults(connection)
        assert mentions(fault, "gap", 11, 20)
        connection.execute(
            insert(serial_ranges).values(start=5, end=25, state=RangeState.REQUESTED, sealed=False, requested_at=0.0)
        )
        assert any("overlap" in fault for fault in ledger_faults(connection))


def test_range_faults_are_sought_in_newest_ranges_by_default(opened: Catalog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(range_ledger, "CHECKED_RANGES", 2)
    with opened.write() as connection:
        for end in (20, 30, 40, 50, 60):
            allocate_range(connection, end, 0.0)
        connection.execute(delete(serial_ranges).where(serial_ranges.c.start == 10))
        assert ledger_faults(connection) == []
        [fault] = ledger_faults(connection, only_newest=False)
        assert mentions(fault, "gap", 11, 20)
        connection.execute(delete(serial_ranges).where(serial_ranges.c.start == 30))
        [fault] = ledger_faults(connection)
        assert mentions(fault, "gap", 31, 40)


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


def test_open_full_crawl_is_running_while_a_worker_is_active(opened: Catalog) -> None:
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


def test_range_and_audit_can_run_at_the_same_time(opened: Catalog) -> None:
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


def test_worker_with_expired_claim_does_not_count(opened: Catalog) -> None:
    audit = open_audit(opened, 5.0)
    at_work(opened, audit.workload, until=NOW)
    assert running(opened) == []


def test_each_count_is_compared_with_its_rows(catalog: Catalog) -> None:
    reads = Reads(catalog, 2)
    with catalog.write() as connection:
        assert count_again(connection) == {"reads in the queue": 2}
        assert count_differences(connection) == {}
        row = {"distribution_id": reads.items[0], "serial": 3, "logged_serial": 3}
        connection.execute(insert(changes), [row | {"cause": cause} for cause in ("unexplained", "listed")])
        add_counts(connection, {"reads in the queue": 1, "live: data": 4})
        assert count_differences(connection) == {
            "live: data": -4,
            "reads in the queue": -1,
            "unexplained changes": 1,
        }


INDEX = "https://index.example.org/simple/"


def test_empty_catalog_has_a_status(catalog: Catalog):
    status = catalog_status(catalog)
    assert (status.complete_serial, status.exact_from, status.events_through) == (None, None, None)
    assert (status.live_distributions, status.outcomes) == (0, dict.fromkeys((one.value for one in ReadOutcome), 0))
    assert (status.open_crawl, status.open_ranges, status.failed_visits) == (None, 0, 0)
    assert (status.ledger_faults, status.inexact_spans) == ((), ())


def test_open_crawl_has_an_estimated_end_after_the_first_visit(catalog: Catalog):
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


def test_range_is_running_while_a_worker_is_active(catalog: Catalog):
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


def test_only_newest_inexact_spans_are_shown(catalog: Catalog):
    list_projects(catalog, crawl := open_crawl(catalog, 10, 10, INDEX, Selection()), [], 10)
    assert complete_crawl(catalog, crawl)
    with catalog.write() as connection:
        for serials in allocate_ranges(connection, list(range(11, 14 + MOST_SPANS)), 1.0):
            complete_range(connection, serials, 2.0, exact_from=serials.end)
    spans = catalog_status(catalog).inexact_spans
    assert [span.end for span in spans] == list(range(14, 14 + MOST_SPANS))
