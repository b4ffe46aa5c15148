"""Find the event that changed the outcome of a resolution.

The outcome can only change at a serial at which one of the projects that the resolution looked at changed. So only
these serials are candidates, and a bisection over them takes few resolutions.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypi_assets.resolve.questions import ResolutionQuestion
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import MOST_SECONDS, MOST_STEPS, UnsolvableError, resolve
from pypi_assets.resolve.solver_data import UnknownRequirementsError

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.project_history import HistoryItem


@dataclass(frozen=True, slots=True)
class ResolutionOutcome:
    """The outcome of a resolution as of `serial`: `pins` by normalized name, or None and the `failure`.

    `touched` are the projects that the resolution looked at.
    """

    serial: int
    pins: dict[str, str] | None
    failure: str | None
    touched: frozenset[str]

    def is_like(self, other: "ResolutionOutcome") -> bool:
        """Check whether both choose the same versions, or both fail."""
        return self.pins == other.pins

    def ends_like(self, other: "ResolutionOutcome") -> bool:
        """Check whether both have a solution, or both fail."""
        return (self.pins is None) == (other.pins is None)


@dataclass(frozen=True, slots=True)
class ResolutionChange:
    """A change of the outcome at `after.serial`, where at least one of `projects` changed.

    `before` is the last outcome before the change. `pins` has the versions that differ, by normalized name, before and
    after. A version is None if the project is not chosen.
    """

    before: ResolutionOutcome
    after: ResolutionOutcome
    projects: tuple[str, ...]

    @property
    def serial(self) -> int:
        return self.after.serial

    @property
    def pins(self) -> dict[str, tuple[str | None, str | None]]:
        return changed_pins(self.before.pins or {}, self.after.pins or {})


def changed_pins(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Return the versions that differ, by name, before and after. A version is None if the project is not chosen."""
    names = sorted(before.keys() | after.keys())
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


@dataclass(frozen=True, slots=True)
class Blame:
    """The result of a search between `good` and `bad`. `change` is None if both have the same outcome.

    `resolutions` is the number of resolutions that were made. `candidates` is the number of serials at which projects
    changed.
    """

    good: ResolutionOutcome
    bad: ResolutionOutcome
    change: ResolutionChange | None
    resolutions: int
    candidates: int


