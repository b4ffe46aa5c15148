"""Checks whether pins are a solution by a direct reading of the standards. It shares no code with the solver.

It reads the index itself: the files shown at a serial, and their METADATA. uv departs from the standards in two ways,
which are checked as they are: only the lower bound of a Requires-Python counts, and a pre-release is chosen if no final
release leads to a solution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from packaging.markers import default_environment
from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import compatible_tags, cpython_tags, sys_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from pypi_assets.devindex.history import METADATA_SUFFIX, History
from pypi_assets.devindex.uploads import UploadedFile
from pypi_assets.resolve.questions import Semantics
from pypi_assets_tests.resolve.requirement_graphs import RequirementSet


@dataclass(frozen=True)
class Target:
    """An environment to install into: marker variables, and wheel tags as texts, best first."""

    variables: Mapping[str, str]
    tags: tuple[str, ...]

    @cached_property
    def places(self) -> dict[str, int]:
        return {tag: place for place, tag in enumerate(self.tags)}

    def pythons(self, semantics: Semantics) -> list[str]:
        """Return the Pythons of which one must be allowed: this Python, and by uv's rule all earlier ones."""
        own = self.variables["python_full_version"]
        _, minor, patch = map(int, own.split("."))
        earlier = [f"3.{each}.{number}" for each in range(minor) for number in range(30)]
        earlier += [f"3.{minor}.{number}" for number in range(patch)]
        return [own, *(earlier if semantics is Semantics.UV else [])]

    @classmethod
    def running(cls) -> "Target":
        """Return the target of this process."""
        return cls(dict(default_environment().items()), tuple(map(str, sys_tags())))

    @classmethod
    def cpython(cls, minor: int, variables: Mapping[str, str], platforms: Sequence[str]) -> "Target":
        """Return CPython `3.MINOR.0` on a platform, with these additional variables and platform tags."""
        version = f"3.{minor}.0"
        python = {"python_version": f"3.{minor}", "python_full_version": version, "implementation_version": version}
        cpython = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
        tags = [*cpython_tags((3, minor), [f"cp3{minor}"], platforms)]
        tags += compatible_tags((3, minor), f"cp3{minor}", platforms)
        return cls({**default_environment(), **python, **cpython, **variables}, tuple(map(str, tags)))


@dataclass(frozen=True)
class ShownWheel:
    """A wheel that the index shows."""

    filename: str
    version: Version
    is_yanked: bool
    uploaded_at: datetime
    requires_python: str | None
    requires_dist: tuple[Requirement, ...]
    build: tuple[int, str]
    tags: frozenset[str]


@dataclass
class ShownIndex:
    """The wheels that a devindex showed at a serial."""

    history: History
    serial: int

    def __post_init__(self) -> None:
        self._state = self.history.state_at(self.serial)
        self._wheels: dict[str, list[ShownWheel]] = {}

    def wheels(self, name: str) -> list[ShownWheel]:
        """Return all wheels of a project by normalized name."""
        if name not in self._wheels:
            project = self._state.project(name)
            self._wheels[name] = [
                _read(self.history.file_path(file), file, is_yanked=release.yanked)
                for release in (project.visible_releases() if project else [])
                for file in release.files.values()
                if file.filename.endswith(".whl")
            ]
        return self._wheels[name]


def _read(path: Path, file: UploadedFile, *, is_yanked: bool) -> ShownWheel:
    _, version, build, tags = parse_wheel_filename(file.filename)
    metadata, _ = parse_email(path.with_name(path.name + METADATA_SUFFIX).read_bytes())
    return ShownWheel(
        file.filename,
        version,
        is_yanked,
        datetime.fromisoformat(file.uploaded_at),
        metadata.get("requires_python"),
        tuple(map(Requirement, metadata.get("requires_dist", []))),
        build or (0, ""),
        frozenset(map(str, tags)),
    )


