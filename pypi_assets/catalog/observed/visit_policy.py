"""Who is visited next: the priority that each project has when a visit of it is queued.

It only orders what is to be visited; which projects these are, a full crawl, a range or an audit says. Of what is due,
the lowest nice value comes first, and what has been due for longest within it.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is known of a project when a visit of it is queued.

    `lag` is for how many serials something has changed that no page has shown yet, None where nothing is known to have
    changed; `failures` are its last visits in a row that failed. `next_due_at` (unix seconds) is when one of them is
    tried again.
    """

    is_known: bool
    lag: int | None
    failures: int = 0
    next_due_at: float | None = None


NEVER_VISITED = Prospect(is_known=False, lag=None)


@dataclass(frozen=True, slots=True)
class VisitWeights:
    """How much sooner a project is visited, in nice values: if no visit of it has succeeded yet; if it has changed, and
    each time that its lag doubles; and how much later for each failure in a row, up to `most_failures`."""

    unknown: int = 12_000
    changed: int = 5_000
    lag: int = 100
    failure: int = 200
    most_failures: int = 20


WEIGHTS = VisitWeights()


def nice_of(prospect: Prospect, weights: VisitWeights = WEIGHTS) -> int:
    """The nice value of a visit; those that come sooner have lower ones, below zero."""
    gain = 0
    if not prospect.is_known:
        gain = weights.unknown
    elif prospect.lag is not None:
        gain = weights.changed + round(weights.lag * math.log2(1 + max(prospect.lag, 0)))
    return weights.failure * min(prospect.failures, weights.most_failures) - gain


def due_at(prospect: Prospect) -> float:
    """From when on it may be visited (unix seconds): what fails pauses for whoever wants to visit it."""
    return prospect.next_due_at or 0.0


def revisits_for(visits: int, share: float, draw: float) -> int:
    """How many projects are visited again as an audit beside so many visits: `share` per cent of them.

    `draw`, evenly drawn from 0 to 1, decides on the fraction, so that many small ranges come to the share as well.
    """
    fraction, whole = math.modf(visits * share / 100)
    return int(whole) + (draw < fraction)
