"""The links from newest releases to the projects that they require, from edges or from one read for each project.

A search names a project by a *node*: its number if there are edges, else its normalized name. With edges, requirements
are judged once for each number of lists, however many projects share it.
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeVar

from pypi_assets.distributions.requirement_names import CONDITIONS
from pypi_assets.leveldbs.datasets.depgraph.edge_file import RequirementLists
from pypi_assets.leveldbs.datasets.depgraph.edges import (
    Edges,
    named_lists,
)
from pypi_assets.lookup.newest_requirements import NewestRequirements, newest_of
from pypi_assets.lookup.requirement_filters import Matched, requirements_of, specifier_text

Node = TypeVar("Node", bound=Hashable)
Judge = Callable[[RequirementLists], Matched | None]
"""Returns the requirements that match, or None if none does."""
_ANY_NAME = "p"
"""A name in place of the required project's, since the name does not change which versions a requirement accepts."""


class Description(NamedTuple):
    """The matching requirements of a link as written, their specifiers, and their least condition."""

    requirements: list[str]
    specifiers: list[str]
    condition: str


def described(matched: Matched) -> Description:
    """Return the description of these requirements."""
    specifiers = dict.fromkeys(map(specifier_text, matched.requirements))
    return Description(
        list(matched.requirements),
        [one for one in specifiers if one is not None],
        CONDITIONS[matched.condition],
    )


class Links(Protocol[Node]):
    """The links to a project."""

    def node(self, project: str, /) -> Node | None:
        """Return the node of a project (normalized), or None if no link leads to it."""

    def name(self, node: Node, /) -> str:
        """Return the normalized name of a project."""

    def has_links(self, required: Node, /) -> bool:
        """Check whether links can lead to a project. True if that is unknown."""

    def requiring(self, required: Node, /) -> Iterable[Node]:
        """Return the projects that have any release that requires a project, by name."""

    def matching(
        self, required: Node, judge: Judge, found: Container[Node], after: str | None = None, /
    ) -> Iterator[tuple[Node, str, Description]]:
        """Yield the projects whose newest release has matching requirements of a project, by name.

        Each comes with its newest version and these requirements. Projects in `found` are omitted. With `after`, the
        result begins after this project.
        """

    def possible(self, required: Node, found: Container[Node], /) -> Iterator[tuple[Node, str, RequirementLists]]:
        """Yield the projects that have any release that requires a project, by name.

        Each comes with its newest version and the requirements of this version, which can be empty. Projects in `found`
        are omitted.
        """


class NamedLinks(Links[str]):
    """The links in a graph. Nodes are names."""

    def __init__(self, graph: NewestRequirements) -> None:
        self._graph = graph

    def node(self, project: str, /) -> str:
        return project

    def name(self, node: str, /) -> str:
        return node

    def has_links(self, _required: str, /) -> bool:
        return True

    def requiring(self, required: str, /) -> Iterable[str]:
        return self._graph.requiring(required)

    def matching(
        self, required: str, judge: Judge, found: Container[str], after: str | None = None, /
    ) -> Iterator[tuple[str, str, Description]]:
        for project, version, lists in self.possible(required, found, after):
            matched = judge(lists)
            if matched:
                yield project, version, described(matched)

    def possible(
        self, required: str, found: Container[str], after: str | None = None, /
    ) -> Iterator[tuple[str, str, RequirementLists]]:
        names = (name for name in self._graph.requiring(required, after) if name not in found)
        for project, newest in newest_of(self._graph, names):
            if newest is None:
                yield project, "", ()
            else:
                yield project, newest.version, requirements_of(required, newest.requirements)


class NumberedLinks(Links[int]):
    """The links in the edges of a published version. Nodes are numbers."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._lists: dict[int, RequirementLists] = {}

    def node(self, project: str, /) -> int | None:
        return self._edges.number(project)

    def name(self, node: int, /) -> str:
        return self._edges.name(node)

    def has_links(self, required: int, /) -> bool:
        return self._edges.count(required) > 0

    def requiring(self, required: int, /) -> Iterable[int]:
        return self._edges.requiring(required)[0]

    def matching(
        self, required: int, judge: Judge, found: Container[int], after: str | None = None, /
    ) -> Iterator[tuple[int, str, Description]]:
        edges, name = self._edges, self._edges.name(required)
        projects, lists = edges.newest(required)
        begin = 0 if after is None else bisect_right(projects, after, key=edges.name)
        judged: dict[int, Description | None] = {}
        for project, number in zip(projects[begin:], lists[begin:], strict=True):
            if project not in found:
                if number not in judged:
                    judged[number] = self._judged(number, name, judge)
                description = judged[number]
                if description is not None:
                    release = edges.release(project)
                    if release is not None:
                        yield project, release[0], description

    def _judged(self, number: int, required: str, judge: Judge) -> Description | None:
        """Return the matching requirements of the lists with a number, if they are about the project `required`."""
        lists = self._lists.get(number)
        if lists is None:
            lists = self._lists[number] = named_lists(_ANY_NAME, self._edges.lists(number))
        matched = judge(lists)
        if not matched:
            return None
        found, written = described(matched), named_lists(required, self._edges.lists(number))
        names = dict(zip(chain(*lists), chain(*written), strict=True))
        return found._replace(requirements=[names[one] for one in found.requirements])

    def possible(self, required: int, found: Container[int], /) -> Iterator[tuple[int, str, RequirementLists]]:
        edges, name = self._edges, self._edges.name(required)
        for project, number in zip(*edges.requiring(required), strict=True):
            if project not in found:
                release = edges.release(project)
                if release is not None:
                    yield project, release[0], named_lists(name, edges.lists(number))


def links_of(graph: NewestRequirements) -> Links[Any]:
    """Return the links of a graph, from its edges if it has them."""
    edges = graph.edges()
    return NamedLinks(graph) if edges is None else NumberedLinks(edges)
