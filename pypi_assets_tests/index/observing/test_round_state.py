"""State kept between rounds. The catalog's database implements the whole protocol."""

from dataclasses import replace

import pytest

from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.index.observing.round_state import Memory, NextLook, PollingPolicy, look_after_failure, next_look
from pypi_assets.visit_policies import NO_CHANGES, VISIT_POLICIES, ChangeTimes, PollFacts

POLICY = PollingPolicy(shortest_s=60.0, longest_s=3600.0, confirm_after_s=120.0)


def polled(pause_s: float, *, has_changed: bool = False, is_waiting: bool = False) -> NextLook:
    facts = PollFacts(10.0, pause_s, NO_CHANGES, has_changed=has_changed, is_waiting=is_waiting)
    return next_look(POLICY, facts)


def test_changing_pages_are_polled_more_often_and_all_within_the_longest_interval() -> None:
    pause_s, looks = 1_000.0, []
    for has_changed in (True, True, False):
        look = polled(pause_s, has_changed=has_changed)
        assert look.due_at == 10.0 + look.pause_s
        pause_s = look.pause_s
        looks.append(pause_s)
    assert looks == [500.0, 250.0, 375.0]
    assert polled(3_500.0).pause_s == 3_600.0
    assert polled(0.0, has_changed=True).pause_s == 60.0


def test_limits_hold_for_each_policy() -> None:
    for changes in (NO_CHANGES, ChangeTimes(0.0, 1.0), ChangeTimes(0.0, 1e9)):
        for visits in VISIT_POLICIES.values():
            facts = PollFacts(1.0, 100.0, changes, has_changed=True, is_waiting=False)
            assert 60.0 <= next_look(replace(POLICY, visits=visits), facts).pause_s <= 3_600.0


def test_unconfirmed_page_is_polled_as_soon_as_it_can_be_confirmed() -> None:
    assert polled(3_000.0, is_waiting=True).due_at == 130.0


@pytest.mark.parametrize(("failures", "due_at"), [(1, 60.0), (2, 120.0), (5, 960.0), (50, 3_600.0)])
def test_failures_lengthen_the_interval(failures: int, due_at: float) -> None:
    assert look_after_failure(POLICY, failures, 0.0) == due_at
    assert look_after_failure(POLICY, failures, 0.0, requested_pause_s=2_000.0) == max(due_at, 2_000.0)


def test_catalog_implements_the_protocol() -> None:
    named = {name for name in dir(Memory) if not name.startswith("_")}
    assert named <= set(dir(Observations))
