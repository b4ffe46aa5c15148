"""What is to be resolved: the requirements, the environment, and whose rules hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property, lru_cache

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from pypi_assets.errors import ExpectedError
from pypi_assets.locks.environments import Environment
from pypi_assets.locks.lock_content import shown
from pypi_assets.resolve.candidates import Conditions

ALL, NONE = ":all:", ":none:"
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
    """A requirement: `text` as it was written, and what it means. `project` is normalized, and so are `extras`.

    `hashes` are the sha256 that files of the project may have; without any, all may be taken.
    """

    text: str
    project: str
    extras: tuple[str, ...]
    specifier: SpecifierSet
    marker: Marker | None
    url: str | None
    hashes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Formats:
    """The projects (normalized, or ALL) of which wheels alone are taken, and those of which sdists alone are."""

    binary: frozenset[str] = frozenset()
    source: frozenset[str] = frozenset()

    def only_binary(self, project: str) -> bool:
        """Whether wheels alone are taken: what names the project counts before what is for all."""
        return project in self.binary or (ALL in self.binary and project not in self.source)

    def only_source(self, project: str) -> bool:
        """Whether sdists alone are taken."""
        return project in self.source or (ALL in self.source and project not in self.binary)

    def with_binary(self, names: Iterable[str]) -> "Formats":
        """After `--only-binary` with these names, as pip has it: a later option counts before an earlier one."""
        return Formats(*_controlled(names, self.binary, self.source))

    def with_source(self, names: Iterable[str]) -> "Formats":
        """After `--no-binary` with these names."""
        source, binary = _controlled(names, self.source, self.binary)
        return Formats(binary, source)


def _controlled(
    names: Iterable[str], these: frozenset[str], others: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    for name in names:
        if name == ALL:
            these, others = frozenset({ALL}), frozenset()
        elif name == NONE:
            these = frozenset()
        else:
            project = frozenset({canonicalize_name(name)})
            these, others = these | project, others - project
    return these, others


@dataclass(frozen=True)
class Question:
    """What to resolve. `uploaded_before` leaves out files that were uploaded at that moment or later, and those of
    which no time is known.

    `only_binary` leaves out sdists, and `formats` the files of a format of some projects. With `prereleases` they count
    as other releases do. `preferred` has a version of some projects (normalized), which is tried before the others
    where it is allowed.
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
    formats: Formats = Formats()

    def conditions_of(self, project: str) -> Conditions:
        """What decides which file of a version of a project (normalized) is taken."""
        return Conditions(
            self.environment,
            self.only_binary or self.formats.only_binary(project),
            self.uploaded_before,
            allows_newer_pythons=self.semantics is Semantics.UV,
            only_source=self.formats.only_source(project),
            hashes=self._hashes.get(project),
        )

    @cached_property
    def _hashes(self) -> Mapping[str, frozenset[str]]:
        """Those that all lines about a project allow which hold in the environment."""
        found: dict[str, frozenset[str]] = {}
        for one in (*self.requirements, *self.constraints):
            if one.hashes and (one.marker is None or self.environment.holds(str(one.marker)) is not False):
                found[one.project] = found.get(one.project, one.hashes) & one.hashes
        return found


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
