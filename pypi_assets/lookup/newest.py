"""Reduces answers to the newest version of each project: the one that an installer would choose.

That is the newest stable version that is not yanked; without one, the newest that is not yanked; else the newest of
all. The order is PEP 440's. Where an answer does not know which versions are yanked, none counts as yanked.
"""

from collections.abc import Iterable, Iterator, Mapping
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


def newest_distributions(rows: Iterable[Row]) -> Iterator[Row]:
    """Of each project, whose rows follow each other, the files of its newest version, which is yanked where all of its
    files are.
    """
    for _, of_project in groupby(rows, key=itemgetter("normalized")):
        files = list(of_project)
        good = {canonical_version(file["version"]) for file in files if not file["yanked"]}
        versions = {file["version"] for file in files}
        newest = newest_version(versions, {version for version in versions if canonical_version(version) not in good})
        yield from (file for file in files if canonical_version(file["version"]) == canonical_version(newest))


def newest_providers(rows: Iterable[Row]) -> Iterator[Row]:
    """Each row with the newest of its `versions` alone."""
    for row in rows:
        yield {**row, "versions": [newest_version(row["versions"])]}  # type: ignore[misc]


def newest_dependents(rows: Iterable[Row]) -> Iterator[Row]:
    """Each row with the newest alone of all versions in its lists, in the list where it is."""
    for row in rows:
        newest = newest_version(version for name in _DEPENDENT_LISTS for version in row[name])
        lists = {name: [version for version in row[name] if version == newest] for name in _DEPENDENT_LISTS}
        yield {**row, **lists}  # type: ignore[misc]


@lru_cache(maxsize=65_536)
def _is_stable(version: str) -> bool:
    try:
        return not Version(version).is_prerelease
    except InvalidVersion:
        return False
