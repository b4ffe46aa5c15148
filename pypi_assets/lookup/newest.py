"""Reduces answers to the newest version of each project: the one that an installer would choose.

`leveldbs/format/version_order.py` decides which one that is. Where an answer does not know which versions are yanked,
none counts as yanked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from pypi_assets.distributions.refusals import installable_or_all
from pypi_assets.leveldbs.format.version_order import canonical_version, newest_release, newest_version

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