def usable_wheels(
    index: ShownIndex, name: str, wanted: RequirementSet, target: Target, semantics: Semantics
) -> list[ShownWheel]:
    """Return the installable wheels of a project, including yanked wheels, in the installers' order of preference."""
    before = wanted.uploaded_before
    fitting = [
        wheel
        for wheel in index.wheels(name)
        if not wheel.tags.isdisjoint(target.places)
        and any(map(SpecifierSet(wheel.requires_python or "").contains, target.pythons(semantics)))
        and (before is None or wheel.uploaded_at < before)
    ]
    built_last = sorted(fitting, key=lambda wheel: wheel.build, reverse=True)
    return sorted(built_last, key=lambda wheel: (wheel.is_yanked, min(_places(wheel, target))))


def _places(wheel: ShownWheel, target: Target) -> list[int]:
    return [target.places[tag] for tag in wheel.tags if tag in target.places]


def faults(
    index: ShownIndex, wanted: RequirementSet, target: Target, semantics: Semantics, pins: Mapping[str, str]
) -> list[str]:
    """Return the faults of pins as sentences. A valid solution has none."""
    usable = {name: usable_wheels(index, name, wanted, target, semantics) for name in pins}
    chosen = {
        name: [wheel for wheel in usable[name] if wheel.version == Version(version)] for name, version in pins.items()
    }
    problems = [f"{name}=={pins[name]} has no usable wheel" for name, wheels in chosen.items() if not wheels]
    if problems:
        return problems
    constraints = list(map(Requirement, wanted.constraints))
    applicable = _applicable(list(map(Requirement, wanted.requirements)), chosen, target)
    reached = {canonicalize_name(requirement.name) for requirement in applicable}
    problems += [f"{name} is not pinned" for name in sorted(reached - pins.keys())]
    problems += [f"nothing requires {name}" for name in sorted(pins.keys() - reached)]
    applicable += [requirement for requirement in constraints if _holds(requirement, target, "")]
    may_be_pre = wanted.prereleases or semantics is Semantics.UV
    for name in sorted(pins.keys() & reached):
        named = [requirement for requirement in applicable if canonicalize_name(requirement.name) == name]
        problems += _faults_of(name, pins[name], named, chosen[name], usable[name], may_be_pre=may_be_pre)
    return problems


def _faults_of(
    name: str,
    version: str,
    named: Sequence[Requirement],
    chosen: Sequence[ShownWheel],
    usable: Sequence[ShownWheel],
    *,
    may_be_pre: bool,
) -> list[str]:
    pin = f"{name}=={version}"
    problems = [
        f"{pin} does not meet {requirement}"
        for requirement in named
        if not requirement.specifier.contains(version, prereleases=True)
    ]
    is_pinned = any(
        each.operator in {"==", "==="} and "*" not in each.version
        for requirement in named
        for each in requirement.specifier
    )
    if all(wheel.is_yanked for wheel in chosen) and not is_pinned:
        problems.append(f"{pin} is yanked, and no requirement pins it")
    if Version(version).is_prerelease and not may_be_pre:
        is_opened = any(requirement.specifier.prereleases for requirement in named)
        finals = [wheel.version for wheel in usable if not wheel.version.is_prerelease and not wheel.is_yanked]
        if not is_opened and any(all(requirement.specifier.contains(each) for requirement in named) for each in finals):
            problems.append(f"{pin} is a pre-release, though there is a final release and none is asked for")
    return problems


def _applicable(
    roots: Sequence[Requirement], chosen: Mapping[str, Sequence[ShownWheel]], target: Target
) -> list[Requirement]:
    """Return all requirements with matching markers, from the roots and the projects they lead to, with extras."""
    applicable = []
    left = [requirement for requirement in roots if _holds(requirement, target, "")]
    seen: set[tuple[str, str]] = set()
    while left:
        requirement = left.pop()
        applicable.append(requirement)
        name = canonicalize_name(requirement.name)
        for extra in ["", *map(canonicalize_name, requirement.extras)]:
            if (name, extra) not in seen and chosen.get(name):
                seen.add((name, extra))
                left += [each for each in chosen[name][0].requires_dist if _holds(each, target, extra)]
    return applicable


def _holds(requirement: Requirement, target: Target, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({**target.variables, "extra": extra})
