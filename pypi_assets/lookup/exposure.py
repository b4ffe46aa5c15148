"""Find the projects that lead to a version affected by an advisory.

`exposed` looks at the requirements of newest releases, `exposed_solutions` at the pins that a solver has chosen.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

from packaging.specifiers import SpecifierSet

from pypi_assets.distributions.requirement_names import CONDITIONS
from pypi_assets.distributions.requirements import parsed_version
from pypi_assets.lookup.advisories import Advisories
from pypi_assets.lookup.newest_links import links_of
from pypi_assets.lookup.newest_requirements import NewestRequirements
from pypi_assets.lookup.requirement_filters import Alternative, alternatives, matched_by, specifier_of


class Exposure(TypedDict):
    """A project whose newest release allows an affected version of a project that it requires.

    `normalized` and `version` are the project and its newest release. `allowed` is the newest version of `required`
    that the `requirements` accept, and `advisories` affect it. `condition` is `always` if one of the requirements
    always holds, else `marker` or `extra`.
    """

    required: str
    allowed: str
    advisories: list[str]
    normalized: str
    version: str
    condition: str
    requirements: list[str]


class ExposedSolution(TypedDict):
    """A project whose newest solution pins an affected version.

    The solution chooses the version `chosen` of the project `normalized`, and pins `required` to `version`, which
    `advisories` affect. If it is unknown whether there is a solution, `undecided` has the reason, and these are None.
    """

    normalized: str
    chosen: str | None
    required: str | None
    version: str | None
    advisories: list[str]
    undecided: str | None


class Undecided(NamedTuple):
    """The result for a project if it is unknown whether it has a solution."""

    reason: str


Solution = Callable[[str], Mapping[str, str] | Undecided | None]
"""Returns the versions that a solver chose for a project, by normalized name. None: there is no solution."""


def exposed(graph: NewestRequirements, advisories: Advisories) -> Iterator[Exposure]:
    """Yield the projects whose newest release allows an affected version as the newest one.

    They are sorted by required project, then by their own name. The newest allowed version is the newest one that
    requirements accept and that is neither yanked nor a pre-release, if there is one. Requires-Python is ignored. If
    markers divide the requirements, as in `demo<2; os_name == 'nt'` and `demo>=2; os_name != 'nt'`, a project is listed
    once for each affected version.
    """
    links = links_of(graph)
    for required in advisories.projects:
        versions = graph.versions(required)
        affected = {version: ids for version, _ in versions if (ids := advisories.affected(required, version))}
        if not affected:
            continue
        allowing = _Allowing(versions)
        node = links.node(required)
        for project, version, lists in () if node is None else links.possible(node, {node}):
            found: dict[str, list[Alternative]] = {}
            for of_file in lists:
                for one in alternatives(of_file):
                    allowed = allowing.newest(one)
                    if allowed in affected:
                        found.setdefault(allowed, []).append(one)
            for allowed, some in found.items():
                requirements, condition = matched_by(some) or ((), 0)
                yield Exposure(
                    required=required,
                    allowed=allowed,
                    advisories=affected[allowed],
                    normalized=links.name(project),
                    version=version,
                    condition=CONDITIONS[condition],
                    requirements=list(requirements),
                )


def exposed_solutions(projects: Iterable[str], advisories: Advisories, solution: Solution) -> Iterator[ExposedSolution]:
    """Yield the affected pins in the solutions of these projects (normalized), and the unknown solutions.

    A project without a solution is skipped.
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
    """Yield the projects that can lead to a live affected version by any of their releases, each once.

    No other project can have a solution that pins an affected version. Affected projects come before their dependents.
    """
    links = links_of(graph)
    found, level = set[Hashable](), list[Hashable]()
    for project in advisories.projects:
        if any(advisories.affected(project, version) for version, _ in graph.versions(project)):
            yield project
            node = links.node(project)
            if node is not None:
                found.add(node)
                level.append(node)
    while level:
        following = []
        for required in level:
            for node in links.requiring(required):
                if node not in found:
                    found.add(node)
                    following.append(node)
                    yield links.name(node)
        level = following


class _Allowing:
    """The versions of one project. It finds the newest version that requirements allow, and caches the results."""

    def __init__(self, versions: Sequence[tuple[str, bool]]) -> None:
        parsed = [
            (version, text, is_yanked) for text, is_yanked in versions if (version := parsed_version(text)) is not None
        ]
        parsed.sort(key=lambda one: one[0], reverse=True)
        self._live = {version: text for version, text, is_yanked in reversed(parsed) if not is_yanked}
        self._yanked = {version: text for version, text, is_yanked in reversed(parsed) if is_yanked}
        self._known: dict[tuple[str, ...], str | None] = {}

    def newest(self, alternative: Alternative) -> str | None:
        """Return the newest allowed version, or None."""
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
        found = max(specifier.filter(self._yanked), default=None)  # PEP 592: only for a pinned version
        return None if found is None else self._yanked[found]
