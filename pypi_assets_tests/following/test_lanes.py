"""Lanes: their retries, the errors that end them, and how they stop."""

import threading
from collections.abc import Callable

import pytest

from pypi_assets.catalog.database import CatalogError
from pypi_assets.following.lanes import LONGEST_PAUSE_S, Lanes
from pypi_assets.index.errors import TransientError


@pytest.fixture
def steps() -> list[dict[str, object]]:
    return []


@pytest.fixture
def lanes(steps: list[dict[str, object]]) -> Lanes:
    return Lanes(lambda step: steps.append(dict(step)), first_pause_s=0.001)


def failing(errors: list[Exception], then: Callable[[], object] = lambda: None) -> Callable[[], None]:
    def work() -> None:
        if errors:
            raise errors.pop(0)
        then()

    return work


def test_transient_errors_are_logged_and_retried_after_growing_pauses(lanes: Lanes, steps: list[dict[str, object]]):
    assert lanes.patiently("poll", failing([TransientError("down", "url") for _ in range(4)]))
    assert [step["failures"] for step in steps] == [1, 2, 3, 4]
    pauses = [float(str(step["pause_s"])) for step in steps]
    assert pauses == sorted(pauses)
    assert pauses[-1] <= LONGEST_PAUSE_S


def test_pause_required_by_the_index_is_kept(lanes: Lanes, steps: list[dict[str, object]]):
    assert lanes.patiently("poll", failing([TransientError("limit", "url", retry_after_s=0.2)]))
    assert steps[0]["pause_s"] == 0.2


def test_other_error_ends_all_lanes_and_is_raised(lanes: Lanes):
    lanes.start("good", lambda: None, lambda: lanes.stopping.wait(60))
    lanes.start("bad", failing([CatalogError("it has gone backwards")]), lambda: None)
    with pytest.raises(CatalogError):
        lanes.wait(60)
    assert [thread.is_alive() for thread in lanes._threads] == [False, False]


def test_work_stops_at_its_next_report(lanes: Lanes):
    begun, reported = threading.Event(), []

    def work() -> None:
        begun.set()
        while True:
            lanes.pass_or_stop()
            reported.append(1)
            lanes.sleep(0.01)

    lanes.start("busy", work, lambda: None)
    assert begun.wait(60)
    lanes.stopping.set()
    assert lanes.wait(60)


def test_lane_that_does_not_stop_in_time_is_abandoned(lanes: Lanes):
    begun, release = threading.Event(), threading.Event()
    lanes.start("stuck", lambda: begun.set() or release.wait(60), lambda: None)
    assert begun.wait(60)
    lanes.stopping.set()
    assert not lanes.wait(0.05)
    release.set()
