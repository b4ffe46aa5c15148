"""Finds the event that changed what requirements resolve to.

Between two serials at which nothing changed of the projects that a resolution looked at, its outcome is the same. So
only those serials are candidates at which one of these projects changed, and a bisection over them takes few
resolutions.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypi_assets.resolve.provider import UnknownRequirementsError
from pypi_assets.resolve.questions import ResolutionQuestion
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import MOST_SECONDS, MOST_STEPS, UnsolvableError, resolve

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.project_history import HistoryItem


@dataclass(frozen=True, slots=True)
class ResolutionOutcome:
    """What the requirements resolve to as of `serial`: `pins` by normalized name, or None and the `failure`.

    `touched` are the projects that the resolution looked at.
    """

    serial: int
    pins: dict[str, str] | None
    failure: str | None
    touched: frozenset[str]

    def is_like(self, other: "ResolutionOutcome") -> bool:
        """Whether both choose the same versions, or both fail."""
        return self.pins == other.pins

    def ends_like(self, other: "ResolutionOutcome") -> bool:
        """Whether both have a solution, or both fail."""
        return (self.pins is None) == (other.pins is None)


@dataclass(frozen=True, slots=True)
class ResolutionChange:
    """The outcome changed at `after.serial`, where one of `projects` changed; `before` is the last one before.

    `pins` are the versions that differ, by normalized name, before and after: None where there is none.
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
    """The versions that differ, by name, before and after: None where there is none."""
    names = sorted(before.keys() | after.keys())
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


@dataclass(frozen=True, slots=True)
class Blame:
    """What was found between `good` and `bad`: no change where the outcome of both is the same.

    `resolutions` is how many were made, and `candidates` at how many serials the projects changed.
    """

    good: ResolutionOutcome
    bad: ResolutionOutcome
    change: ResolutionChange | None
    resolutions: int
    candidates: int


class OutcomeHistory:
    """The outcomes of one question over time; `resolved` is called after each resolution, which has these limits."""

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
        """The outcome as of a serial that can be answered for."""
        found = self._known.get(serial)
        if found is None:
            found = self._known[serial] = self._resolve(serial)
            self.count += 1
            self._resolved(self.count)
        return found

    def serials(self, touched: frozenset[str], after: int, through: int) -> list[int]:
        """The serials in (after, through] at which a project of `touched` changed, ascending."""
        return sorted({serial for project in touched for serial in self._changed(project, after, through)})

    def changed_at(self, serial: int, touched: frozenset[str]) -> tuple[str, ...]:
        """The projects of `touched` that changed at a serial."""
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
    """Finds one serial in (good, bad] at which the outcome changed, by bisection. There can be further ones.

    >>> blame(Outcomes(history, question), 1200, 1350).change.serial
    1288

    `are_alike` decides which outcomes count as the same: it divides them into two kinds or more.
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
    """Every change of the outcome in (good, bad], in order. Each serial at which a project changed that the resolution
    looked at takes a resolution.
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
    """The index at each serial that the catalog can answer for."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog

    def index_at(self, serial: int) -> ReleaseIndex:
        """Raises InexactSerialError where the catalog is not exact at `serial`."""
        from pypi_assets.catalog.reports.moments import answerable_serial

        return past_index(self._catalog, answerable_serial(self._catalog, serial))

    def changed_serials(self, project: str, after: int, through: int) -> Sequence[int]:
        """Each as the first serial from there on that can be answered for."""
        from pypi_assets.catalog.reports.removals import answerable_changes

        with self._catalog.read() as connection:
            return answerable_changes(connection, project, after, through)

    def entries(self, change: ResolutionChange) -> list[tuple[str, "HistoryItem"]]:
        """What happened to the projects of a change at its serial, each with the project's name: mostly one event.

        Where single events are not known, it is what happened since the serial before it that can be answered for.
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
