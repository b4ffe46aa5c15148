"""Keeps those dependents of a project whose requirements accept, or exclude, one of its versions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pypi_assets.leveldbs.format.version_order import canonical_version
from pypi_assets.lookup.lookup_command import LookupNameError

Row = TypeVar("Row", bound=Mapping[str, Any])
Files = Callable[[str], Iterable[Mapping[str, Any]]]
"""Returns the files of a project (normalized), each with its `version` and `requires_dist`."""
Which = Literal["accepts", "excludes"]
_DEPENDENT_LISTS = ("always", "marker", "extra")


def parse_version(text: str) -> Version:
    """The version that `text` is. Raises LookupNameError."""
    try:
        return Version(text)
    except InvalidVersion as error:
        raise LookupNameError(f"{text!r:.100} is no version of PEP 440") from error


def kept_by_version(
    found: Iterable[Row], required: str, version: Version, which: Which, files_of: Files
) -> Iterator[Row]:
    """The dependents with a release that accepts, or excludes, `version` of `required`, with these releases alone.

    A release excludes it if a requirement of one of its files does, and else accepts it. Pre-releases count like other
    versions, and markers are not looked at. A requirement that cannot be parsed neither accepts nor excludes.
    """
    for row in found:
        accepted = _releases(files_of(row["normalized"]), required, version)
        wanted = {release for release, is_accepted in accepted.items() if is_accepted == (which == "accepts")}
        lists = {
            name: [release for release in row[name] if canonical_version(release) in wanted]
            for name in _DEPENDENT_LISTS
        }
        if any(lists.values()):
            yield {**row, **lists}  # type: ignore[misc]


def _releases(files: Iterable[Mapping[str, Any]], required: str, version: Version) -> dict[str, bool]:
    """Of each release (canonical) that requires the project, whether it accepts the version."""
    accepted: dict[str, bool] = {}
    for file in files:
        for requirement in file["requires_dist"] or ():
            is_accepted = _accepts(requirement, required, version)
            if is_accepted is not None:
                release = canonical_version(file["version"])
                accepted[release] = accepted.get(release, True) and is_accepted
    return accepted


@lru_cache(maxsize=65_536)
def _accepts(requirement: str, required: str, version: Version) -> bool | None:
    """Whether a requirement accepts the version; None where it is about another project, or cannot be parsed."""
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return None
    if canonicalize_name(parsed.name) != required:
        return None
    return parsed.specifier.contains(version, prereleases=True)
