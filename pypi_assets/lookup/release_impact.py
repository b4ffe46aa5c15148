"""What depends on a project, or on one of its versions, by what newest releases require; and what excludes a version.

A *link* leads from the newest release of one project to another that it requires. The first link leads to the requested
project. It counts where a requirement names the project, accepts the version, or excludes it, whichever is requested.
Every further link counts where a requirement accepts the newest release of the project that it leads to. So no version
is chosen here: that takes a solver, whose answers `breaks` takes as a function. A solver can choose older releases, so
with one the further links are those of any release.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple, TypedDict

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pypi_assets.distributions.requirement_names import CONDITIONS
from pypi_assets.lookup.newest_requirements import NewestRequirements, breadth_first, newest_of
from pypi_assets.lookup.requirement_filters import (
    Matched,
    RequirementLists,
    accepting,
    alternatives,
    excluding,
    matched_by,
    naming,
    requirements_of,
    specifier_of,
    specifier_text,
)

LONGEST_CHAIN = 100


class Impact(TypedDict):
    """A project (`normalized`) whose newest release, `version`, requires `required`: by these `requirements`, as they
    are written, with their `specifiers`. `condition` is when the least of them holds: always, by a marker, or with an
    extra.

    `depth` is the least number of links to the requested project. `chain` are the projects that the links lead through,
    from `required` to the requested one; of a longer chain the first 100.
    """

    depth: int
    required: str
    normalized: str
    version: str
    condition: str
    requirements: list[str]
    specifiers: list[str]
    chain: list[str]


class Break(Impact):
    """The same of a project that a version breaks. `reason` is `excludes` where its requirements exclude the version,
    and `requires` where they lead to a project that the version breaks; else it is a solver's, as in `Verdict`.
    """

    reason: Literal["excludes", "requires", "unsolvable", "broken", "undecided"]
    proof: str | None
    older: str | None


class Verdict(NamedTuple):
    """What a solver found of a newest release for which it has no solution with the version.

    `unsolvable`: it has one without it, and the `proof` shows why not with it; `older` is another release of the
    project that has one with it. `broken`: it has none without it either. `undecided`: that is not known; `proof` has
    the reason.
    """

    reason: Literal["unsolvable", "broken", "undecided"]
    proof: str
    older: str | None = None


Solvable = Callable[[str, str], Verdict | None]
"""The verdict on a project (normalized) and its newest version; None where that has a solution with the version."""


class _ImpactLink(NamedTuple):
    """A project that was found, the one that it requires, its files' requirements of that, and those that count; the
    chain as in `Impact`.
    """

    project: str
    version: str
    required: str
    lists: RequirementLists
    matched: Matched
    chain: list[str]


_Judge = Callable[[RequirementLists], Matched | None]


def impact(
    graph: NewestRequirements,
    project: str,
    version: Version | None = None,
    *,
    transitive: bool = False,
    depth: int | None = None,
    after: str | None = None,
) -> Iterator[Impact]:
    """The projects whose newest release requires `project`, or with `version` accepts this version of it.

    With `transitive`, those that require one of these follow, and so on, up to `depth` links away: each once, breadth
    first; those that require the same project by normalized name. The project itself never comes. With `after`, of
    those that require `project` itself only the ones after this project come.
    """
    first = naming if version is None else partial(accepting, version=version)
    for steps, link in _Walk(graph, project, first, after).links(depth if transitive else 1):
        yield _described(steps, link, link.matched)


def breaks(
    graph: NewestRequirements,
    project: str,
    version: Version,
    *,
    transitive: bool = False,
    depth: int | None = None,
    after: str | None = None,
    solvable: Solvable | None = None,
) -> Iterator[Break]:
    """The projects whose newest release `version` of `project` breaks, in the order of `impact`.

    These are the ones whose requirements exclude it, and with `transitive` those that require one of these. With
    `solvable`, it decides about all projects that can lead to the project by any of their releases, but those that
    exclude the version themselves; `after` goes without it.
    """
    most = depth if transitive else 1
    if solvable is None:
        first = partial(excluding, version=version)
        for steps, link in _Walk(graph, project, first, after).links(most):
            yield _broken(steps, link, link.matched, "excludes" if steps == 1 else "requires")
        return
    for steps, link in _possible_links(graph, canonicalize_name(project), most):
        if steps == 1 and (excluded := excluding(link.lists, version)):
            yield _broken(steps, link, excluded, "excludes")
        elif (verdict := solvable(link.project, link.version)) is not None:
            yield _broken(steps, link, link.matched, *verdict)


class _Walk:
    """A search, breadth first, that remembers how each project was found, and its newest version."""

    def __init__(self, graph: NewestRequirements, project: str, first: _Judge, after: str | None) -> None:
        self._graph, self._first, self._after = graph, first, after
        self._start: str = canonicalize_name(project)
        self._found: dict[str, tuple[str, str]] = {}
        """By project: the one that it requires, and its version."""

    def links(self, depth: int | None) -> Iterator[tuple[int, _ImpactLink]]:
        """The links of all projects that are found, each with its depth: at most `depth`."""
        return breadth_first(self._requiring, self._start, depth)

    def _requiring(self, required: str, found: Container[str]) -> Iterator[tuple[str, _ImpactLink]]:
        """The links to `required` of projects that were not found before."""
        if required == self._start:
            judge, names = self._first, self._graph.requiring(required, self._after)
        else:
            judge, names = _accepting(self._found[required][1]), self._graph.requiring(required)
        chain = list(islice(self._chain(required), LONGEST_CHAIN))
        for project, newest in newest_of(self._graph, (name for name in names if name not in found)):
            if newest is None:
                continue
            lists = requirements_of(required, newest.requirements)
            matched = judge(lists)
            if matched:
                self._found[project] = (required, newest.version)
                yield project, _ImpactLink(project, newest.version, required, lists, matched, chain)

    def _chain(self, project: str) -> Iterator[str]:
        while project != self._start:
            yield project
            project = self._found[project][0]
        yield project


def _possible_links(graph: NewestRequirements, start: str, depth: int | None) -> Iterator[tuple[int, _ImpactLink]]:
    """The links of newest releases to `start`, and to the projects of which any release leads there: one for each
    project, with its depth. So no project is left out whose newest release can need `start`.
    """
    ways: dict[str, str] = {}  # by project, the one through which it leads to `start`
    linked, level, steps = {start}, [start], 0
    while level and (depth is None or steps < depth):
        steps += 1
        following = []
        for required in level:
            chain = list(islice(_way(ways, required), LONGEST_CHAIN))
            names = (name for name in graph.requiring(required) if name not in linked)
            for project, newest in newest_of(graph, names):
                if project not in ways:
                    ways[project] = required
                    following.append(project)
                lists = requirements_of(required, newest.requirements if newest else ())
                matched = naming(lists)
                if newest is not None and matched:
                    linked.add(project)
                    yield steps, _ImpactLink(project, newest.version, required, lists, matched, chain)
        level = following


def _way(ways: Mapping[str, str], project: str) -> Iterator[str]:
    yield project
    while project in ways:
        project = ways[project]
        yield project


def _accepting(version: str) -> _Judge:
    """Accepts what requires this version; one that is not of PEP 440, only where any version is required."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return _of_any_version
    return partial(accepting, version=parsed)


def _of_any_version(lists: RequirementLists) -> Matched | None:
    free = [
        one
        for requirements in lists
        for one in alternatives(requirements)
        if not any(specifier_of(requirement) for requirement in one.requirements)
    ]
    return matched_by(free)


def _described(depth: int, link: _ImpactLink, matched: Matched) -> Impact:
    """The link as it is answered, by these of its requirements."""
    requirements, condition = matched
    specifiers = dict.fromkeys(map(specifier_text, requirements))
    return Impact(
        depth=depth,
        required=link.required,
        normalized=link.project,
        version=link.version,
        condition=CONDITIONS[condition],
        requirements=list(requirements),
        specifiers=[one for one in specifiers if one is not None],
        chain=link.chain.copy(),
    )


def _broken(
    depth: int,
    link: _ImpactLink,
    matched: Matched,
    reason: Literal["excludes", "requires", "unsolvable", "broken", "undecided"],
    proof: str | None = None,
    older: str | None = None,
) -> Break:
    """The link as it is answered where the version breaks its project."""
    return Break(**_described(depth, link, matched), reason=reason, proof=proof, older=older)
