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
from typing import Generic, Literal, NamedTuple, TypedDict

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pypi_assets.leveldbs.datasets.depgraph.edge_file import RequirementLists
from pypi_assets.lookup.newest_links import Description, Judge, Links, Node, described, links_of
from pypi_assets.lookup.newest_requirements import NewestRequirements, breadth_first
from pypi_assets.lookup.requirement_filters import (
    Matched,
    accepting,
    alternatives,
    excluding,
    matched_by,
    naming,
    specifier_of,
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
    """A project, its newest version, the project that it requires, and its matching requirements of that project.

    `chain` is as in `Impact`.
    """

    project: str
    version: str
    required: str
    matched: Description
    chain: list[str]


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
    for steps, link in _walked(links_of(graph), project, first, after, depth if transitive else 1):
        yield _described(steps, link)


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
        for steps, link in _walked(links_of(graph), project, first, after, most):
            yield _broken(steps, link, "excludes" if steps == 1 else "requires")
        return
    for steps, link, lists in _possible_links(links_of(graph), canonicalize_name(project), most):
        if steps == 1 and (excluded := excluding(lists, version)):
            yield _broken(steps, link._replace(matched=described(excluded)), "excludes")
        elif (verdict := solvable(link.project, link.version)) is not None:
            yield _broken(steps, link, *verdict)


def _walked(
    links: Links[Node], project: str, first: Judge, after: str | None, depth: int | None
) -> Iterator[tuple[int, _ImpactLink]]:
    """Search breadth first, and yield the links of all projects that are found within `depth`, each with its depth."""
    start = links.node(canonicalize_name(project))
    return iter(()) if start is None else _Walk(links, start, first, after).links(depth)


class _Walk(Generic[Node]):
    """A breadth-first search. It records how each project was found, and its newest version."""

    def __init__(self, links: Links[Node], start: Node, first: Judge, after: str | None) -> None:
        self._links, self._start, self._first, self._after = links, start, first, after
        self._found: dict[Node, tuple[Node, str]] = {}
        """By project: the project that it requires, and its version."""

    def links(self, depth: int | None) -> Iterator[tuple[int, _ImpactLink]]:
        """Return the links of all projects that are found within `depth`, each with its depth."""
        return breadth_first(self._requiring, self._start, depth)

    def _requiring(self, required: Node, found: Container[Node]) -> Iterator[tuple[Node, _ImpactLink]]:
        """Yield the links to `required` from projects that were not found before."""
        if not self._links.has_links(required):
            return
        is_start = required == self._start
        judge = self._first if is_start else _accepting(self._found[required][1])
        name = self._links.name(required)
        chain = [self._links.name(one) for one in islice(self._chain(required), LONGEST_CHAIN)]
        for project, version, matched in self._links.matching(
            required, judge, found, self._after if is_start else None
        ):
            self._found[project] = (required, version)
            yield project, _ImpactLink(self._links.name(project), version, name, matched, chain)

    def _chain(self, project: Node) -> Iterator[Node]:
        while project != self._start:
            yield project
            project = self._found[project][0]
        yield project


def _possible_links(
    links: Links[Node], project: str, depth: int | None
) -> Iterator[tuple[int, _ImpactLink, RequirementLists]]:
    """Yield a link for each project whose newest release requires `project` or a project that leads to it, with depth.

    A project leads to `project` by a path that can use any release of each project. So no project is missed whose
    newest release can need `project`. The requirements of the newest release come with each link.
    """
    start = links.node(project)
    if start is None:
        return
    ways: dict[Node, Node] = {}  # by project: the next project on its path to the start
    linked, level, steps = {start}, [start], 0
    while level and (depth is None or steps < depth):
        steps += 1
        following = []
        for required in level:
            name = links.name(required)
            chain = [links.name(one) for one in islice(_way(ways, required), LONGEST_CHAIN)]
            for found, version, lists in links.possible(required, linked):
                if found not in ways:
                    ways[found] = required
                    following.append(found)
                matched = naming(lists)
                if matched:
                    linked.add(found)
                    yield steps, _ImpactLink(links.name(found), version, name, described(matched), chain), lists
        level = following


def _way(ways: Mapping[Node, Node], project: Node) -> Iterator[Node]:
    yield project
    while project in ways:
        project = ways[project]
        yield project


def _accepting(version: str) -> Judge:
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


def _described(depth: int, link: _ImpactLink) -> Impact:
    """Return the link as a result."""
    return {
        "depth": depth,
        "required": link.required,
        "normalized": link.project,
        "version": link.version,
        "condition": link.matched.condition,
        "requirements": link.matched.requirements.copy(),
        "specifiers": link.matched.specifiers.copy(),
        "chain": link.chain.copy(),
    }


def _broken(
    depth: int,
    link: _ImpactLink,
    reason: Literal["excludes", "requires", "unsolvable", "broken", "undecided"],
    proof: str | None = None,
    older: str | None = None,
) -> Break:
    """Return the link as the result for a broken project."""
    return Break(**_described(depth, link), reason=reason, proof=proof, older=older)
