"""Visit policies: in which order the projects are visited, and how often each is polled.

A policy is two pure functions. `place` returns the place of a visit, from facts about its project and the time.
`pause_s` returns the seconds until the next poll of a project, on an index without serials. The catalog stores the
facts; see `catalog/observed/visit_statistics.py`. `benchmarks/visit_policies.py` compares the policies.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

LEAST_NICE, MOST_NICE = -32_000, 32_000
SAME_CHANGE_S = 3600.0
"""Changes of a project with less time between them count as one, such as the uploads of a release's files."""
_NEWEST_GAP_WEIGHT = 0.25
HOUR_S = 3600.0
SLOWEST_PACE = 15
UNKNOWN_PACE = 10
"""The pace of a project without known changes: one change in 43 days."""
PACES = range(SLOWEST_PACE + 1)


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """The known change times of a project: the last one (unix seconds), and the smoothed gap between them.

    Both are None if unknown.
    """

    last_at: float | None = None
    every_s: float | None = None

    def with_change(self, at: float) -> "ChangeTimes":
        """Return the change times with one more change. A change before the last one is ignored.

        >>> ChangeTimes(0.0, 8 * HOUR_S).with_change(16 * HOUR_S).every_s / HOUR_S
        10.0
        """
        if self.last_at is None:
            return ChangeTimes(at)
        if at <= self.last_at:
            return self
        gap = at - self.last_at
        if gap < SAME_CHANGE_S:
            return ChangeTimes(at, self.every_s)
        return ChangeTimes(
            at, gap if self.every_s is None else self.every_s + _NEWEST_GAP_WEIGHT * (gap - self.every_s)
        )

    def expected_gap_s(self, now: float) -> float | None:
        """Return the expected seconds between two changes; None if no change is known.

        It is at least the time since the last change, so a project that is no longer maintained slows down.
        """
        if self.last_at is None:
            return self.every_s
        return max(self.every_s or SAME_CHANGE_S, now - self.last_at)

    def pace(self, now: float) -> int:
        """Return the pace of the project: one change is expected in 2 ** pace hours, 0 to 15.

        >>> ChangeTimes(0.0, 24 * HOUR_S).pace(now=0.0)
        5
        """
        gap_s = self.expected_gap_s(now)
        if gap_s is None:
            return UNKNOWN_PACE
        return min(max(round(math.log2(max(gap_s, HOUR_S) / HOUR_S)), 0), SLOWEST_PACE)


NO_CHANGES = ChangeTimes()


@dataclass(frozen=True, slots=True)
class VisitFacts:
    """The known facts about a project when its visit is placed.

    `is_known`: a visit has succeeded. `lag` is the number of serials since its first change that no page has shown yet;
    None if no such change is known. `last_visited_at` is the end of its last visit (unix seconds), and `pace` is as in
    ChangeTimes, at that time. `failures` is the number of its last visits that failed in a row, and `retry_at` (unix
    seconds) is the time of the next retry.
    """

    is_known: bool
    lag: int | None
    last_visited_at: float | None = None
    pace: int = UNKNOWN_PACE
    failures: int = 0
    retry_at: float | None = None


NEVER_VISITED = VisitFacts(is_known=False, lag=None)


class VisitPlace(NamedTuple):
    """The place of a visit: lower nice values run first, and among equal values the least due time (unix seconds).

    No visit runs before its due time.
    """

    nice: int
    due_at: float


@dataclass(frozen=True, slots=True)
class VisitWeights:
    """The amounts by which `balanced` changes priorities, in nice values.

    A visit comes sooner by `unknown` before the project's first successful visit, by `changed` after a change, and by
    `lag` each time that the lag doubles. Each failure in a row delays it by `failure`, for at most `most_failures` of
    them.
    """

    unknown: int = 12_000
    changed: int = 5_000
    lag: int = 100
    failure: int = 200
    most_failures: int = 20


WEIGHTS = VisitWeights()


def balanced_nice(facts: VisitFacts, weights: VisitWeights = WEIGHTS) -> int:
    """Return the nice value of a visit by the policy `balanced`."""
    gain = 0
    if not facts.is_known:
        gain = weights.unknown
    elif facts.lag is not None:
        gain = weights.changed + round(weights.lag * math.log2(1 + max(facts.lag, 0)))
    return weights.failure * min(facts.failures, weights.most_failures) - gain


