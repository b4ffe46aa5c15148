"""The question of a resolution: requirements, environment, and the installer's rules to follow."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from pypi_assets.errors import ExpectedError
from pypi_assets.locks.environments import Environment
from pypi_assets.locks.lock_content import shown
from pypi_assets.resolve.candidates import Conditions
from pypi_assets.short_texts import cached_if_short

ALL, NONE = ":all:", ":none:"
_LONGEST = 4_000
"""In characters. Real requirements have some hundred, and Python cannot convert numbers with 4,300 digits."""


class ResolveError(ExpectedError):
    """A question that cannot be answered. The message has the invalid part and the accepted form."""


class Semantics(StrEnum):
    """The installers whose preferences and rules for pre-releases and yanked releases can be followed."""

    PIP = "pip"
    UV = "uv"


class Unknown(StrEnum):
    """The treatment of files with unknown requirements, as many sdists have."""

    FAIL = "fail"
    ASSUME_NONE = "assume-none"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requirement: its `text` as written, and its parsed parts. `project` and `extras` are normalized.

    `hashes` are the SHA-256 hashes that files of the project may have. If it is empty, all files are allowed.
    """

    text: str
    project: str
    extras: tuple[str, ...]
    specifier: SpecifierSet
    marker: Marker | None
    url: str | None
    hashes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Control:
    """A choice for some projects (normalized) or for ALL. It models pairs of options, such as pip's `--no-binary`.

    The last option that names a project decides, and a name takes precedence over ALL:

    >>> Control().with_yes([":all:"]).with_no(["Demo"]).of("demo")
    False
    """

    yes: frozenset[str] = frozenset()
    no: frozenset[str] = frozenset()

    @classmethod
    def for_all(cls, chosen: bool) -> "Control":
        """Return a control that chooses yes for all projects if `chosen`, else nothing."""
        return cls(frozenset({ALL})) if chosen else cls()

    def of(self, project: str) -> bool | None:
        """Return the choice for a project (normalized), or None if there is none."""
        for name in (project, ALL):
            if name in self.yes or name in self.no:
                return name in self.yes
        return None

    def with_yes(self, names: Iterable[str]) -> "Control":
        """Return the control after an option that chooses yes for these names."""
        return Control(*_controlled(names, self.yes, self.no))

    def with_no(self, names: Iterable[str]) -> "Control":
        """Return the control after an option that chooses no for these names."""
        no, yes = _controlled(names, self.no, self.yes)
        return Control(yes, no)


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
class ResolutionQuestion:
    """A question to resolve.

    - `uploaded_before` excludes files that were uploaded at that moment or later, and files with an unknown time.
    - `only_binary` excludes sdists. `formats` chooses for a project: yes for only wheels, no for only sdists.
    - `prereleases` chooses for a project: yes to treat pre-releases like other releases, no to exclude them. Without a
      choice, they count if nothing else is left.
    - `preferred` has versions by project (normalized) that are tried first if they are allowed.
    """

    requirements: tuple[Wanted, ...]
    environment: Environment
    constraints: tuple[Wanted, ...] = ()
    semantics: Semantics = Semantics.PIP
    prereleases: Control = Control()
    only_binary: bool = False
    uploaded_before: datetime | None = None
    unknown: Unknown = Unknown.FAIL
    preferred: Mapping[str, str] = field(default_factory=dict)
    formats: Control = Control()

    def conditions_of(self, project: str) -> Conditions:
        """Return the conditions on files of a project (normalized)."""
        wheels = self.formats.of(project)
        return Conditions(
            self.environment,
            self.only_binary or wheels is True,
            self.uploaded_before,
            as_uv=self.semantics is Semantics.UV,
            only_source=wheels is False,
            only_final=self.prereleases.of(project) is False,
            hashes=self._hashes.get(project),
        )

    @cached_property
    def _hashes(self) -> Mapping[str, frozenset[str]]:
        """Return the hashes that all lines about a project allow, by project. Only lines that hold here count."""
        found: dict[str, frozenset[str]] = {}
        for one in (*self.requirements, *self.constraints):
            if one.hashes and (one.marker is None or self.environment.holds(str(one.marker)) is not False):
                found[one.project] = found.get(one.project, one.hashes) & one.hashes
        return found


