"""Compare two versions of a project: their requirements, contents and kinds of files."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypedDict

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pypi_assets.distributions.requirement_names import parse_requirement


class ReleaseDifference(TypedDict):
    """Items that only the later version has (`added`), and items that only the earlier version has (`removed`)."""

    added: list[str]
    removed: list[str]


class ChangedRequirement(TypedDict):
    """A project (normalized) that both versions require, but with different requirements.

    Requirements that both versions have are omitted.
    """

    project: str
    before: list[str]
    after: list[str]


class RequirementDifference(TypedDict):
    """The difference in requirements. `is_known` is false if the requirements of a version could not be read."""

    is_known: bool
    added: list[str]
    removed: list[str]
    changed: list[ChangedRequirement]


class Comparison(TypedDict):
    """The difference between the versions `before` and `after` of a project.

    `requires_python` compares the values of all files of each version. `files` compares kinds of files: `sdist`, and
    the tags of wheels.
    """

    project: str
    normalized: str
    before: str
    after: str
    requires_python: ReleaseDifference
    requirements: RequirementDifference
    extras: ReleaseDifference
    modules: ReleaseDifference
    commands: ReleaseDifference
    files: ReleaseDifference


def compare_releases(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Compare two versions, each given as a `VersionResult`.

    Requirements and extras that differ only in spelling are equal, such as `idna (>=3)` and `Idna>=3`.

    >>> compare_releases(of_2_1, of_2_2)["requirements"]["added"]
    ['idna>=3']
    """
    return Comparison(
        project=after["project"],
        normalized=after["normalized"],
        before=before["version"],
        after=after["version"],
        requires_python=_difference(_pythons(before), _pythons(after)),
        requirements=_requirements(before["requires_dist"], after["requires_dist"]),
        extras=_difference(before["extras"], after["extras"], canonicalize_name),
        modules=_difference(before["modules"], after["modules"]),
        commands=_difference(before["commands"], after["commands"]),
        files=_difference(_forms(before), _forms(after)),
    )


def is_same(found: Comparison) -> bool:
    """Check whether the comparison found no difference, and all requirements are known."""
    required = found["requirements"]
    differences = (found["requires_python"], found["extras"], found["modules"], found["commands"], found["files"])
    is_known_same = required["is_known"] and not (required["added"] or required["removed"] or required["changed"])
    return is_known_same and not any(one["added"] or one["removed"] for one in differences)


def form_of(filename: str, kind: str) -> str:
    """Return the kind of a file without project and version: the tags of a wheel, or the kind of any other file.

    >>> form_of("demo-1.0-py3-none-any.whl", "wheel"), form_of("demo-1.0.tar.gz", "sdist")
    ('wheel py3-none-any', 'sdist')
    """
    tags = filename.removesuffix(".whl").split("-")[-3:]
    return f"{kind} {'-'.join(tags)}" if filename.endswith(".whl") and len(tags) == 3 else kind


def _pythons(version: Mapping[str, Any]) -> list[str]:
    return sorted({file["requires_python"] for file in version["files"] if file["requires_python"]})


def _forms(version: Mapping[str, Any]) -> list[str]:
    return sorted({form_of(file["filename"], file["kind"]) for file in version["files"]})


def _difference(
    before: Collection[str], after: Collection[str], meaning: Callable[[str], object] = lambda text: text
) -> ReleaseDifference:
    old, new = set(map(meaning, before)), set(map(meaning, after))
    return ReleaseDifference(
        added=[one for one in after if meaning(one) not in old],
        removed=[one for one in before if meaning(one) not in new],
    )


def _meaning_of(requirement: str) -> object:
    """Return a value that is equal for all spellings of a requirement, or the text if it is invalid."""
    try:
        return Requirement(requirement)
    except (InvalidRequirement, ValueError, RecursionError):  # ValueError: a number with thousands of digits
        return requirement


def _requirements(before: Collection[str] | None, after: Collection[str] | None) -> RequirementDifference:
    if before is None or after is None:
        return RequirementDifference(is_known=False, added=[], removed=[], changed=[])
    found = _difference(before, after, _meaning_of)
    old, new = _by_project(found["removed"]), _by_project(found["added"])
    changed = [
        ChangedRequirement(project=project, before=old[project], after=new[project])
        for project in sorted(old.keys() & new.keys())
        if project
    ]
    paired = {text for one in changed for text in (*one["before"], *one["after"])}
    return RequirementDifference(
        is_known=True,
        added=[text for text in found["added"] if text not in paired],
        removed=[text for text in found["removed"] if text not in paired],
        changed=changed,
    )


def _by_project(requirements: Iterable[str]) -> dict[str, list[str]]:
    """Return the requirements by project. Requirements that name no project have the key ""."""
    found: dict[str, list[str]] = {}
    for text in requirements:
        parsed = parse_requirement(text)
        found.setdefault(parsed[0] if parsed else "", []).append(text)
    return found
