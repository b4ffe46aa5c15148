"""The policy: what is not known comes first, then what has changed, by its lag; what fails waits longer each time."""

import math
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from pypi_assets.catalog.observed.visit_statistics import WEIGHTS, Prospect, due_at, nice_of, revisits_for

GREATEST_SERIAL = 2**50
LEAST_SMALLINT, GREATEST_SMALLINT = -(2**15), 2**15 - 1

lags = st.integers(0, GREATEST_SERIAL)
failures = st.integers(0, 10**6)
prospects = st.builds(Prospect, st.booleans(), st.one_of(st.none(), lags), failures)


@given(prospects)
def test_every_nice_value_fits_into_its_column(prospect: Prospect):
    assert LEAST_SMALLINT <= nice_of(prospect) <= GREATEST_SMALLINT


@given(lags, lags, failures)
@example(0, 2**63 - 1, 0)
def test_unknown_comes_before_changed_and_changed_before_the_rest(lag: int, other_lag: int, failed: int):
    unknown = Prospect(is_known=False, lag=lag, failures=failed)
    changed = Prospect(is_known=True, lag=other_lag, failures=failed)
    rest = Prospect(is_known=True, lag=None, failures=failed)
    assert nice_of(unknown) < nice_of(changed) < nice_of(rest)


@given(lags, lags)
def test_a_greater_lag_comes_no_later(lag: int, other_lag: int):
    nearer, further = sorted((lag, other_lag))
    assert nice_of(Prospect(True, further)) <= nice_of(Prospect(True, nearer))


@given(lags)
def test_twice_the_lag_comes_sooner(lag: int):
    assert nice_of(Prospect(True, 2 * lag + 1)) < nice_of(Prospect(True, lag))


@given(prospects, failures)
def test_each_failure_in_a_row_counts_up_to_a_bound(prospect: Prospect, more: int):
    failed = replace(prospect, failures=prospect.failures + more)
    counted = min(failed.failures, WEIGHTS.most_failures) - min(prospect.failures, WEIGHTS.most_failures)
    assert nice_of(failed) - nice_of(prospect) == counted * WEIGHTS.failure


@given(prospects, st.floats(1, 1e10))
def test_what_pauses_pauses_for_all(prospect: Prospect, later: float):
    assert due_at(prospect) == 0.0
    assert due_at(replace(prospect, next_due_at=later)) == later


@given(st.integers(0, 10**6), st.floats(0, 100), st.floats(0, 1, exclude_max=True))
@example(4, 25.0, 0.9999999999999999)  # which 1 + draw rounds up
def test_the_share_is_kept_but_for_a_fraction_of_one(visits: int, share: float, draw: float):
    exactly = visits * share / 100
    assert revisits_for(visits, share, draw) in {math.floor(exactly), math.ceil(exactly)}


@given(st.lists(st.integers(0, 300), min_size=1, max_size=50), st.sampled_from([0.0, 0.5, 1.0, 20.0, 100.0]))
def test_small_ranges_come_to_the_share_as_well(ranges: list[int], share: float):
    draws = [number / 1_000 + 1 / 2_000 for number in range(1_000)]
    for visits in ranges:
        mean = sum(revisits_for(visits, share, draw) for draw in draws) / len(draws)
        assert abs(mean - visits * share / 100) < 0.002
