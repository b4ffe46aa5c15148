"""Stores the state of an observed index between rounds, and decides when each project is polled next.

A visit policy decides when, and every project is polled within a maximum interval. `Memory` is the protocol of
the storage.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pypi_assets.index.models import ChangelogEvent, ListedProject
from pypi_assets.index.observing.comparison import KnownPage, NewEvent
from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, ShownProject, Validators
from pypi_assets.visit_policies import BALANCED, NO_CHANGES, ChangeTimes, PollFacts, VisitPolicy


@dataclass(frozen=True, slots=True)
class KnownProject:
    """The stored state of a project.

    `serial` is the serial of its last event, and `url` the URL of its page (None for the default URL). `revision`
    counts the saves; a save names the revision that its new state is based on. `looked_at` is when the page was last
    seen, either as a page or as a 404 (unix seconds, None for never). `failures` counts the failed polls in a row since
    then. `changes` has the times of the polls that showed changes.
    """

    project: str
    page: KnownPage
    url: str | None = None
    revision: int = 0
    serial: int | None = None
    validators: Validators = NO_VALIDATORS
    pause_s: float = 0.0
    looked_at: float | None = None
    failures: int = 0
    changes: ChangeTimes = NO_CHANGES


@dataclass(frozen=True, slots=True)
class Look:
    """The result of polling a project once: its new state, and the events that lead to it.

    `page` is None if only the time of the next poll is to be stored, for example after an `error`.
    """

    known: KnownProject
    page: KnownPage | None
    events: tuple[NewEvent, ...]
    validators: Validators
    at: float
    due_at: float
    pause_s: float
    error: str | None = None

    @property
    def changes(self) -> ChangeTimes:
        """The change times of the project, including this poll."""
        return self.known.changes.with_change(self.at) if self.events else self.known.changes


@dataclass(frozen=True, slots=True)
class KnownList:
    """The stored state of the list of projects: the time of its last poll, and the validators of the answer.

    The time is in unix seconds, or None if the list was never polled.
    """

    looked_at: float | None = None
    validators: Validators = NO_VALIDATORS


class Memory(Protocol):
    """Stores the state of an observed index durably, for all processes that follow it."""

    def now(self) -> float:
        """Return the time in unix seconds, by a clock that all pollers share."""

    def last_serial(self) -> int:
        """Return the last serial of the counter."""

    def events(self, after: int, limit: int) -> list[ChangelogEvent]:
        """Return the next events above the serial `after`, in order."""

    def listed(self) -> tuple[int, list[ListedProject]]:
        """Return the last serial, and the projects that have a page or were never seen, both as of the same moment."""

    def known_list(self) -> KnownList:
        """Return the stored state of the list of projects."""

    def save_list(self, projects: Iterable[ShownProject] | None, validators: Validators, now: float) -> None:
        """Store a new list: new projects and projects that are no longer listed become due.

        None means an unchanged list.
        """

    def enter(self, projects: Iterable[ShownProject], now: float) -> None:
        """Add the projects that are not known yet. They are due immediately."""

    def load(self, project: str) -> KnownProject | None:
        """Return the state of a project, or None if it is not known."""

    def take_due(
        self, now: float, until: float, limit: int, *, seen_before: float, among: Collection[str] | None
    ) -> list[KnownProject]:
        """Return some due projects, the longest overdue first. No other poller gets them before `until`.

        Projects that were polled since `seen_before` are skipped. If `among` is given, only its projects are returned.
        """

    def make_due(self, now: float, among: Collection[str] | None) -> None:
        """Make all projects due, or only the projects in `among`."""

    def count_due(self, now: float, *, seen_before: float, among: Collection[str] | None) -> int:
        """Return how many projects `take_due` could return."""

    def save(self, looks: Sequence[Look]) -> tuple[int, int]:
        """Store the results of polls and allocate the serials of their events, in one transaction.

        A result is dropped if another poller has saved the project's state in the meantime, since its observation is
        newer. Returns the number of stored events and the number of dropped results.
        """

    def note_serials(self) -> bool:
        """Record that the index has serials. Returns whether this was not known before."""


_LONGEST_FAILURE_S = 3600.0


@dataclass(frozen=True, slots=True)
class PollingPolicy:
    """The limits of polling: intervals of a project in seconds, and the most requests in a round.

    `confirm_after_s` is how long a change must be shown before it is accepted if it needs confirmation. See
    PYPI_ASSETS_POLL_... in docs/operations.md. `visits` decides the intervals within the limits.
    """

    requests: int = 1_000
    shortest_s: float = 300.0
    longest_s: float = 86_400.0
    confirm_after_s: float = 300.0
    visits: VisitPolicy = BALANCED


@dataclass(frozen=True, slots=True)
class NextLook:
    """The time at which a project is due (unix seconds), and the interval in seconds that it is based on."""

    due_at: float
    pause_s: float


def next_look(policy: PollingPolicy, facts: PollFacts) -> NextLook:
    """Return when to poll a project again, by the visit policy.

    A change that waits for confirmation is polled as soon as it can be confirmed.
    """
    pause_s = min(max(policy.visits.pause_s(facts), policy.shortest_s), policy.longest_s)
    return NextLook(facts.now + (min(policy.confirm_after_s, pause_s) if facts.is_waiting else pause_s), pause_s)


def look_after_failure(policy: PollingPolicy, failures: int, now: float, requested_pause_s: float = 0.0) -> float:
    """Return when to poll a project again after the given number of failed polls in a row, in unix seconds."""
    pause_s = max(policy.shortest_s, 1.0) * 2.0 ** min(failures - 1, 20)
    return now + min(max(pause_s, requested_pause_s), max(_LONGEST_FAILURE_S, policy.shortest_s), policy.longest_s)