def _by_balance(facts: VisitFacts, _now: float) -> VisitPlace:
    return VisitPlace(balanced_nice(facts), facts.retry_at or 0.0)


def _by_age(facts: VisitFacts, now: float) -> VisitPlace:
    return VisitPlace(0, _longest_unvisited_first(facts, now))


_LAG_WEIGHT = 1_000


def _by_lag(facts: VisitFacts, now: float) -> VisitPlace:
    nice = 0
    if not facts.is_known:
        nice = LEAST_NICE
    elif facts.lag is not None:
        nice = -1 - round(_LAG_WEIGHT * math.log2(1 + max(facts.lag, 0)))
    return VisitPlace(max(nice, LEAST_NICE), _longest_unvisited_first(facts, now))


_URGENCY_WEIGHT = 500
_PACE_EXPONENT = 0.5
"""A project that changes four times as often is visited twice as often.

Visits in proportion to the changes would be wasted on projects that are out of date again at once.
"""


def _by_activity(facts: VisitFacts, now: float) -> VisitPlace:
    if not facts.is_known or facts.last_visited_at is None:
        return VisitPlace(LEAST_NICE, facts.retry_at or 0.0)
    waited_hours = max(now - facts.last_visited_at, 0.0) / HOUR_S
    urgency = math.log2(1.0 + waited_hours) - _PACE_EXPONENT * facts.pace
    return VisitPlace(-round(_URGENCY_WEIGHT * urgency), _longest_unvisited_first(facts, now))


def _longest_unvisited_first(facts: VisitFacts, now: float) -> float:
    """Return a due time that orders visits by their last visit, and is not before a retry."""
    return max(min(facts.last_visited_at or 0.0, now), facts.retry_at or 0.0)


@dataclass(frozen=True, slots=True)
class PollFacts:
    """The known facts about a project after a poll at `now`: the pause before it, its changes, and its result.

    `is_waiting`: the poll showed a change that must be confirmed.
    """

    now: float
    pause_s: float
    changes: ChangeTimes
    has_changed: bool
    is_waiting: bool


_FASTER, _SLOWER = 0.5, 1.5
_POLLS_A_CHANGE = 4.0


def _adapted_pause_s(facts: PollFacts) -> float:
    """Halve the pause after a change, and increase it by half otherwise."""
    return facts.pause_s * (_FASTER if facts.has_changed or facts.is_waiting else _SLOWER)


def _no_pause_s(_facts: PollFacts) -> float:
    return 0.0


def _expected_pause_s(facts: PollFacts) -> float:
    """Return a quarter of the expected gap between two changes."""
    gap_s = facts.changes.expected_gap_s(facts.now)
    return math.inf if gap_s is None else gap_s / _POLLS_A_CHANGE


@dataclass(frozen=True, slots=True)
class VisitPolicy:
    """One policy. `uses_pace`: its places depend on the pace of a project."""

    name: str
    place: Callable[[VisitFacts, float], VisitPlace]
    pause_s: Callable[[PollFacts], float]
    uses_pace: bool = False

    def choice_key(self, last_visited_at: float | None, pace: int, now: float) -> tuple[bool, VisitPlace, float]:
        """Return a key that sorts the projects to visit without a known change. Never visited projects are first.

        Lag and failures do not count, since they lead to visits of their own. Among equal places, the projects that
        were not visited for longest come first.
        """
        if last_visited_at is None:
            return False, self.place(NEVER_VISITED, now), 0.0
        facts = VisitFacts(is_known=True, lag=None, last_visited_at=last_visited_at, pace=pace)
        return True, self.place(facts, now), last_visited_at


BALANCED = VisitPolicy("balanced", _by_balance, _adapted_pause_s)
AGE = VisitPolicy("age", _by_age, _no_pause_s)
ACTIVITY = VisitPolicy("activity", _by_activity, _expected_pause_s, uses_pace=True)
LAG = VisitPolicy("lag", _by_lag, _no_pause_s)
VISIT_POLICIES: Mapping[str, VisitPolicy] = MappingProxyType(
    {policy.name: policy for policy in (BALANCED, AGE, ACTIVITY, LAG)}
)
"""The policies that PYPI_ASSETS_VISIT_POLICY names. The first one is the default."""
