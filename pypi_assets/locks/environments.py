"""Describe the environment that a lock is installed into: which markers hold, and which wheels fit.

The interpreter is CPython. Unknown values decide nothing: a marker that uses one may hold, and any wheel may fit.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from packaging.markers import Marker, UndefinedEnvironmentName
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pypi_assets.errors import ExpectedError
from pypi_assets.locks.lock_content import parsed_marker, shown
from pypi_assets.short_texts import cached_if_short

PLATFORMS = {
    "linux": "manylinux_2_28_x86_64",
    "macos": "macosx_14_0_arm64",
    "windows": "win_amd64",
    "linux-x86_64": "manylinux_2_28_x86_64",
    "linux-aarch64": "manylinux_2_28_aarch64",
    "musllinux-x86_64": "musllinux_1_2_x86_64",
    "musllinux-aarch64": "musllinux_1_2_aarch64",
    "macos-arm64": "macosx_14_0_arm64",
    "macos-x86_64": "macosx_14_0_x86_64",
    "windows-x86_64": "win_amd64",
    "windows-arm64": "win_arm64",
}
"""The wheel tags for names of platforms."""
_PYTHON = re.compile(r"3\.(\d{1,2})(?:\.(\d{1,2}))?", re.ASCII)
_LINUX = re.compile(r"(manylinux|musllinux)_(\d{1,3})_(\d{1,3})_(\w{1,40})", re.ASCII)
_OLD_LINUX = re.compile(r"(manylinux1|manylinux2010|manylinux2014)_(\w{1,40})", re.ASCII)
_PLAIN_LINUX = re.compile(r"linux_(\w{1,40})", re.ASCII)
_MACOS = re.compile(r"macosx_(\d{1,3})_(\d{1,3})_(arm64|x86_64)", re.ASCII)
_WINDOWS = {"win32": "x86", "win_amd64": "AMD64", "win_arm64": "ARM64"}
_OLD_NAMES = {(2, 5): "manylinux1", (2, 12): "manylinux2010", (2, 17): "manylinux2014"}
_OLDEST_MINOR = {"x86_64": 5, "i686": 5}
_ANY = "any"
_ANY_PYTHON = 3, 0, 0
_MISSING = object()
_AFTER_LETTERS = 1
"""The end of the letters of a build in a rank. Builds with more letters come before it, since letters are negative."""
Rank = tuple[int, int, tuple[int, ...]]
"""The order of preference of a wheel: the position of its best tag, then the newest build, such as 10 before 2b, 2a."""


class EnvironmentNameError(ExpectedError):
    """The Python or platform is unknown. The message lists the accepted values."""


@dataclass(frozen=True)
class Environment:
    """An environment. None means unknown.

    `python` is the version of CPython, such as (3, 12, 0). `platforms` are wheel tags, best first. `variables` are the
    marker variables that follow from them.
    """

    python: tuple[int, int, int] | None = None
    platforms: tuple[str, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def python_text(self) -> str:
        """The version of Python as text, such as 3.12.0, or "any" if it is unknown."""
        return _ANY if self.python is None else ".".join(map(str, self.python))

    @cached_property
    def key(self) -> object:
        """A hashable value that is equal for equal environments."""
        return self.python, self.platforms, tuple(sorted(self.variables.items()))

    @property
    def is_any(self) -> bool:
        """Check whether nothing is known about the environment."""
        return self.python is None and self.platforms is None

    def holds(self, marker: str | None) -> bool | None:
        """Return whether a marker holds, or None if that depends on unknown values."""
        return True if marker is None else _holds(_conditions(parsed_marker(marker)), self.variables)

    def with_extra(self, extra: str) -> "Environment":
        """Return the environment with a requested extra, or with none for an empty text."""
        return replace(self, variables={**self.variables, "extra": extra})

    def allows(self, requires_python: str | None) -> bool:
        """Check whether a Requires-Python allows the version of Python. An invalid specifier allows any version."""
        if self.python is None or requires_python is None:
            return True
        return _contains(requires_python, self.variables["python_full_version"])

    def ranks(self, filenames: Iterable[str]) -> dict[str, Rank]:
        """Return the wheels that fit, each with its rank. An installer takes a wheel with the lowest rank.

        Ranks are equal if the environment is not completely known, or if the best tags and the builds are equal.
        """
        ranks = {}
        for filename in filenames:
            parts = filename.split("-", 2)
            if len(parts) < 3 or not _is_wheel_of(parts[0], parts[1]):
                continue
            rank = self._ranks.get(parts[2], _MISSING)
            if rank is _MISSING:
                rank = self._ranks[parts[2]] = self._rank(parts[2])
            if rank is not None:
                ranks[filename] = rank
        return ranks

    @cached_property
    def _ranks(self) -> dict[str, Any]:
        """The cached ranks by the end of the filename. There are far fewer ends than filenames."""
        return {}

    def distance(self, filename: str) -> int:
        """Return 2 if a wheel is for another implementation or version of Python, 1 if only its ABI differs, else 0."""
        *_, tags = parse_wheel_filename(filename)
        interpreters = self._interpreters
        if any((tag.interpreter, tag.abi) in interpreters for tag in tags):
            return 0
        return 1 if not {tag.interpreter for tag in tags}.isdisjoint(name for name, _ in interpreters) else 2

    def _rank(self, name_end: str) -> Rank | None:
        try:
            _, _, build, tags = parse_wheel_filename(f"x-0-{name_end}")
        except InvalidWheelFilename:
            return None
        place = min((place for tag in tags if (place := self._place(tag)) is not None), default=None)
        if place is None:
            return None
        number, text = build or (0, "")
        return place, -number, (*(-ord(letter) for letter in text), _AFTER_LETTERS)

    @property
    def is_whole(self) -> bool:
        """Check whether everything is known, so that an installer takes one file of each version."""
        return self.python is not None and self.platforms is not None

    def _place(self, tag: Tag) -> int | None:
        if self.is_whole:
            return self._places.get(tag)
        if self.python is not None:
            return 0 if (tag.interpreter, tag.abi) in self._interpreters else None
        return 0 if self.platforms is None or tag.platform in {_ANY, *self.platforms} else None

    @cached_property
    def _places(self) -> Mapping[Tag, int]:
        return _places(self.python or _ANY_PYTHON, self.platforms or ())

    @cached_property
    def _interpreters(self) -> set[tuple[str, str]]:
        return {(tag.interpreter, tag.abi) for tag in _tags(self.python or _ANY_PYTHON, ["some_platform"])}


@lru_cache(64)
def _places(python: tuple[int, int, int], platforms: tuple[str, ...]) -> Mapping[Tag, int]:
    """Return the position of each tag, best first, for a Python and a platform. There are a few hundred tags."""
    return {tag: place for place, tag in enumerate(_tags(python, platforms))}


def _tags(python: tuple[int, int, int], platforms: Sequence[str]) -> Iterable[Tag]:
    major, minor, _ = python
    interpreter = f"cp{major}{minor}"
    yield from cpython_tags((major, minor), [interpreter if minor >= 8 else f"{interpreter}m"], platforms)
    yield from compatible_tags((major, minor), interpreter, platforms)


ANY_ENVIRONMENT = Environment()


def named_environment(python: str | None = None, platform: str | None = None) -> Environment:
    """Return the environment for a version of Python, `3.12` or `3.12.4`, and a platform.

    The platform is a name in PLATFORMS, such as `linux` or `macos-x86_64`, or a wheel tag, such as
    `musllinux_1_2_aarch64`. Raise EnvironmentNameError.
    """
    variables: dict[str, str] = {}
    version, platforms = None, None
    if python is not None:
        version = _parse_python(python)
        variables |= _python_variables(version)
    if platform is not None:
        platforms, of_platform = _parse_platform(PLATFORMS.get(platform, platform))
        variables |= of_platform
    return Environment(version, platforms, variables)


def _parse_python(text: str) -> tuple[int, int, int]:
    match = _PYTHON.fullmatch(text)
    if match is None:
        raise EnvironmentNameError(f"{shown(text)} is not a version of Python, such as 3.12 or 3.12.4")
    return 3, int(match[1]), int(match[2] or 0)


def _python_variables(version: tuple[int, int, int]) -> dict[str, str]:
    full = ".".join(map(str, version))
    return {
        "python_version": f"{version[0]}.{version[1]}",
        "python_full_version": full,
        "implementation_version": full,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }


def _parse_platform(tag: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the wheel tags for a platform, best first, and its marker variables."""
    if match := _LINUX.fullmatch(tag):
        return _linux_tags(match[1], int(match[2]), int(match[3]), match[4]), _linux_variables(match[4])
    if match := _OLD_LINUX.fullmatch(tag):
        [(major, minor)] = [glibc for glibc, name in _OLD_NAMES.items() if name == match[1]]
        return _linux_tags("manylinux", major, minor, match[2]), _linux_variables(match[2])
    if match := _PLAIN_LINUX.fullmatch(tag):
        return (tag,), _linux_variables(match[1])
    if match := _MACOS.fullmatch(tag):
        tags = tuple(mac_platforms((int(match[1]), int(match[2])), match[3]))
        return tags, _variables("posix", "darwin", "Darwin", match[3])
    if tag in _WINDOWS:
        return (tag,), _variables("nt", "win32", "Windows", _WINDOWS[tag])
    raise EnvironmentNameError(
        f"{shown(tag)} is not a platform. Use {', '.join(PLATFORMS)}, or a wheel tag such as"
        " manylinux_2_28_x86_64, musllinux_1_2_aarch64, macosx_14_0_arm64 or win_amd64"
    )


