"""The displayed state of each range."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select

from pypi_assets.catalog.coordination.claims import claim_workload, expire_claims, new_worker
from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES
from pypi_assets.catalog.ledger.range_ledger import (
    allocate_ranges,
    begin_range,
    complete_range,
    fail_range,
    leave_range,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.range_states import (
    RangeChange,
    RangeStatus,
    ShownState,
    count_causes,
    count_unexplained,
    first_changes,
    range_statuses,
    unexplained_projects,
)
from pypi_assets.catalog.tables import changes, distributions, projects
from pypi_assets.catalog.work.visit_queue import WorkloadProgress, queue_visits, range_workload
from pypi_assets_tests.catalog.ended_visits import enter
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    made = small_catalog(tmp_path, database_url)
    made.add(2, "Demo", "1.0", "demo-1.0.tar.gz")
    made.add(5, "Demo", "2.0", "demo-2.0.tar.gz")
    made.yank(6, "demo-2.0.tar.gz")
    with made.catalog.write() as connection:
        first = connection.scalar(select(distributions.c.id).where(distributions.c.filename == "demo-1.0.tar.gz"))
        row = {"distribution_id": first, "serial": 3, "cause": UNEXPLAINED, "logged_serial": 6}
        connection.execute(insert(changes).values(row))
        add_counts(connection, {UNEXPLAINED_CHANGES: 1})
    yield made
    made.catalog.close()


def test_changes_count_in_the_range_that_logs_them(small: SmallCatalog):
    with small.catalog.read() as connection:
        assert count_causes(connection, SerialRange(0, 4)) == {"add file": 1}
        assert count_causes(connection, SerialRange(4, 6)) == {"add file": 1, UNEXPLAINED: 1, "yank release": 1}
        assert count_causes(connection, SerialRange(6, 9)) == {}
        counts = [count_unexplained(connection, serials) for serials in (None, SerialRange(0, 5), SerialRange(5, 6))]
    assert counts == [1, 0, 1]


def test_projects_with_unexplained_changes_are_found(small: SmallCatalog):
    small.add(7, "Other", "1.0", "other-1.0.tar.gz")
    with small.catalog.write() as connection:
        demo = connection.scalar(select(projects.c.id).where(projects.c.normalized == "demo"))
        assert unexplained_projects(connection) == [demo]
        connection.execute(delete(changes).where(changes.c.cause == UNEXPLAINED))
        assert unexplained_projects(connection) == []


def test_first_changes_are_ordered_by_serial(small: SmallCatalog):
    with small.catalog.read() as connection:
        found = first_changes(connection, SerialRange(4, 6), 2)
    assert found == [
        RangeChange(5, "add file", "Demo", "2.0", "demo-2.0.tar.gz"),
        RangeChange(3, UNEXPLAINED, "Demo", "1.0", "demo-1.0.tar.gz"),
    ]


SERIALS = SerialRange(10, 20)


@pytest.fixture
def allocated(opened: Catalog) -> Catalog:
    with opened.write() as connection:
        complete_range(connection, SerialRange(0, 10), 1.0)
        assert allocate_ranges(connection, [20], 5.0) == [SERIALS]
    return opened


def state(catalog: Catalog) -> ShownState:
    with catalog.read() as connection:
        return range_statuses(connection, 100.0)[-1].state


def test_range_waits_runs_fails_is_interrupted_and_completes(allocated: Catalog):
    worker, workload = new_worker(), range_workload(SERIALS)
    found = [state(allocated)]
    with allocated.write() as connection:
        begin_range(connection, SERIALS, 50.0)
    found.append(state(allocated))
    with allocated.write() as connection:
        claim_workload(connection, workload, worker, 50.0, 110.0)
        fail_range(connection, SERIALS, "HTTP 503")
    found.append(state(allocated))
    with allocated.write() as connection:
        expire_claims(connection, worker)
    found.append(state(allocated))
    with allocated.write() as connection:
        begin_range(connection, SERIALS, 60.0)
        leave_range(connection, SERIALS)
    found.append(state(allocated))
    with allocated.write() as connection:
        complete_range(connection, SERIALS, 90.0)
    found.append(state(allocated))
    assert found == [
        ShownState.WAITING,
        ShownState.INTERRUPTED,
        ShownState.RUNNING,
        ShownState.FAILED,
        ShownState.WAITING,
        ShownState.COMPLETE,
    ]


def test_ranges_have_visits_and_times_and_missing_ranges_follow(allocated: Catalog):
    with allocated.write() as connection:
        [project] = enter(connection, 1)
        queue_visits(connection, range_workload(SERIALS), [(project.id, 0, 15)])
        baseline, current, missing = range_statuses(connection, 100.0, index_serial=25)
    assert (baseline.serials, baseline.state, baseline.completed_at) == (SerialRange(0, 10), ShownState.COMPLETE, 1.0)
    assert (current.requested_at, current.begun_at, current.visits) == (5.0, None, WorkloadProgress(1, 0, 0))
    assert missing == RangeStatus(SerialRange(20, 25), ShownState.MISSING, WorkloadProgress(0, 0, 0))


def test_limit_lists_only_the_last_complete_ranges(allocated: Catalog):
    with allocated.write() as connection:
        for serials in allocate_ranges(connection, [30, 40], 6.0):
            complete_range(connection, serials, 7.0)
        listed = [
            [status.serials.end for status in range_statuses(connection, 100.0, complete=complete)]
            for complete in (None, 0, 1, 9)
        ]
    assert listed == [[10, 20, 30, 40], [20], [20, 40], [10, 20, 30, 40]]
