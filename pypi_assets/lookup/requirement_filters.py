"""Check which versions of a project requirements accept or exclude, and filter dependents by that.

A file can have several requirements of one project, with markers for different environments. An *alternative* is a set
of requirements that apply together: all requirements without a marker, either alone or with all requirements that share
one marker. A version is accepted if any alternative accepts it, and excluded if any alternative excludes it. So
`demo<2; os_name == 'nt'` together with `demo>=2; os_name != 'nt'` both accepts and excludes 3, each under a condition.
Markers are compared as texts and never evaluated.

Pre-releases count like other versions. A requirement with a URL and an invalid requirement neither accept nor exclude
any version.
"""

import string
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from pypi_assets.distributions.installability import is_installable
from pypi_assets.distributions.requirement_names import parse_requirement
from pypi_assets.leveldbs.datasets.depgraph.edge_file import RequirementLists
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.short_texts import cached_if_short
from pypi_assets.version_order import canonical_version

Row = TypeVar("Row", bound=Mapping[str, Any])
Files = Callable[[str], Iterable[Mapping[str, Any]]]
"""Returns the files of a project (normalized), each with its `version` and `requires_dist`."""
Which = Literal["accepts", "excludes"]
_DEPENDENT_LISTS = ("always", "marker", "extra")
_REMEMBERED, _REMEMBERED_PARSED = 65_536, 16_384
_LONG = 4_000
"""A longer text can contain a number with more digits than Python converts."""


class Alternative(NamedTuple):
    """Requirements that apply together, and their condition, as an index in `CONDITIONS`."""

    requirements: tuple[str, ...]
    condition: int


class Matched(NamedTuple):
    """The requirements of a release that match a version, each once, and the least index of their conditions."""

    requirements: tuple[str, ...]
    condition: int


class _Parsed(NamedTuple):
    specifier: SpecifierSet
    marker: str


def parse_version(text: str) -> Version:
    """Parse a version. Raises LookupNameError."""
    try:
        return Version(text)
    except ValueError as error:  # not a version, or a number in it has too many digits
        raise LookupNameError(f"{text!r:.100} is not a valid PEP 440 version") from error


def requirements_of(required: str, files: Iterable[Iterable[str]]) -> RequirementLists:
    """Return the requirements of `required` (normalized) in each file. Files without one are skipped."""
    beginnings = _beginnings(required)
    lists = []
    for some in files:  # most name another project, which their first character shows
        found = [one for one in some if one[:1] in beginnings and _names(one, required)]
        if found and tuple(found) not in lists:
            lists.append(tuple(found))
    return tuple(lists) if len(lists) < 2 else tuple(sorted(lists))


@cached_if_short(maxsize=1_024)
def _beginnings(required: str) -> frozenset[str]:
    """Return the characters that a requirement of the project can begin with."""
    return frozenset((required[:1], required[:1].upper(), *string.whitespace))


def _names(requirement: str, required: str) -> bool:
    parsed = parse_requirement(requirement)
    return parsed is not None and parsed[0] == required


def alternatives(requirements: tuple[str, ...]) -> tuple[Alternative, ...]:
    """Return the alternatives in one file's requirements of one project.

    >>> alternatives(("demo>=1", "demo<3; os_name == 'nt'"))[1].requirements
    ('demo>=1', "demo<3; os_name == 'nt'")
    """
    by_marker: defaultdict[str, list[str]] = defaultdict(list)
    for requirement in requirements:
        parsed = _parsed(requirement)
        if parsed is not None:
            by_marker[parsed.marker].append(requirement)
    always = tuple(by_marker.pop("", ()))
    found = [Alternative(always, 0)] if always else []
    found += [
        Alternative((*always, *some), min(_condition(requirement) for requirement in some))
        for some in by_marker.values()
    ]
    return tuple(found)


