"""Visit policies are pure functions, whose places fit the columns of the queue and keep their rules of order."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import get_args

from hypothesis import example, given
from hypothesis import strategies as st

from pypi_assets.settings import Settings
from pypi_assets.visit_policies import (
    ACTIVITY,
    AGE,
    BALANCED,
    HOUR_S,
    LAG,
    LEAST_NICE,
    MOST_NICE,
    NO_CHANGES,
    PACES,
    SAME_CHANGE_S,
    SLOWEST_PACE,
    UNKNOWN_PACE,
    VISIT_POLICIES,
    WEIGHTS,
    ChangeTimes,
    PollFacts,
    VisitFacts,
    balanced_nice,
)

GREATEST_SERIAL = 2**50
lags = st.integers(0, GREATEST_SERIAL)
failures = st.integers(0, 10**6)
times = st.floats(0, 1e10)
paces = st.sampled_from(list(PACES))
facts = st.builds(
    VisitFacts, st.booleans(), st.none() | lags, st.none() | times, paces, failures, st.none() | st.floats(1, 1e10)
)


@given(facts, times)
@example(VisitFacts(True, 2**63 - 1, 0.0, 0), 1e10)
def test_places_fit_their_columns_and_keep_retries_waiting(facts: VisitFacts, now: float):
    for policy in VISIT_POLICIES.values():
        place = policy.place(facts, now)
        assert isinstance(place.nice, int)
        assert LEAST_NICE <= place.nice <= MOST_NICE
        assert place == policy.place(facts, now)
        assert place.due_at >= (facts.retry_at or 0.0)
        if facts.retry_at is None:
            assert place.due_at <= now


def test_settings_accept_each_policy_and_the_first_is_the_default():
    field = Settings.model_fields["visit_policy"]
    assert get_args(field.annotation) == tuple(VISIT_POLICIES)
    assert field.default == next(iter(VISIT_POLICIES))


@given(lags, lags, failures)
@example(0, 2**63 - 1, 0)
def test_balanced_order_is_unknown_then_changed_then_others(lag: int, other_lag: int, failed: int):
    unknown = VisitFacts(is_known=False, lag=lag, failures=failed)
    changed = VisitFacts(is_known=True, lag=other_lag, failures=failed)
    rest = VisitFacts(is_known=True, lag=None, failures=failed)
    assert balanced_nice(unknown) < balanced_nice(changed) < balanced_nice(rest)


@given(lags, lags)
def test_greater_lag_never_lowers_priority(lag: int, other_lag: int):
    nearer, further = (VisitFacts(True, one) for one in sorted((lag, other_lag)))
    for policy in (BALANCED, LAG):
        assert policy.place(further, 0.0) <= policy.place(nearer, 0.0) < policy.place(VisitFacts(True, None), 0.0)


@given(st.integers(0, 2**30))
def test_double_lag_raises_priority(lag: int):
    for policy in (BALANCED, LAG):
        assert policy.place(VisitFacts(True, 2 * lag + 1), 0.0) < policy.place(VisitFacts(True, lag), 0.0)


@given(facts, failures)
def test_consecutive_failures_count_up_to_a_bound(facts: VisitFacts, more: int):
    failed = replace(facts, failures=facts.failures + more)
    counted = min(failed.failures, WEIGHTS.most_failures) - min(facts.failures, WEIGHTS.most_failures)
    assert balanced_nice(failed) - balanced_nice(facts) == counted * WEIGHTS.failure


@given(st.lists(times, min_size=2, max_size=5, unique=True), paces)
def test_longer_unvisited_project_of_equal_pace_is_never_later(visited: list[float], pace: int):
    ordered = [VisitFacts(True, None, at, pace) for at in sorted(visited)]
    for policy in (AGE, ACTIVITY, LAG):
        places = [policy.place(one, 1e10) for one in ordered]
        assert places == sorted(places)
    assert AGE.place(ordered[0], 1e10) < AGE.place(ordered[-1], 1e10)


def test_activity_visits_four_times_more_active_projects_twice_as_often():
    day = 24 * HOUR_S

    def nice(pace: int, waited_s: float) -> int:
        return ACTIVITY.place(VisitFacts(True, None, 0.0, pace), waited_s).nice

    assert nice(5, 10 * day) < nice(9, 10 * day)
    assert abs(nice(7, 20 * day) - nice(5, 10 * day)) <= 2
    assert nice(9, 80 * day) < nice(5, 10 * day)


@given(st.lists(times, max_size=20))
def test_change_times_are_independent_of_repetitions(changed: list[float]):
    found = NO_CHANGES
    for at in sorted(changed):
        found = found.with_change(at)
    again = found
    for at in changed:
        again = again.with_change(at)
    assert again == found
    assert found.last_at == max(changed, default=None)
    gaps = [later - earlier for earlier, later in pairwise(sorted(changed)) if later - earlier >= SAME_CHANGE_S]
    if gaps and found.every_s is not None:
        assert min(gaps) * 0.999 <= found.every_s <= max(gaps) * 1.001
    assert (found.every_s is None) == (not gaps)


@given(times, st.floats(HOUR_S, 1e9), times)
def test_pace_is_the_next_power_of_two_and_never_falls_without_changes(last: float, every: float, waited: float):
    changes = ChangeTimes(last, every)
    pace = changes.pace(last)
    if pace < SLOWEST_PACE:
        assert abs(pace - math.log2(every / HOUR_S)) <= 0.5
    assert pace <= changes.pace(last + waited) <= SLOWEST_PACE
    assert NO_CHANGES.pace(last) == UNKNOWN_PACE


def test_polls_adapt_by_each_policy():
    changed_daily = ChangeTimes(0.0, 24 * HOUR_S)
    cases = [
        (BALANCED, NO_CHANGES, True, 50.0),
        (BALANCED, NO_CHANGES, False, 150.0),
        (AGE, changed_daily, False, 0.0),
        (LAG, changed_daily, True, 0.0),
        (ACTIVITY, changed_daily, True, 6 * HOUR_S),
        (ACTIVITY, NO_CHANGES, False, math.inf),
    ]
    for policy, changes, has_changed, expected in cases:
        assert policy.pause_s(PollFacts(1.0, 100.0, changes, has_changed, is_waiting=False)) == expected, policy.name
