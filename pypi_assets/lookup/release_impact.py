"""Find the projects that depend on a project or on one of its versions, and the projects that a version breaks.

A *link* leads from the newest release of one project to another project that it requires. The first link leads to the
requested project. It counts if a requirement names the project, accepts the version, or excludes it, depending on the
question. Every further link counts if a requirement accepts the newest release of the project that it leads to. So this
module never chooses versions itself. That takes a solver, which `breaks` accepts as a function. A solver can choose
older releases, so with a solver, further links can start from any release of a project.
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
    """A project (`normalized`) whose newest release, `version`, requires `required`.

    `requirements` are its requirements as written, with their `specifiers`. `condition` is `always` if one of them
    always holds, else `marker` or `extra`. `depth` is the least number of links to the requested project. `chain` lists
    the projects on these links, from `required` to the requested project; a longer chain is cut after 100.
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
    """An `Impact` on a project that a version breaks.

    `reason` is `excludes` if the project's requirements exclude the version, and `requires` if they lead to a project
    that the version breaks. Other reasons come from a solver, as in `Verdict`.
    """

    reason: Literal["excludes", "requires", "unsolvable", "broken", "undecided"]
    proof: str | None
    older: str | None


class Verdict(NamedTuple):
    """The result of a solver for a newest release that it cannot solve with the version.

    - `unsolvable`: the release has a solution without the version. `proof` shows why there is none with the version,
      and `older` is another release of the project that has one.
    - `broken`: the release has no solution without the version either.
    - `undecided`: no result is known; `proof` has the reason.
    """

    reason: Literal["unsolvable", "broken", "undecided"]
    proof: str
    older: str | None = None


Solvable = Callable[[str, str], Verdict | None]
"""Returns the verdict on a project (normalized) and its newest version. None: there is a solution with the version."""


class _ImpactLink(NamedTuple):
    """A project and the project that it requires, with all requirements of the latter and the matching ones.

    `chain` is as in `Impact`.
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
    """Yield the projects whose newest release requires `project`. With `version`, it must accept this version.

    With `transitive`, the projects that require these follow, and so on, up to `depth` links away. Each project is
    listed once, breadth first, and within the dependents of one project by normalized name. `project` itself is never
    listed. With `after`, only direct dependents after this name are listed.
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
    """Yield the projects whose newest release `version` of `project` breaks, in the order of `impact`.

    A project is broken if its requirements exclude the version or, with `transitive`, if it requires a broken project.
    With `solvable`, this function judges every project that can lead to `project` by any of its releases. Only projects
    that exclude the version directly are not judged. `after` works only without `solvable`.
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
    """A breadth-first search. It records how each project was found, and its newest version."""

    def __init__(self, graph: NewestRequirements, project: str, first: _Judge, after: str | None) -> None:
        self._graph, self._first, self._after = graph, first, after
        self._start: str = canonicalize_name(project)
        self._found: dict[str, tuple[str, str]] = {}
        """By project: the project that it requires, and its version."""

    def links(self, depth: int | None) -> Iterator[tuple[int, _ImpactLink]]:
        """Return the links of all projects that are found within `depth`, each with its depth."""
        return breadth_first(self._requiring, self._start, depth)

    def _requiring(self, required: str, found: Container[str]) -> Iterator[tuple[str, _ImpactLink]]:
        """Yield the links to `required` from projects that were not found before."""
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
    """Yield a link for each project whose newest release requires `start` or a project that leads to it, with depth.

    A project leads to `start` by a path that can use any release of each project. So no project is missed whose newest
    release can need `start`.
    """
    ways: dict[str, str] = {}  # by project: the next project on its path to `start`
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
    """Return a function for requirements that accept `version`. If it is invalid, they must accept any version."""
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
    """Return the link as a result, with these of its requirements."""
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
    """Return the link as the result for a broken project."""
    return Break(**_described(depth, link, matched), reason=reason, proof=proof, older=older)