class OutcomeHistory:
    """The outcomes of one question over time. Each resolution has these limits, and `resolved` is called after it."""

    def __init__(
        self,
        history: "CatalogHistory",
        question: ResolutionQuestion,
        resolved: Callable[[int], None] = lambda _: None,
        *,
        most_steps: int = MOST_STEPS,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        self._history, self._question, self._resolved = history, question, resolved
        self._most_steps, self._most_seconds = most_steps, most_seconds
        self._known: dict[int, ResolutionOutcome] = {}
        self._serials: dict[tuple[str, int, int], Sequence[int]] = {}
        self.count = 0

    def at(self, serial: int) -> ResolutionOutcome:
        """Return the outcome as of a serial for which the catalog has an answer."""
        found = self._known.get(serial)
        if found is None:
            found = self._known[serial] = self._resolve(serial)
            self.count += 1
            self._resolved(self.count)
        return found

    def serials(self, touched: frozenset[str], after: int, through: int) -> list[int]:
        """Return the serials in (after, through] at which a project of `touched` changed, ascending."""
        return sorted({serial for project in touched for serial in self._changed(project, after, through)})

    def changed_at(self, serial: int, touched: frozenset[str]) -> tuple[str, ...]:
        """Return the projects of `touched` that changed at a serial."""
        return tuple(sorted(project for project in touched if self._changed(project, serial - 1, serial)))

    def _changed(self, project: str, after: int, through: int) -> Sequence[int]:
        for (name, least, most), serials in self._serials.items():
            if name == project and least <= after and through <= most:
                return serials[bisect_right(serials, after) : bisect_right(serials, through)]
        found = self._serials[project, after, through] = self._history.changed_serials(project, after, through)
        return found

    def _resolve(self, serial: int) -> ResolutionOutcome:
        index = self._history.index_at(serial)
        try:
            found = resolve(index, self._question, most_steps=self._most_steps, most_seconds=self._most_seconds)
        except UnsolvableError as error:
            return ResolutionOutcome(serial, None, str(error), error.touched)
        except UnknownRequirementsError as error:
            return ResolutionOutcome(serial, None, str(error), error.touched)
        return ResolutionOutcome(serial, found.pins, None, found.touched)


def blame(
    outcomes: OutcomeHistory,
    good: int,
    bad: int,
    are_alike: Callable[[ResolutionOutcome, ResolutionOutcome], bool] = ResolutionOutcome.is_like,
) -> Blame:
    """Find a serial in (good, bad] at which the outcome changed, by bisection. There can be other such serials.

    >>> blame(Outcomes(history, question), 1200, 1350).change.serial
    1288

    `are_alike` decides which outcomes count as equal.
    """
    first, last = outcomes.at(good), outcomes.at(bad)
    if are_alike(first, last):
        return Blame(first, last, None, outcomes.count, len(outcomes.serials(first.touched, good, bad)))
    before, after = first, last
    candidates = 0
    while True:
        serials = outcomes.serials(before.touched | after.touched, before.serial, after.serial)
        candidates = candidates or len(serials)
        if len(serials) <= 1:
            break
        middle = outcomes.at(serials[(len(serials) - 1) // 2])
        if are_alike(middle, first):
            before = middle
        else:
            after = middle
    [serial] = serials
    change = _change(outcomes, before, outcomes.at(serial))
    return Blame(first, last, change, outcomes.count, candidates)


def all_changes(outcomes: OutcomeHistory, good: int, bad: int) -> Iterator[ResolutionChange]:
    """Yield every change of the outcome in (good, bad], in order.

    This takes one resolution for each serial at which a project changed that the resolution before had looked at.
    """
    before = outcomes.at(good)
    while True:
        serials = outcomes.serials(before.touched, before.serial, bad)
        if not serials:
            return
        after = outcomes.at(serials[0])
        if not before.is_like(after):
            yield _change(outcomes, before, after)
        before = after


def _change(outcomes: OutcomeHistory, before: ResolutionOutcome, after: ResolutionOutcome) -> ResolutionChange:
    touched = before.touched | after.touched
    return ResolutionChange(before, after, outcomes.changed_at(after.serial, touched))


class CatalogHistory:
    """The index at each serial for which the catalog has an answer."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog

    def index_at(self, serial: int) -> ReleaseIndex:
        """Return the index at a serial. Raises InexactSerialError if the catalog is not exact there."""
        from pypi_assets.catalog.reports.moments import answerable_serial

        return past_index(self._catalog, answerable_serial(self._catalog, serial))

    def changed_serials(self, project: str, after: int, through: int) -> Sequence[int]:
        """Return the serials at which a project changed, each as the first serial from there on that has an answer."""
        from pypi_assets.catalog.reports.removals import answerable_changes

        with self._catalog.read() as connection:
            return answerable_changes(connection, project, after, through)

    def entries(self, change: ResolutionChange) -> list[tuple[str, "HistoryItem"]]:
        """Return the events of a change's projects at its serial, mostly one, each with the project's name.

        If single events are unknown, return all events since the last serial before it that has an answer.
        """
        from pypi_assets.catalog.observed.projects import find_project
        from pypi_assets.catalog.reports.project_history import read_history
        from pypi_assets.catalog.reports.removals import answerable_before

        found = []
        with self._catalog.read() as connection:
            before = answerable_before(connection, change.serial)
            for normalized in change.projects:
                project = find_project(connection, normalized)
                for entry in [] if project is None else read_history(connection, project):
                    is_visible = entry.live or entry.away or entry.yanked or entry.unyanked
                    if project is not None and before < entry.serial <= change.serial and is_visible:
                        found.append((project.name, entry))
        return found
