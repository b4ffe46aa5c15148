"""Finds the newest release of a project and what it requires, and follows requirements step by step."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from packaging.utils import canonicalize_version
from packaging.version import Version

from pypi_assets.distributions.installability import installable_or_all
from pypi_assets.leveldbs.format.version_order import canonical_version, newest_release, newest_version

_FIRST_AT_ONCE, _AT_ONCE = 20, 500
"""How many projects are read at once: few at first, so that an answer begins at once."""


class NewestRelease(NamedTuple):
    """The newest version of a project, and what its files require: each list once, as it is written."""

    version: str
    requirements: Sequence[Sequence[str]]


class NewestRequirements(Protocol):
    """The graph of what newest releases require: a snapshot, or a reader of `depgraph`. Names are normalized."""

    def requiring(self, project: str, after: str | None = None, /) -> Iterator[str]:
        """The projects with any release that requires `project`, by name: with `after`, those that come after it."""
        ...

    def newest(self, projects: Sequence[str], /) -> Iterator[NewestRelease | None]:
        """The newest release of each of these projects; None of one without files."""
        ...

    def versions(self, project: str, /) -> Sequence[tuple[str, bool]]:
        """The versions of a project, and whether each is yanked: all of its files are."""
        ...

    def check(self) -> None:
        """Raise an error if the search has to end."""


def newest_of(graph: NewestRequirements, names: Iterable[str]) -> Iterator[tuple[str, NewestRelease | None]]:
    """Each of these projects with its newest release; many are read at once."""
    rest = iter(names)
    at_once = _FIRST_AT_ONCE
    while some := list(islice(rest, at_once)):
        yield from zip(some, graph.newest(some), strict=True)
        at_once = _AT_ONCE


def is_release(version: Version, versions: Iterable[str]) -> bool:
    """Whether a version is among those of releases, in any spelling."""
    return canonicalize_version(version) in map(canonicalize_version, versions)


def by_version(files: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Each version once; it is yanked where all of its files are."""
    is_yanked: dict[str, bool] = {}
    for version, yanked in files:
        is_yanked[version] = is_yanked.get(version, True) and yanked
    return list(is_yanked.items())


Row = TypeVar("Row", bound=Mapping[str, Any])
_DEPENDENT_LISTS = ("always", "marker", "extra")


def newest_distributions(rows: Iterable[Row]) -> Iterator[Row]:
    """Of each project, whose rows follow each other, the files of its newest version."""
    for _, of_project in groupby(rows, key=itemgetter("normalized")):
        files = list(of_project)
        counted = installable_or_all(files, itemgetter("refusals"))
        newest = newest_release((file["version"], file["yanked"]) for file in counted)
        yield from (file for file in files if canonical_version(file["version"]) == newest)


def newest_providers(rows: Iterable[Row]) -> Iterator[Row]:
    """Each row with the newest of its `versions` alone."""
    for row in rows:
        yield {**row, "versions": [newest_version(row["versions"])]}  # type: ignore[misc]


def newest_dependents(rows: Iterable[Row], newest_of: Callable[[str], str]) -> Iterator[Row]:
    """The rows of projects whose newest version is in one of the lists, each with this version alone.

    `newest_of` returns the `newest_release` of a project, by its normalized name.
    """
    for row in rows:
        newest = newest_of(row["normalized"])
        lists = {
            name: [version for version in row[name] if canonical_version(version) == newest]
            for name in _DEPENDENT_LISTS
        }
        if any(lists.values()):
            yield {**row, **lists}  # type: ignore[misc]


Reached = TypeVar("Reached")
Direct = Callable[[str, Container[str]], Iterable[tuple[str, Reached]]]
"""What a name leads to directly: other names, each with what is known of it. Names in the container may be left out."""


def breadth_first(direct: Direct[Reached], start: str, depth: int | None = None) -> Iterator[tuple[int, Reached]]:
    """What is known of each name that `start` leads to, once, with the least number of steps that lead to it.

    With `depth`, none comes from further away. `start` itself never comes. Each name that came is kept in memory.
    """
    found, level, steps = {start}, [start], 0
    while level and (depth is None or steps < depth):
        steps += 1
        following = []
        for name in level:
            for reached, known in direct(name, found):
                if reached not in found:
                    found.add(reached)
                    following.append(reached)
                    yield steps, known
        level = following
