"""What is to be resolved: the requirements, the environment, and whose rules hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from pypi_assets.errors import ExpectedError
from pypi_assets.locks.environments import Environment
from pypi_assets.locks.lock_content import shown
from pypi_assets.resolve.candidates import Conditions

_LONGEST = 4_000
"""Characters of a requirement: real ones have some hundred, and Python reads no number of 4,300 digits."""


class ResolveError(ExpectedError):
    """A question that cannot be answered; the text names what is wrong, and what is accepted."""


class Semantics(StrEnum):
    """Whose order of preference and whose rules of pre-releases and yanked releases hold."""

    PIP = "pip"
    UV = "uv"


class Unknown(StrEnum):
    """What is done with a file whose requirements are not known, as those of many sdists are not."""

    FAIL = "fail"
    ASSUME_NONE = "assume-none"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requirement: `text` as it was written, and what it means. `project` is normalized, and so are `extras`."""

    text: str
    project: str
    extras: tuple[str, ...]
    specifier: SpecifierSet
    marker: Marker | None
    url: str | None


@dataclass(frozen=True)
class Question:
    """What to resolve. `uploaded_before` leaves out files that were uploaded at that moment or later, and those of
    which no time is known.

    `only_binary` leaves out sdists. With `prereleases` they count as other releases do. `preferred` has a version of
    some projects (normalized), which is tried before the others where it is allowed.
    """

    requirements: tuple[Wanted, ...]
    environment: Environment
    constraints: tuple[Wanted, ...] = ()
    semantics: Semantics = Semantics.PIP
    prereleases: bool = False
    only_binary: bool = False
    uploaded_before: datetime | None = None
    unknown: Unknown = Unknown.FAIL
    preferred: Mapping[str, str] = field(default_factory=dict)

    @property
    def conditions(self) -> Conditions:
        """What decides which file of a version is taken."""
        return Conditions(
            self.environment,
            self.only_binary,
            self.uploaded_before,
            allows_newer_pythons=self.semantics is Semantics.UV,
        )


@lru_cache(maxsize=131_072)
def parse_wanted(text: str) -> Wanted:
    """The requirement that `text` is. Raises ResolveError."""
    if len(text) > _LONGEST:
        raise ResolveError(f"{shown(text)} has {len(text):,} characters, and a requirement at most {_LONGEST:,}")
    try:
        parsed = Requirement(text)
    except (InvalidRequirement, ValueError, RecursionError) as error:  # ValueError: a number with thousands of digits
        reason = str(error).partition("\n")[0]
        raise ResolveError(f"{shown(text)} is no requirement: {reason}") from None
    return Wanted(
        text=text,
        project=canonicalize_name(parsed.name),
        extras=tuple(sorted(map(canonicalize_name, parsed.extras))),
        specifier=parsed.specifier,
        marker=parsed.marker,
        url=parsed.url,
    )
