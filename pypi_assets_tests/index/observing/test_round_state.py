"""State kept between rounds. The catalog's database implements the whole protocol."""

import pytest

from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.index.observing.round_state import Memory, PollingPolicy, look_after_failure, next_look

POLICY = PollingPolicy(shortest_s=60.0, longest_s=3600.0, confirm_after_s=120.0)


def test_changing_pages_are_polled_more_often_and_all_within_the_longest_interval() -> None:
    pause_s, looks = 1_000.0, []
    for has_changed in (True, True, False):
        look = next_look(POLICY, pause_s, 10.0, has_changed=has_changed, is_waiting=False)
        assert look.due_at == 10.0 + look.pause_s
        pause_s = look.pause_s
        looks.append(pause_s)
    assert looks == [500.0, 250.0, 375.0]
    assert next_look(POLICY, 3_500.0, 0.0, has_changed=False, is_waiting=False).pause_s == 3_600.0
    assert next_look(POLICY, 0.0, 0.0, has_changed=True, is_waiting=False).pause_s == 60.0


def test_unconfirmed_page_is_polled_as_soon_as_it_can_be_confirmed() -> None:
    assert next_look(POLICY, 3_000.0, 0.0, has_changed=False, is_waiting=True).due_at == 120.0


@pytest.mark.parametrize(("failures", "due_at"), [(1, 60.0), (2, 120.0), (5, 960.0), (50, 3_600.0)])
def test_failures_lengthen_the_interval(failures: int, due_at: float) -> None:
    assert look_after_failure(POLICY, failures, 0.0) == due_at
    assert look_after_failure(POLICY, failures, 0.0, requested_pause_s=2_000.0) == max(due_at, 2_000.0)


def test_catalog_implements_the_protocol() -> None:
    named = {name for name in dir(Memory) if not name.startswith("_")}
    assert named <= set(dir(Observations))
