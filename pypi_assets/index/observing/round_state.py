"""Keeps what an observed index showed between rounds, and decides when each project is looked at next.

What changes often is looked at often, and everything within a time. `Memory` is the protocol of where it is kept.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pypi_assets.index.models import ChangelogEvent, ListedProject
from pypi_assets.index.observing.comparison import KnownPage, NewEvent
from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, ShownProject, Validators


@dataclass(frozen=True, slots=True)
class KnownProject:
    """A project as it is kept. `serial` is that of its last event, `url` the address of its page (None: the usual one).

    `revision` counts the saves: who saves names the revision that the new state follows from. `looked_at` is when its
    page was last seen, as a page or as a 404 (unix seconds; None: never). `failures` were in a row since then.
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


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a project came to: its new state, and the events that lead there.

    `page` is None where nothing is to be kept of it but when it is due next, such as after an `error`.
    """

    known: KnownProject
    page: KnownPage | None
    events: tuple[NewEvent, ...]
    validators: Validators
    at: float
    due_at: float
    pause_s: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class KnownList:
    """When the list of projects was last seen (unix seconds; None: never), and by what it can be requested again."""

    looked_at: float | None = None
    validators: Validators = NO_VALIDATORS


class Memory(Protocol):
    """Keeps the state of an observed index durably, for all processes that follow it."""

    def now(self) -> float:
        """The time in unix seconds, by a clock that all pollers share."""

    def last_serial(self) -> int:
        """The last serial of the counter."""

    def events(self, after: int, limit: int) -> list[ChangelogEvent]:
        """The next events above the serial `after`, in order."""

    def listed(self) -> tuple[int, list[ListedProject]]:
        """The last serial, and the projects that have a page or were never seen; both of one moment."""

    def known_list(self) -> KnownList:
        """What is known of the list of projects."""

    def save_list(self, projects: Iterable[ShownProject] | None, validators: Validators, now: float) -> None:
        """Enters new projects, due at once, and makes those due that are no longer listed. None: it has not changed."""

    def enter(self, projects: Iterable[ShownProject], now: float) -> None:
        """Enters those projects that are not known yet, due at once."""

    def load(self, project: str) -> KnownProject | None:
        """The state of a project, None where it is not known."""

    def take_due(
        self, now: float, until: float, limit: int, *, seen_before: float, among: Collection[str] | None
    ) -> list[KnownProject]:
        """Some projects that are due, the longest due first; no other poller gets them before `until`.

        Left out is what was looked at since `seen_before`. `among`: no other projects.
        """

    def make_due(self, now: float, among: Collection[str] | None) -> None:
        """Makes all projects due, or those `among`."""

    def count_due(self, now: float, *, seen_before: float, among: Collection[str] | None) -> int:
        """Return how many projects `take_due` would take."""

    def save(self, looks: Sequence[Look]) -> tuple[int, int]:
        """Saves what looks came to, and allocates the serials of their events, all in one transaction.

        A look at a project whose state was saved by another poller meanwhile is dropped: that one saw it later.
        Returns how many events were stored, and how many looks were dropped.
        """

    def note_serials(self) -> bool:
        """Records that the index gives serials of its own; returns whether that is news."""


_FASTER = 0.5
_SLOWER = 1.5
_LONGEST_FAILURE_S = 3600.0


@dataclass(frozen=True, slots=True)
class PollingPolicy:
    """Seconds between two looks at a project, the most requests of a round, and how long something must be shown before
    it is believed again; see PYPI_ASSETS_POLL_... in docs/operations.md."""

    requests: int = 1_000
    shortest_s: float = 300.0
    longest_s: float = 86_400.0
    confirm_after_s: float = 300.0


@dataclass(frozen=True, slots=True)
class NextLook:
    """When a project is due (unix seconds), and the pause that this follows from, in seconds."""

    due_at: float
    pause_s: float


def next_look(policy: PollingPolicy, pause_s: float, now: float, *, has_changed: bool, is_waiting: bool) -> NextLook:
    """When to look again at a project that was looked at `pause_s` seconds after the time before.

    The pause is halved where it has changed, and half as long again where not. What waits to be confirmed is looked at
    as soon as that can be.
    """
    pause_s = pause_s * (_FASTER if has_changed or is_waiting else _SLOWER)
    pause_s = min(max(pause_s, policy.shortest_s), policy.longest_s)
    return NextLook(now + (min(policy.confirm_after_s, pause_s) if is_waiting else pause_s), pause_s)


def look_after_failure(policy: PollingPolicy, failures: int, now: float, requested_pause_s: float = 0.0) -> float:
    """When to look again at a project that could not be looked at, for the `failures`th time in a row."""
    pause_s = max(policy.shortest_s, 1.0) * 2.0 ** min(failures - 1, 20)
    return now + min(max(pause_s, requested_pause_s), max(_LONGEST_FAILURE_S, policy.shortest_s), policy.longest_s)
