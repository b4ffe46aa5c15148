import math
import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.index.rate import RateLimit
from pypi_assets_tests.examples import examples


def most_in_a_second(grants: list[float]) -> int:
    ordered = sorted(grants)
    return max(sum(start <= other < start + 1 - 1e-6 for other in ordered) for start in ordered)


class Arrivals:
    """A clock that stops while a caller sleeps, as for callers that arrive at the same moment."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept = threading.local()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.seconds = seconds

    def granted_at(self, limit: RateLimit) -> float:
        self.slept.seconds = 0.0
        limit.wait()
        return self.now + self.slept.seconds


@settings(max_examples=examples(60), deadline=None)
@given(
    rate=st.floats(0.2, 50),
    burst_s=st.floats(0, 1),
    gaps=st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.3, 1.0, 30.0]), min_size=1, max_size=120),
)
def test_requests_per_second_are_bounded_by_rate_and_burst(rate: float, burst_s: float, gaps: list[float]) -> None:
    arrivals = Arrivals()
    limit = RateLimit(rate, burst_s=burst_s, clock=arrivals.clock, sleep=arrivals.sleep)
    grants = []
    for gap in gaps:
        arrivals.now += gap
        grants.append(arrivals.granted_at(limit))
    assert grants == sorted(grants)
    assert most_in_a_second(grants) <= rate + max(1, rate * burst_s)


def test_threads_share_one_rate() -> None:
    arrivals = Arrivals()
    limit = RateLimit(20, clock=arrivals.clock, sleep=arrivals.sleep)
    arrivals.now = 100.0
    grants: list[float] = []
    threads = [
        threading.Thread(target=lambda: grants.extend(arrivals.granted_at(limit) for _ in range(25))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(grants) == 200
    assert most_in_a_second(grants) <= 40
    assert max(grants) - 100 <= 200 / 20  # and not slower than configured


def test_idle_time_earns_at_most_one_second() -> None:
    arrivals = Arrivals()
    limit = RateLimit(10, clock=arrivals.clock, sleep=arrivals.sleep)
    arrivals.now = 3600.0
    grants = [arrivals.granted_at(limit) for _ in range(12)]
    assert grants[:10] == [3600.0] * 10
    assert grants[10] > 3600.0


def test_unbounded_rate_can_be_held() -> None:
    arrivals = Arrivals()
    limit = RateLimit(math.inf, burst_s=0, clock=arrivals.clock, sleep=arrivals.sleep)
    assert [arrivals.granted_at(limit) for _ in range(100)] == [0.0] * 100
    limit.hold(30)
    assert [arrivals.granted_at(limit) for _ in range(100)] == [30.0] * 100


def test_hold_stops_all_callers() -> None:
    arrivals = Arrivals()
    limit = RateLimit(10, clock=arrivals.clock, sleep=arrivals.sleep)
    limit.hold(30)
    assert arrivals.granted_at(limit) == 30.0
    arrivals.now = 31.0
    limit.hold(0)
    assert arrivals.granted_at(limit) == 31.0
