"""The root projects of a scope, and the error of a file that they cannot be read from."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pypi_assets.distributions.pyproject import parse_toml
from pypi_assets.errors import ExpectedError

LARGEST_BYTES = 64 * 1024**2
"""The locks of the largest workspaces have a tenth of that."""


class RootsError(ExpectedError):
    """The roots cannot be read; the text names the file, the line or key, and what is accepted."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Root projects: by normalized name, the extras that are required with each.

    `skipped` has a sentence for each requirement that leads to no project of an index.
    """

    extras: dict[str, frozenset[str]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    def __or__(self, other: "Roots") -> "Roots":
        return joined_roots([*self.extras.items(), *other.extras.items()], [*self.skipped, *other.skipped])


def joined_roots(required: Iterable[tuple[str, Iterable[str]]], skipped: Iterable[str] = ()) -> Roots:
    """The roots of (name, extras) pairs, in any spelling and each as often as it comes."""
    extras: dict[str, frozenset[str]] = {}
    for name, wanted in required:
        normalized = canonicalize_name(name)
        extras[normalized] = extras.get(normalized, frozenset()).union(map(canonicalize_name, wanted))
    return Roots(dict(sorted(extras.items())), tuple(dict.fromkeys(skipped)))


def named_roots(names: Iterable[str]) -> Roots:
    """The roots that a person names: `requests`, or with extras `requests[socks]`. Raises RootsError."""
    required = []
    for name in names:
        requirement = parsed_requirement(name, "a project's name")
        if requirement.url or requirement.specifier or requirement.marker:
            raise RootsError(f"{name!r}: pass the name alone, or with extras as in 'requests[socks]'")
        required.append((requirement.name, requirement.extras))
    return joined_roots(required)


def parsed_requirement(text: object, where: str) -> Requirement:
    """The PEP 508 requirement of `text`. Raises RootsError, whose text begins with `where`."""
    if not isinstance(text, str):
        raise RootsError(f"{where}: expected a requirement as a text, not {text!r}")
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise RootsError(f"{where}: {text!r} is no requirement: {str(error).splitlines()[0]}") from None


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises RootsError where it cannot be read, or is larger than any file of its kind."""
    try:
        if (size := path.stat().st_size) > LARGEST_BYTES:
            raise RootsError(f"{path}: has {size:,} bytes, and roots are read from files of at most {LARGEST_BYTES:,}")
        return path.read_bytes()
    except OSError as error:
        raise RootsError(f"{path}: {error.strerror}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises RootsError as `read_bytes` does, and where it is no TOML."""
    try:
        return parse_toml(read_bytes(path).decode("utf-8-sig"), longest=LARGEST_BYTES)
    except ValueError as error:
        raise RootsError(f"{path}: {error}") from None
