"""Compare the visit policies at equal budgets of requests, over drawn or recorded histories of changes.

    python -m benchmarks.visit_policies [--projects 1000] [--days 100] [--seeds 3] [--catalog URL]

The drawn histories follow from the seed: few projects change daily or more often, and half of them less than once in
300 days (a log-normal distribution). Several changes come together, and some projects come to an end. With `--catalog`,
the histories are the events of a catalog, such as the demo's, sqlite:///.../catalog.sqlite.

Three ways to follow them are simulated with the functions that the package uses:

- `ranges`: all changes are known by serial, and the index returns after an outage of two weeks. Each range has the
  projects that changed since the last one began.
- `polls`: nothing is known, as on an index without serials. Projects are polled once their pauses are over.
- `revisits`: nothing is known, as for changes without an event. Projects are chosen as for a range or an audit.

`delay` is the time from a change until a visit shows it: for so long the stored page is out of date. `stale` is the
share of projects whose stored page is out of date, averaged over time. Both begin after the first half.
"""

import argparse
import heapq
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import log
from statistics import fmean

from pypi_assets.index.observing.round_state import PollingPolicy, next_look
from pypi_assets.visit_policies import (
    HOUR_S,
    NEVER_VISITED,
    NO_CHANGES,
    VISIT_POLICIES,
    ChangeTimes,
    PollFacts,
    VisitFacts,
    VisitPlace,
    VisitPolicy,
)

DAY_S = 24 * HOUR_S
OUTAGE_S = 14 * DAY_S
_MEDIAN_GAP_S, _GAP_SIGMA, _SHORTEST_GAP_S = 300 * DAY_S, 2.0, 4 * HOUR_S
_ENDED_SHARE = 0.2
_LONGEST_POLL_S = 7 * DAY_S

History = Sequence[float]
"""The times of one project's changes in ascending order, in seconds."""


def drawn_histories(projects: int, days: int, seed: int) -> list[History]:
    """Return a history for each project, equal for equal arguments."""
    draw = random.Random(seed)
    found = []
    for _ in range(projects):
        gap_s = max(draw.lognormvariate(log(_MEDIAN_GAP_S), _GAP_SIGMA), _SHORTEST_GAP_S)
        end = draw.uniform(0, days * DAY_S) if draw.random() < _ENDED_SHARE else days * DAY_S
        changes: list[float] = []
        at = draw.uniform(-gap_s, gap_s)
        while at < end:
            if at > 0:
                changes += [at, *(at + draw.uniform(60, 1800) for _ in range(draw.choice((0, 0, 1, 5))))]
            at += draw.expovariate(1 / gap_s)
        found.append(sorted(change for change in changes if change < end))
    return found


def recorded_histories(url: str) -> list[History]:
    """Return the history of each project with events in the catalog at `url`, moved to begin at 0."""
    from sqlalchemy import select

    from pypi_assets.catalog.database import open_existing_catalog
    from pypi_assets.catalog.tables import events
    from pypi_assets.index.actions import NO_FILE_CHANGE

    c = events.c
    by_project: dict[int, list[float]] = {}
    with open_existing_catalog(url).read() as connection:
        query = select(c.project_id, c.timestamp).where(c.kind.not_in(sorted(NO_FILE_CHANGE)))
        for project_id, at in connection.execute(query):
            by_project.setdefault(project_id, []).append(float(at))
    first = min(map(min, by_project.values()), default=0.0)
    return [sorted(at - first for at in changes) for changes in by_project.values()]


@dataclass(slots=True)
class SimulatedProject:
    """A project, and the state of its stored page."""

    number: int
    history: History
    seen: int = 0
    last_visited_at: float | None = None
    known: ChangeTimes = NO_CHANGES
    pace: int = NEVER_VISITED.pace
    pause_s: float = 0.0
    due_at: float = 0.0

    def happened(self, now: float) -> int:
        """Return the number of changes up to `now`."""
        return bisect_right(self.history, now)

    def facts(self, lag: int) -> VisitFacts:
        """Return the facts about a project that has changed."""
        if self.last_visited_at is None:
            return NEVER_VISITED
        return VisitFacts(True, lag, self.last_visited_at, self.pace)