@cached_if_short(maxsize=_REMEMBERED)
def accepting(lists: RequirementLists, version: Version) -> Matched | None:
    """Return the requirements of the alternatives that accept `version`, or None if no alternative does."""
    accepted = [
        one
        for requirements in lists
        for one in alternatives(requirements)
        if all(accepts(requirement, version) for requirement in one.requirements)
    ]
    return matched_by(accepted)


@cached_if_short(maxsize=_REMEMBERED)
def excluding(lists: RequirementLists, version: Version) -> Matched | None:
    """Return the requirements that exclude `version`, or None if none of them does."""
    excluded = (
        Alternative((requirement,), one.condition)
        for requirements in lists
        for one in alternatives(requirements)
        for requirement in one.requirements
        if not accepts(requirement, version)
    )
    return matched_by(excluded)


@cached_if_short(maxsize=_REMEMBERED)
def naming(lists: RequirementLists) -> Matched | None:
    """Return all requirements, or None if there are none."""
    return matched_by(Alternative((one,), _condition(one)) for requirements in lists for one in requirements)


@cached_if_short(maxsize=_REMEMBERED)
def accepts(requirement: str, version: Version) -> bool:
    """Check whether a requirement, as part of an alternative, accepts the version."""
    parsed = _parsed(requirement)
    return parsed is not None and (not parsed.specifier or parsed.specifier.contains(version, prereleases=True))


def specifier_of(requirement: str) -> SpecifierSet | None:
    """Return the specifiers of a requirement, or None if it has a URL or is invalid."""
    parsed = _parsed(requirement)
    return None if parsed is None else parsed.specifier


@cached_if_short(maxsize=_REMEMBERED)
def specifier_text(requirement: str) -> str | None:
    """Return the specifiers as text, "" if any version is accepted, or None if it has a URL or is invalid."""
    parsed = _parsed(requirement)
    return None if parsed is None else str(parsed.specifier)


def matched_by(found: Iterable[Alternative]) -> Matched | None:
    """Return all requirements of these alternatives, or None if there are none."""
    requirements: dict[str, None] = {}
    condition: int | None = None
    for one in found:
        requirements.update(dict.fromkeys(one.requirements))
        condition = one.condition if condition is None else min(condition, one.condition)
    return None if condition is None else Matched(tuple(requirements), condition)


def kept_by_version(
    found: Iterable[Row], required: str, version: Version, which: Which, files_of: Files
) -> Iterator[Row]:
    """Yield the dependents that have releases that accept, or exclude, `version` of `required`.

    Other releases are removed. A release accepts or excludes the version if one of its files does.
    """
    matching = accepting if which == "accepts" else excluding
    for row in found:
        wanted = {
            release
            for release, lists in _lists_by_release(files_of(row["normalized"]), required).items()
            if matching(lists, version)
        }
        lists = {
            name: [release for release in row[name] if canonical_version(release) in wanted]
            for name in _DEPENDENT_LISTS
        }
        if any(lists.values()):
            yield {**row, **lists}  # type: ignore[misc]


def _lists_by_release(files: Iterable[Mapping[str, Any]], required: str) -> dict[str, RequirementLists]:
    """Return the requirements of the project in these files, by release (canonical).

    Files that installers reject are ignored.
    """
    lists: defaultdict[str, list[Iterable[str]]] = defaultdict(list)
    for file in files:
        if is_installable(file["refusals"]):
            lists[canonical_version(file["version"])].append(file["requires_dist"] or ())
    return {release: requirements_of(required, some) for release, some in lists.items()}


def _condition(requirement: str) -> int:
    parsed = parse_requirement(requirement)
    return 0 if parsed is None else parsed[1]


@cached_if_short(maxsize=_REMEMBERED_PARSED)
def _parsed(requirement: str) -> _Parsed | None:
    try:
        parsed = Requirement(requirement)
        if len(requirement) > _LONG:
            parsed.specifier.contains("0")
    except ValueError:  # not a requirement, or a number in it has too many digits
        return None
    if parsed.url is not None:
        return None
    return _Parsed(parsed.specifier, "" if parsed.marker is None else str(parsed.marker))
