"""The state in which people see each range."""

import pytest

from pypi_assets.catalog.coordination.claims import claim_workload, expire_claims, new_worker
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import (
    allocate_ranges,
    begin_range,
    complete_range,
    fail_range,
    leave_range,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.range_states import RangeStatus, ShownState, range_statuses
from pypi_assets.catalog.work.visit_queue import WorkloadProgress, queue_visits, range_workload
from pypi_assets_tests.catalog.ended_visits import enter

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


def test_a_range_waits_runs_fails_is_interrupted_and_completes(allocated: Catalog):
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


def test_ranges_come_with_their_visits_and_times_and_what_is_missing_follows(allocated: Catalog):
    with allocated.write() as connection:
        [project] = enter(connection, 1)
        queue_visits(connection, range_workload(SERIALS), [(project.id, 0, 15)])
        baseline, current, missing = range_statuses(connection, 100.0, index_serial=25)
    assert (baseline.serials, baseline.state, baseline.completed_at) == (SerialRange(0, 10), ShownState.COMPLETE, 1.0)
    assert (current.requested_at, current.begun_at, current.visits) == (5.0, None, WorkloadProgress(1, 0, 0))
    assert missing == RangeStatus(SerialRange(20, 25), ShownState.MISSING, WorkloadProgress(0, 0, 0))


def test_only_the_last_complete_ranges_are_listed_with_a_limit(allocated: Catalog):
    with allocated.write() as connection:
        for serials in allocate_ranges(connection, [30, 40], 6.0):
            complete_range(connection, serials, 7.0)
        listed = [
            [status.serials.end for status in range_statuses(connection, 100.0, complete=complete)]
            for complete in (None, 0, 1, 9)
        ]
    assert listed == [[10, 20, 30, 40], [20], [20, 40], [10, 20, 30, 40]]
