"""Which projects lead to an affected version: by what their newest releases allow, or by solutions of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from pypi_assets.distributions.requirement_names import CONDITIONS
from pypi_assets.lookup.advisories import Advisories
from pypi_assets.lookup.newest_requirements import NewestRequirements, newest_of
from pypi_assets.lookup.requirement_filters import Alternative, alternatives, matched_by, requirements_of, specifier_of


class Exposure(TypedDict):
    """A project (`normalized`) whose newest release, `version`, requires `required`, and the newest version of that
    which it allows: `allowed`, which `advisories` affect. `requirements` allow it; `condition` is the least of theirs.
    """

    required: str
    allowed: str
    advisories: list[str]
    normalized: str
    version: str
    condition: str
    requirements: list[str]


class ExposedSolution(TypedDict):
    """A project (`normalized`) of which the newest solution chooses `chosen`, and pins `version` of `required`, which
    `advisories` affect. Where it is not known what the solution is, `undecided` has the reason, and these are None.
    """

    normalized: str
    chosen: str | None
    required: str | None
    version: str | None
    advisories: list[str]
    undecided: str | None


class Undecided(NamedTuple):
    """It is not known whether a project has a solution."""

    reason: str


Solution = Callable[[str], Mapping[str, str] | Undecided | None]
"""The versions by project (normalized) that a solver has chosen for a project; None where it has no solution."""


def exposed(graph: NewestRequirements, advisories: Advisories) -> Iterator[Exposure]:
    """The projects whose newest release directly allows an affected version as the newest one, by the name of what they
    require and by theirs. Where requirements are divided by markers, a project comes once for each such version.

    The newest allowed version is the newest that is neither yanked nor a pre-release, where there is one that
    requirements accept; Requires-Python is not looked at.
    """
    for required in advisories.projects:
        versions = graph.versions(required)
        affected = {version: ids for version, _ in versions if (ids := advisories.affected(required, version))}
        if not affected:
            continue
        allowing = _Allowing(versions)
        names = (name for name in graph.requiring(required) if name != required)
        for project, newest in newest_of(graph, names):
            if newest is None:
                continue
            found: dict[str, list[Alternative]] = {}
            for lists in requirements_of(required, newest.requirements):
                for one in alternatives(lists):
                    allowed = allowing.newest(one)
                    if allowed in affected:
                        found.setdefault(allowed, []).append(one)
            for allowed, some in found.items():
                requirements, condition = matched_by(some) or ((), 0)
                yield Exposure(
                    required=required,
                    allowed=allowed,
                    advisories=affected[allowed],
                    normalized=project,
                    version=newest.version,
                    condition=CONDITIONS[condition],
                    requirements=list(requirements),
                )


def exposed_solutions(projects: Iterable[str], advisories: Advisories, solution: Solution) -> Iterator[ExposedSolution]:
    """What the solutions of these projects (normalized) pin that is affected, and which are not known. A project
    without a solution has nothing.
    """
    for project in projects:
        found = solution(project)
        if isinstance(found, Undecided):
            yield ExposedSolution(
                normalized=project, chosen=None, required=None, version=None, advisories=[], undecided=found.reason
            )
            continue
        pins = found or {}
        for required, version in sorted(pins.items()):
            ids = advisories.affected(required, version)
            if ids:
                yield ExposedSolution(
                    normalized=project,
                    chosen=pins.get(project),
                    required=required,
                    version=version,
                    advisories=ids,
                    undecided=None,
                )


def possibly_exposed(graph: NewestRequirements, advisories: Advisories) -> Iterator[str]:
    """The projects whose releases can lead to a live version that is affected, each once: the solutions of no others
    can pin one. Those that are affected themselves come before what requires them.
    """
    found: set[str] = set()
    level = []
    for project in advisories.projects:
        if any(advisories.affected(project, version) for version, _ in graph.versions(project)):
            found.add(project)
            level.append(project)
            yield project
    while level:
        following = []
        for required in level:
            for project in graph.requiring(required):
                if project not in found:
                    found.add(project)
                    following.append(project)
                    yield project
        level = following


class _Allowing:
    """The newest of a project's versions that requirements allow, remembered by requirements."""

    def __init__(self, versions: Sequence[tuple[str, bool]]) -> None:
        parsed = [(version, text, is_yanked) for text, is_yanked in versions if (version := _parsed(text)) is not None]
        parsed.sort(key=lambda one: one[0], reverse=True)
        self._live = {version: text for version, text, is_yanked in reversed(parsed) if not is_yanked}
        self._yanked = {version: text for version, text, is_yanked in reversed(parsed) if is_yanked}
        self._known: dict[tuple[str, ...], str | None] = {}

    def newest(self, alternative: Alternative) -> str | None:
        """The newest allowed version; None where none is."""
        requirements = alternative.requirements
        if requirements not in self._known:
            specifier = SpecifierSet()
            for requirement in requirements:
                specifier &= specifier_of(requirement) or SpecifierSet()
            self._known[requirements] = self._newest(specifier)
        return self._known[requirements]

    def _newest(self, specifier: SpecifierSet) -> str | None:
        found = max(specifier.filter(self._live), default=None)
        if found is not None:
            return self._live[found]
        if not any(one.operator in ("==", "===") and not one.version.endswith("*") for one in specifier):
            return None
        found = max(specifier.filter(self._yanked), default=None)  # PEP 592: where a version is pinned
        return None if found is None else self._yanked[found]


def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
