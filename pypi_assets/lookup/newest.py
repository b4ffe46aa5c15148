"""Reduces answers to the newest version of each project: the one that an installer would choose.

That is the newest stable version that is not yanked; without one, the newest that is not yanked; else the newest of
all. The order is PEP 440's. A version is yanked where all of its files are. Where an answer does not know which
versions are yanked, none counts as yanked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from packaging.version import InvalidVersion, Version

from pypi_assets.leveldbs.format.version_order import canonical_version, version_key

Row = TypeVar("Row", bound=Mapping[str, Any])
_DEPENDENT_LISTS = ("always", "marker", "extra")


def newest_version(versions: Iterable[str], yanked: Iterable[str] = ()) -> str:
    """The newest of `versions`, of which there is at least one.

    >>> newest_version(["1.0", "2.0", "3.0rc1"], yanked=["2.0"])
    '1.0'
    """
    avoided = set(yanked)
    return max(versions, key=lambda one: (one not in avoided and _is_stable(one), one not in avoided, version_key(one)))


def newest_release(files: Iterable[tuple[str, bool]]) -> str:
    """The newest version of a project, canonical, from the version of each of its files and whether that is yanked.

    >>> newest_release([("1.0", False), ("2.0", True)])
    '1'
    """
    is_yanked: dict[str, bool] = {}
    for version, yanked in files:
        release = canonical_version(version)
        is_yanked[release] = is_yanked.get(release, True) and yanked
    return newest_version(is_yanked, (release for release, yanked in is_yanked.items() if yanked))


def newest_distributions(rows: Iterable[Row]) -> Iterator[Row]:
    """Of each project, whose rows follow each other, the files of its newest version."""
    for _, of_project in groupby(rows, key=itemgetter("normalized")):
        files = list(of_project)
        newest = newest_release((file["version"], file["yanked"]) for file in files)
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


@lru_cache(maxsize=65_536)
def _is_stable(version: str) -> bool:
    try:
        return not Version(version).is_prerelease
    except InvalidVersion:
        return False
