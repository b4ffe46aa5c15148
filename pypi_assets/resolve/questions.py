"""What is to be resolved: the requirements, the environment, and whose rules hold."""

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
class Control:
    """A choice for some projects (normalized), or for ALL: the pairs of options that pip calls controls.

    The last option that names a project decides, and a name counts before ALL:

    >>> Control().with_yes([":all:"]).with_no(["Demo"]).of("demo")
    False
    """

    yes: frozenset[str] = frozenset()
    no: frozenset[str] = frozenset()

    @classmethod
    def for_all(cls, chosen: bool) -> "Control":
        """Return the control that chooses yes for all projects if `chosen`, else nothing."""
        return cls(frozenset({ALL})) if chosen else cls()

    def of(self, project: str) -> bool | None:
        """Return what is chosen for a project (normalized), None if nothing is."""
        for name in (project, ALL):
            if name in self.yes or name in self.no:
                return name in self.yes
        return None

    def with_yes(self, names: Iterable[str]) -> "Control":
        """Return the control after an option that chooses yes, with its names."""
        return Control(*_controlled(names, self.yes, self.no))

    def with_no(self, names: Iterable[str]) -> "Control":
        """Return the control after an option that chooses no, with its names."""
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
    """What to resolve. `uploaded_before` leaves out files that were uploaded at that moment or later, and those of
    which no time is known.

    `only_binary` leaves out sdists. `formats` chooses for a project: yes for wheels alone, no for sdists alone.
    `prereleases`: yes if they count as other releases do, no if they never do; else they count if nothing else is left.
    `preferred` has a version of some projects (normalized), which is tried before the others where it is allowed.
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
        """What decides which file of a version of a project (normalized) is taken."""
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
        """Those that all lines about a project allow which hold in the environment."""
        found: dict[str, frozenset[str]] = {}
        for one in (*self.requirements, *self.constraints):
            if one.hashes and (one.marker is None or self.environment.holds(str(one.marker)) is not False):
                found[one.project] = found.get(one.project, one.hashes) & one.hashes
        return found


@cached_if_short(maxsize=32_768)
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


_EXTRA, _OTHERWISE = "extra", ""


class ReleaseRequirements:
    """The requirements of a release, in their order. `holds` decides whether one holds with an extra, or with none."""

    def __init__(self, texts: Iterable[str], holds: Callable[[Wanted, str], bool]) -> None:
        self._holds = holds
        self._all: list[Wanted] = []
        self.errors: list[ResolveError] = []
        """Of what is no requirement."""
        for text in texts:
            try:
                self._all.append(parse_wanted(text))
            except ResolveError as error:
                self.errors.append(error)

    @cached_property
    def held(self) -> Sequence[Wanted]:
        """Those that hold without an extra."""
        return [self._all[place] for place in sorted(self._held)]

    def added(self, extra: str) -> list[Wanted]:
        """Those that hold with an extra, and not without."""
        found = (self._all[place] for place in sorted(self._naming(extra) - self._held))
        return [wanted for wanted in found if self._holds(wanted, extra)]

    def held_with(self, extras: Sequence[str]) -> list[Wanted]:
        """Those that hold with one of these extras; without extras, those that hold with none."""
        if not extras:
            return list(self.held)
        found = {place for extra in extras for place in self._naming(extra) if self._holds(self._all[place], extra)}
        found |= self._held.difference(frozenset.intersection(*map(self._naming, extras)))
        return [self._all[place] for place in sorted(found)]

    @cached_property
    def _held(self) -> frozenset[int]:
        return frozenset(place for place, wanted in enumerate(self._all) if self._holds(wanted, ""))

    def _naming(self, extra: str) -> frozenset[int]:
        """The places of those whose markers name the extra, or compare extras in another way than by `==`."""
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
    """The extras that a marker compares with by `==`; _OTHERWISE where it compares extras in another way."""
    found = set()
    waiting: list[Any] = [marker._markers]  # packaging has no public way to look into a marker
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
