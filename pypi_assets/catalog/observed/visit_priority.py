"""The priority of a visit when it is queued.

It only orders visits. Which projects are visited is up to a full crawl, a range or an audit. Of the due visits the one
with the lowest nice value comes first, and within it the one that has been due for longest.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is known of a project when a visit of it is queued.

    `lag` is the number of serials since its first change that no page has shown yet; None where no change is known.
    `failures` counts its last visits in a row that failed, and `next_due_at` (unix seconds) is when one is retried.
    """

    is_known: bool
    lag: int | None
    failures: int = 0
    next_due_at: float | None = None


NEVER_VISITED = Prospect(is_known=False, lag=None)


@dataclass(frozen=True, slots=True)
class VisitWeights:
    """By how much a visit comes sooner, in nice values: `unknown` before the first success, `changed` after a change,
    and `lag` each time that the lag doubles. Each failure in a row delays it by `failure`, up to `most_failures` of
    them."""

    unknown: int = 12_000
    changed: int = 5_000
    lag: int = 100
    failure: int = 200
    most_failures: int = 20


WEIGHTS = VisitWeights()


def nice_of(prospect: Prospect, weights: VisitWeights = WEIGHTS) -> int:
    """The nice value of a visit. Lower values come first, and may be negative."""
    gain = 0
    if not prospect.is_known:
        gain = weights.unknown
    elif prospect.lag is not None:
        gain = weights.changed + round(weights.lag * math.log2(1 + max(prospect.lag, 0)))
    return weights.failure * min(prospect.failures, weights.most_failures) - gain


def due_at(prospect: Prospect) -> float:
    """When the project may be visited (unix seconds). A pause after a failure holds for all workloads."""
    return prospect.next_due_at or 0.0


def revisits_for(visits: int, share: float, draw: float) -> int:
    """How many projects to revisit as an audit in addition to `visits`: `share` per cent of them.

    `draw`, uniform from 0 to 1, rounds the fraction up or down, so that many small ranges reach the share as well.
    """
    fraction, whole = math.modf(visits * share / 100)
    return int(whole) + (draw < fraction)