@cached_if_short(maxsize=32_768)
def parse_wanted(text: str) -> Wanted:
    """Parse a requirement. Raises ResolveError."""
    if len(text) > _LONGEST:
        raise ResolveError(f"{shown(text)} has {len(text):,} characters, but at most {_LONGEST:,} are accepted")
    try:
        parsed = Requirement(text)
    except (InvalidRequirement, ValueError, RecursionError) as error:  # ValueError: a number with thousands of digits
        reason = str(error).partition("\n")[0]
        raise ResolveError(f"{shown(text)} is not a valid requirement: {reason}") from None
    return Wanted(
        text=text,
        project=canonicalize_name(parsed.name),
        extras=tuple(sorted(map(canonicalize_name, parsed.extras))),
        specifier=parsed.specifier,
        marker=parsed.marker,
        url=parsed.url,
    )


_EXTRA, _OTHERWISE = "extra", ""


class ReleaseRequirements:
    """The requirements of a release, in order. `holds` checks a requirement with an extra, or with none ("")."""

    def __init__(self, texts: Iterable[str], holds: Callable[[Wanted, str], bool]) -> None:
        self._holds = holds
        self._all: list[Wanted] = []
        self.errors: list[ResolveError] = []
        """One error for each invalid requirement."""
        for text in texts:
            try:
                self._all.append(parse_wanted(text))
            except ResolveError as error:
                self.errors.append(error)

    @cached_property
    def held(self) -> Sequence[Wanted]:
        """Return the requirements that hold without an extra."""
        return [self._all[place] for place in sorted(self._held)]

    def added(self, extra: str) -> list[Wanted]:
        """Return the requirements that hold only with this extra."""
        found = (self._all[place] for place in sorted(self._naming(extra) - self._held))
        return [wanted for wanted in found if self._holds(wanted, extra)]

    def held_with(self, extras: Sequence[str]) -> list[Wanted]:
        """Return the requirements that hold with one of these extras. Without extras, return `held`."""
        if not extras:
            return list(self.held)
        found = {place for extra in extras for place in self._naming(extra) if self._holds(self._all[place], extra)}
        found |= self._held.difference(frozenset.intersection(*map(self._naming, extras)))
        return [self._all[place] for place in sorted(found)]

    @cached_property
    def _held(self) -> frozenset[int]:
        return frozenset(place for place, wanted in enumerate(self._all) if self._holds(wanted, ""))

    def _naming(self, extra: str) -> frozenset[int]:
        """Return the places of requirements whose markers name the extra, or compare extras other than by `==`."""
        return self._places.get(extra, self._places[_OTHERWISE])

    @cached_property
    def _places(self) -> Mapping[str, frozenset[int]]:
        named: defaultdict[str, list[int]] = defaultdict(list)
        for place, wanted in enumerate(self._all):
            for name in () if wanted.marker is None else _named_extras(wanted.marker):
                named[name].append(place)
        otherwise = frozenset(named.pop(_OTHERWISE, ()))
        return {_OTHERWISE: otherwise} | {name: otherwise.union(places) for name, places in named.items()}


@lru_cache(maxsize=2_048)  # each can have thousands of characters
def _named_extras(marker: Marker) -> frozenset[str]:
    """Return the extras that a marker compares by `==`, and _OTHERWISE if it compares extras in another way."""
    found = set()
    waiting: list[Any] = [marker._markers]  # packaging has no public way to inspect a marker
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, tuple):
            left, operator, right = part
            variable, value = (left, right) if type(left).__name__ == "Variable" else (right, left)
            if variable.value == _EXTRA:
                found.add(canonicalize_name(value.value) if operator.value == "==" else _OTHERWISE)
    return frozenset(found)
