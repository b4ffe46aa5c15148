"""What is kept between rounds: the catalog's database keeps all that the protocol names."""

import pytest

from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.index.observing.round_state import Memory, PollingPolicy, look_after_failure, next_look

POLICY = PollingPolicy(shortest_s=60.0, longest_s=3600.0, confirm_after_s=120.0)


def test_what_changes_is_looked_at_more_often_and_everything_within_the_longest_time() -> None:
    pause_s, looks = 1_000.0, []
    for has_changed in (True, True, False):
        look = next_look(POLICY, pause_s, 10.0, has_changed=has_changed, is_waiting=False)
        assert look.due_at == 10.0 + look.pause_s
        pause_s = look.pause_s
        looks.append(pause_s)
    assert looks == [500.0, 250.0, 375.0]
    assert next_look(POLICY, 3_500.0, 0.0, has_changed=False, is_waiting=False).pause_s == 3_600.0
    assert next_look(POLICY, 0.0, 0.0, has_changed=True, is_waiting=False).pause_s == 60.0


def test_what_waits_is_looked_at_as_soon_as_it_can_be_confirmed() -> None:
    assert next_look(POLICY, 3_000.0, 0.0, has_changed=False, is_waiting=True).due_at == 120.0


@pytest.mark.parametrize(("failures", "due_at"), [(1, 60.0), (2, 120.0), (5, 960.0), (50, 3_600.0)])
def test_failures_make_pauses_longer(failures: int, due_at: float) -> None:
    assert look_after_failure(POLICY, failures, 0.0) == due_at
    assert look_after_failure(POLICY, failures, 0.0, requested_pause_s=2_000.0) == max(due_at, 2_000.0)


def test_the_catalog_gives_all_that_is_named() -> None:
    named = {name for name in dir(Memory) if not name.startswith("_")}
    assert named <= set(dir(Observations))