@dataclass
class Simulation:
    """One policy over the histories, with `budget` requests an hour.

    If it `is_blind`, only visits show changes.
    """

    policy: VisitPolicy
    histories: Sequence[History]
    hours: int
    budget: int
    is_blind: bool
    requests: int = 0
    delays: list[float] = field(default_factory=list)
    stale: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.projects = [SimulatedProject(number, history) for number, history in enumerate(self.histories)]
        self.serials = sorted(at for history in self.histories for at in history)

    @property
    def measured_from(self) -> float:
        """The time from which changes and outdated pages count; the outage of `Ranges` begins then."""
        return self.hours * HOUR_S / 2

    def run(self, choose: "Callable[[Simulation, float], Iterator[SimulatedProject]]") -> "Simulation":
        """Visit the projects that `choose` yields for each hour, and measure. Return the simulation itself."""
        for hour in range(1, self.hours + 1):
            now = hour * HOUR_S
            for _, project in zip(range(self.budget), choose(self, now), strict=False):
                self._visit(project, now)
            if now > self.measured_from:
                self.stale.append(fmean(one.seen < one.happened(now) for one in self.projects))
        for project in self.projects:  # their delays are at least as long
            self._note_delays(project, self.hours * HOUR_S)
        return self

    def _visit(self, project: SimulatedProject, now: float) -> None:
        self.requests += 1
        has_changed = project.happened(now) > project.seen or project.last_visited_at is None
        self._note_delays(project, now)
        project.last_visited_at = now
        if self.is_blind and has_changed:
            project.known = project.known.with_change(now)
        project.pace = project.known.pace(now)
        look = next_look(self._polling, PollFacts(now, project.pause_s, project.known, has_changed, is_waiting=False))
        project.due_at, project.pause_s = look.due_at, look.pause_s

    def _note_delays(self, project: SimulatedProject, now: float) -> None:
        happened = project.happened(now)
        self.delays += [now - at for at in project.history[project.seen : happened] if at > self.measured_from]
        project.seen = happened

    @property
    def _polling(self) -> PollingPolicy:
        return PollingPolicy(shortest_s=HOUR_S, longest_s=_LONGEST_POLL_S, visits=self.policy)

    @property
    def delay_mean_h(self) -> float:
        """The mean delay in hours."""
        return fmean(self.delays) / HOUR_S

    @property
    def delay_p95_h(self) -> float:
        """The 95th percentile of the delay in hours."""
        return sorted(self.delays)[int(len(self.delays) * 0.95)] / HOUR_S

    @property
    def stale_percent(self) -> float:
        """The share of projects with an outdated page, in percent."""
        return 100 * fmean(self.stale)


def polls(simulation: Simulation, now: float) -> Iterator[SimulatedProject]:
    """Yield the due projects, the longest overdue first."""
    due = [(project.due_at, project.number) for project in simulation.projects if project.due_at <= now]
    yield from (simulation.projects[number] for _, number in heapq.nsmallest(simulation.budget, due))


def revisits(simulation: Simulation, now: float) -> Iterator[SimulatedProject]:
    """Yield the projects in the order of the policy."""
    key = simulation.policy.choice_key
    places = ((key(one.last_visited_at, one.pace, now), one.number) for one in simulation.projects)
    yield from (simulation.projects[number] for _, number in heapq.nsmallest(simulation.budget, places))


class Ranges:
    """Yields the projects of one range after the other, and revisits if nothing has changed."""

    def __init__(self) -> None:
        self._open: list[tuple[VisitPlace, int]] = []

    def __call__(self, simulation: Simulation, now: float) -> Iterator[SimulatedProject]:
        """Yield the next projects. During the outage there are none."""
        if simulation.measured_from < now <= simulation.measured_from + OUTAGE_S:
            return
        while self._open or self._allocate(simulation, now):
            yield simulation.projects[heapq.heappop(self._open)[1]]
        yield from revisits(simulation, now)

    def _allocate(self, simulation: Simulation, now: float) -> bool:
        through = bisect_right(simulation.serials, now)
        for project in simulation.projects:
            if (happened := project.happened(now)) > project.seen:
                for at in project.history[project.seen : happened]:
                    project.known = project.known.with_change(at)
                lag = through - bisect_right(simulation.serials, project.history[project.seen])
                self._open.append((simulation.policy.place(project.facts(lag), now), project.number))
        heapq.heapify(self._open)
        return bool(self._open)


WAYS = {"ranges": (Ranges, 400), "polls": (lambda: polls, 240), "revisits": (lambda: revisits, 480)}
"""How the projects of each hour are chosen, and in how many hours the budget suffices to visit each project once."""


def simulate(way: str, policy: VisitPolicy, histories: Sequence[History], days: int) -> Simulation:
    """Return the simulation of one policy."""
    chooser, hours = WAYS[way]
    budget = max(len(histories) // hours, 1)
    return Simulation(policy, histories, days * 24, budget, is_blind=way != "ranges").run(chooser())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--catalog")
    options = parser.parse_args()
    if options.catalog:
        recorded = [recorded_histories(options.catalog)]
        days = max(int(max(map(max, recorded[0])) // DAY_S), 2)
    else:
        recorded = [drawn_histories(options.projects, options.days, seed) for seed in range(options.seeds)]
        days = options.days
    print("| way | policy | requests | delay, mean | delay, 95th percentile | stale |")
    print("|---|---|---|---|---|---|")
    for way in WAYS:
        for policy in VISIT_POLICIES.values():
            runs = [simulate(way, policy, histories, days) for histories in recorded]
            mean, late, stale = (
                fmean(getattr(run, name) for run in runs) for name in ("delay_mean_h", "delay_p95_h", "stale_percent")
            )
            requests = sum(run.requests for run in runs)
            figures = f"{requests:,} | {mean:.1f} h | {late:.1f} h | {stale:.2f} %"
            print(f"| {way} | `{policy.name}` | {figures} |", flush=True)


if __name__ == "__main__":
    main()
