"""What the newest releases of projects require, as searches ask a snapshot for it.

The newest release is the one that an installer would choose (`leveldbs/format/version_order.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from packaging.utils import canonicalize_version
from packaging.version import Version

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
