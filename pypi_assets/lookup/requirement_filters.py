"""Which versions of a project requirements accept and exclude, and which dependents that keeps.

One file can have several requirements of a project, with markers that divide environments. Those that apply together
in some environments are an *alternative*: the ones without a marker alone, and these with all that have one marker.
A version is accepted where an alternative accepts it, and excluded where one excludes it. So `demo<2; os_name == 'nt'`
with `demo>=2; os_name != 'nt'` accepts 3 and excludes it, each under a condition. Markers are compared as texts and not
evaluated.

Pre-releases count like other versions. A requirement by URL, or one that cannot be parsed, neither accepts a version
nor excludes it.
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
from pypi_assets.leveldbs.format.version_order import canonical_version
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.short_texts import cached_if_short

Row = TypeVar("Row", bound=Mapping[str, Any])
Files = Callable[[str], Iterable[Mapping[str, Any]]]
"""Returns the files of a project (normalized), each with its `version` and `requires_dist`."""
RequirementLists = tuple[tuple[str, ...], ...]
"""What the files of a release require of one project, as it is written: each different list once."""
Which = Literal["accepts", "excludes"]
_DEPENDENT_LISTS = ("always", "marker", "extra")
_REMEMBERED, _REMEMBERED_PARSED = 65_536, 16_384
_LONG = 4_000
"""A text this long can have a number of more digits than Python converts."""


class Alternative(NamedTuple):
    """Requirements that apply together, and the rank of their condition (see `CONDITIONS`)."""

    requirements: tuple[str, ...]
    condition: int


class Matched(NamedTuple):
    """The requirements of a release that match a version, each once, and the least rank of their conditions."""

    requirements: tuple[str, ...]
    condition: int


class _Parsed(NamedTuple):
    specifier: SpecifierSet
    marker: str


def parse_version(text: str) -> Version:
    """The version that `text` is. Raises LookupNameError."""
    try:
        return Version(text)
    except ValueError as error:  # that it is no version, or a number in it too long
        raise LookupNameError(f"{text!r:.100} is no version of PEP 440") from error


def requirements_of(required: str, files: Iterable[Iterable[str]]) -> RequirementLists:
    """The requirements of the project `required` (normalized) in all that files require; without those of no file."""
    beginnings = _beginnings(required)
    lists = []
    for some in files:  # most name another project, and are left out by how they begin
        found = [one for one in some if one[:1] in beginnings and _names(one, required)]
        if found and tuple(found) not in lists:
            lists.append(tuple(found))
    return tuple(lists) if len(lists) < 2 else tuple(sorted(lists))


@cached_if_short(maxsize=1_024)
def _beginnings(required: str) -> frozenset[str]:
    """What a requirement of the project can begin with."""
    return frozenset((required[:1], required[:1].upper(), *string.whitespace))


def _names(requirement: str, required: str) -> bool:
    parsed = parse_requirement(requirement)
    return parsed is not None and parsed[0] == required


def alternatives(requirements: tuple[str, ...]) -> tuple[Alternative, ...]:
    """The alternatives of one file's requirements of one project.

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
    """The requirements of the alternatives that accept `version`; None where no alternative does."""
    accepted = [
        one
        for requirements in lists
        for one in alternatives(requirements)
        if all(accepts(requirement, version) for requirement in one.requirements)
    ]
    return matched_by(accepted)


@cached_if_short(maxsize=_REMEMBERED)
def excluding(lists: RequirementLists, version: Version) -> Matched | None:
    """The requirements that exclude `version`; None where none does."""
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
    """All requirements; None where there is none."""
    return matched_by(Alternative((one,), _condition(one)) for requirements in lists for one in requirements)


@cached_if_short(maxsize=_REMEMBERED)
def accepts(requirement: str, version: Version) -> bool:
    """Whether a requirement that is part of an alternative accepts the version."""
    parsed = _parsed(requirement)
    return parsed is not None and (not parsed.specifier or parsed.specifier.contains(version, prereleases=True))


def specifier_of(requirement: str) -> SpecifierSet | None:
    """The specifiers of a requirement; None where it has a URL in their place, or cannot be parsed."""
    parsed = _parsed(requirement)
    return None if parsed is None else parsed.specifier


@cached_if_short(maxsize=_REMEMBERED)
def specifier_text(requirement: str) -> str | None:
    """The specifiers as text: empty where any version is accepted; None as above."""
    parsed = _parsed(requirement)
    return None if parsed is None else str(parsed.specifier)


def matched_by(found: Iterable[Alternative]) -> Matched | None:
    """All requirements of some alternatives; None without any."""
    requirements: dict[str, None] = {}
    condition: int | None = None
    for one in found:
        requirements.update(dict.fromkeys(one.requirements))
        condition = one.condition if condition is None else min(condition, one.condition)
    return None if condition is None else Matched(tuple(requirements), condition)


def kept_by_version(
    found: Iterable[Row], required: str, version: Version, which: Which, files_of: Files
) -> Iterator[Row]:
    """The dependents with a release that accepts, or excludes, `version` of `required`, with these releases alone.

    A release accepts it where one of its files does, and excludes it where one of them does.
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
    """Return the requirements of the project that files have, by release (canonical).

    Files that no installer takes have none.
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
    except ValueError:  # that it is no requirement, or a number in it too long
        return None
    if parsed.url is not None:
        return None
    return _Parsed(parsed.specifier, "" if parsed.marker is None else str(parsed.marker))
