"""Find the newest release of a project and its requirements, and follow requirements breadth first."""

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from packaging.utils import canonicalize_version
from packaging.version import Version

from pypi_assets.distributions.installability import installable_or_all
from pypi_assets.version_order import canonical_version, newest_release, newest_version

if TYPE_CHECKING:
    from pypi_assets.leveldbs.datasets.depgraph.edges import Edges

_FIRST_AT_ONCE, _AT_ONCE = 20, 500
"""The number of projects that one read returns. The first read is small, so that the first results arrive early."""


class NewestRelease(NamedTuple):
    """The newest version of a project, and the requirement lists of its files as written, without repeated lists."""

    version: str
    requirements: Sequence[Sequence[str]]


class NewestRequirements(Protocol):
    """The graph of the requirements of newest releases: a snapshot, or a reader of `depgraph`. Names are normalized."""

    def requiring(self, project: str, after: str | None = None, /) -> Iterator[str]:
        """Return the projects that have any release that requires `project`, by name.

        With `after`, the result begins after this project.
        """
        ...

    def newest(self, projects: Sequence[str], /) -> Iterator[NewestRelease | None]:
        """Return the newest release of each of these projects, or None for a project without files."""
        ...

    def versions(self, project: str, /) -> Sequence[tuple[str, bool]]:
        """Return (version, whether it is yanked) for each version. A version is yanked if all of its files are."""
        ...

    def edges(self) -> "Edges | None":
        """Return the edges of all newest releases, or None if there is no file of edges."""
        return None

    def check(self) -> None:
        """Raise an error if the search must stop."""


def newest_of(graph: NewestRequirements, names: Iterable[str]) -> Iterator[tuple[str, NewestRelease | None]]:
    """Yield each of these projects with its newest release. Projects are read in batches."""
    rest = iter(names)
    at_once = _FIRST_AT_ONCE
    while some := list(islice(rest, at_once)):
        yield from zip(some, graph.newest(some), strict=True)
        at_once = _AT_ONCE


def is_release(version: Version, versions: Iterable[str]) -> bool:
    """Check whether a version is among these versions, however it is spelled."""
    return canonicalize_version(version) in map(canonicalize_version, versions)


def by_version(files: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return each version once. It is yanked if all of its files are."""
    is_yanked: dict[str, bool] = {}
    for version, yanked in files:
        is_yanked[version] = is_yanked.get(version, True) and yanked
    return list(is_yanked.items())


Row = TypeVar("Row", bound=Mapping[str, Any])
_DEPENDENT_LISTS = ("always", "marker", "extra")


def newest_distributions(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the files of each project's newest version. The rows of a project must follow each other."""
    for _, of_project in groupby(rows, key=itemgetter("normalized")):
        files = list(of_project)
        counted = installable_or_all(files, itemgetter("refusals"))
        newest = newest_release((file["version"], file["yanked"]) for file in counted)
        yield from (file for file in files if canonical_version(file["version"]) == newest)


def newest_providers(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield each row, with `versions` reduced to the newest one."""
    for row in rows:
        yield {**row, "versions": [newest_version(row["versions"])]}  # type: ignore[misc]


def newest_dependents(rows: Iterable[Row], newest_of: Callable[[str], str]) -> Iterator[Row]:
    """Yield the rows of projects whose newest version is in one of the lists, with all other versions removed.

    `newest_of` returns the `newest_release` of a project, by normalized name.
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
Named = TypeVar("Named", bound=Hashable)
Direct = Callable[[Named, Container[Named]], Iterable[tuple[Named, Reached]]]
"""Returns the direct neighbours of a name, each with its data. Names in the container may be omitted."""


def breadth_first(
    direct: Direct[Named, Reached], start: Named, depth: int | None = None
) -> Iterator[tuple[int, Reached]]:
    """Yield the data of each name, or number, that `start` leads to, once, with its least depth.

    The search stops at `depth`. `start` itself is never yielded. All names that were found stay in memory.
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
