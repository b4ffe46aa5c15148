"""The environments of a resolution, by the names that people use."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from packaging.tags import platform_tags

from pypi_assets.locks.environments import PLATFORMS, Environment, named_environment
from pypi_assets.resolve.questions import ResolveError

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The CPython versions of a lock for several environments. Only versions from the running one on are used."""
UNIVERSAL_PLATFORMS = ("linux-x86_64", "linux-aarch64", "macos-arm64", "windows-x86_64")
_ELSEWHERE = "linux-x86_64"
_RELEASE_OF_SYSTEM = re.compile(r"_\d+_\d+(?=_)", re.ASCII)
MARKER_VARIABLES = ("python_version", "sys_platform", "platform_machine")
"""The marker variables in which environments differ."""


@dataclass(frozen=True, slots=True)
class Target:
    """An environment, with the names of its Python and its platform."""

    python: str
    platform: str
    environment: Environment = field(compare=False)  # it follows from the other two

    def __str__(self) -> str:
        return f"CPython {self.python} on {self.platform}"

    @property
    def variables(self) -> tuple[str, str, str]:
        """Return the values of MARKER_VARIABLES."""
        found = self.environment.variables
        return found["python_version"], found["sys_platform"], found["platform_machine"]

    @property
    def marker(self) -> str:
        """Return the marker that holds only in this environment, as far as markers can express it."""
        parts = zip(MARKER_VARIABLES, self.variables, strict=True)
        return " and ".join(["implementation_name == 'cpython'", *(f"{name} == '{value}'" for name, value in parts)])


def target(python: str | None = None, platform: str | None = None) -> Target:
    """Return the environment with these names. Missing names come from the running Python.

    >>> str(target("3.12", "macos-arm64"))
    'CPython 3.12 on macos-arm64'

    Raises EnvironmentNameError.
    """
    python, platform = python or running_python(), platform or running_platform()
    return Target(python, platform, named_environment(python, platform))


def universal_targets(pythons: Sequence[str] = (), platforms: Sequence[str] = ()) -> tuple[Target, ...]:
    """Return each of the Pythons on each of the platforms, the oldest Python first.

    The defaults are the Pythons from the running one on, and UNIVERSAL_PLATFORMS. Raises EnvironmentNameError, and
    ResolveError if no marker distinguishes two of them.
    """
    named = platforms or UNIVERSAL_PLATFORMS
    found = [target(python, platform) for python in pythons or _pythons() for platform in named]
    found.sort(key=lambda one: one.environment.python or ())
    for variables, count in Counter(one.variables for one in found).items():
        if count > 1:
            first, second, *_ = (one for one in found if one.variables == variables)
            raise ResolveError(f"no marker distinguishes {first} and {second}, so one lock cannot cover both: omit one")
    return tuple(found)


def running_python() -> str:
    """Return the version of the running Python as a CPython version, such as `3.12.4`."""
    return ".".join(map(str, sys.version_info[:3]))


def running_platform() -> str:
    """Return the name of the running platform, or a name of Linux if it has none."""
    kind = _kind(next(platform_tags(), ""))
    return next((name for name, tag in PLATFORMS.items() if "-" in name and _kind(tag) == kind), _ELSEWHERE)


def _kind(tag: str) -> str:
    """Return the system and the machine in a platform tag, without the system's release."""
    return _RELEASE_OF_SYSTEM.sub("", tag)


def _pythons() -> list[str]:
    running_one = sys.version_info[:2]
    newer = [one for one in PYTHONS if tuple(map(int, one.split("."))) > running_one]
    return [".".join(map(str, running_one)), *newer]