def _linux_tags(family: str, major: int, minor: int, machine: str) -> tuple[str, ...]:
    tags = []
    oldest = _OLDEST_MINOR.get(machine, 17) if family == "manylinux" else 0
    for each in range(minor, oldest - 1, -1):
        tags.append(f"{family}_{major}_{each}_{machine}")
        if family == "manylinux" and (major, each) in _OLD_NAMES:
            tags.append(f"{_OLD_NAMES[major, each]}_{machine}")
    return *tags, f"linux_{machine}"


def _linux_variables(machine: str) -> dict[str, str]:
    return _variables("posix", "linux", "Linux", machine)


def _variables(os_name: str, sys_platform: str, system: str, machine: str) -> dict[str, str]:
    return {
        "os_name": os_name,
        "sys_platform": sys_platform,
        "platform_system": system,
        "platform_machine": machine,
    }


@cached_if_short(65_536)
def _contains(requires_python: str, version: str) -> bool:
    try:
        return SpecifierSet(requires_python).contains(version, prereleases=True)
    except ValueError:  # InvalidSpecifier, or a number with thousands of digits
        return True


@cached_if_short(131_072)
def _is_wheel_of(project: str, version: str) -> bool:
    """Check whether the name of a wheel may begin with this project and version."""
    try:
        parse_wheel_filename(f"{project}-{version}-py3-none-any.whl")
    except InvalidWheelFilename:
        return False
    return True


_Conditions = tuple[tuple[tuple[str, Any], ...], ...]
"""Alternatives. Each has parts that must all hold: (variable, comparison), or ("", conditions in brackets)."""


@lru_cache(2_048)  # each can have thousands of characters
def _conditions(marker: Marker) -> _Conditions:
    return _divided(marker._markers)


def _divided(markers: Sequence[Any]) -> _Conditions:
    """Split a marker into conditions.

    packaging has no public way to inspect a marker, so a test compares the result with its own evaluation.
    """
    alternatives: list[list[tuple[str, Any]]] = [[]]
    for part in markers:
        if part == "or":
            alternatives.append([])
        elif isinstance(part, list):
            alternatives[-1].append(("", _divided(part)))
        elif part != "and":
            left, operator, right = part
            variable = left if type(left).__name__ == "Variable" else right
            text = f"{left.serialize()} {operator.serialize()} {right.serialize()}"
            alternatives[-1].append((variable.value, parsed_marker(text)))
    return tuple(map(tuple, alternatives))


def _holds(conditions: _Conditions, variables: Mapping[str, str]) -> bool | None:
    results = [_all(_holds_part(part, variables) for part in parts) for parts in conditions]
    return True if True in results else None if None in results else False


def _all(found: Iterable[bool | None]) -> bool | None:
    values = list(found)
    return False if False in values else None if None in values else True


def _holds_part(part: tuple[str, Any], variables: Mapping[str, str]) -> bool | None:
    variable, comparison = part
    if not variable:
        return _holds(comparison, variables)
    if variable not in variables:
        return None
    try:
        return bool(comparison.evaluate(dict(variables), context="lock_file"))
    except (
        ValueError,
        UndefinedEnvironmentName,
    ):  # such as sys_platform < "x"; installers cannot evaluate it either
        return None
