"""The versions of a project from which a resolution chooses, for one environment."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from pypi_assets.distributions.record import DistributionKind
from pypi_assets.locks.environments import Environment
from pypi_assets.resolve.version_sets import Notes, VersionSet

Row = Mapping[str, Any]
"""A live file, as `DepgraphReader.project` answers it."""
_UPPER_BOUNDS = frozenset(("<", "<=", "~="))


@dataclass(frozen=True, slots=True)
class Conditions:
    """What decides which file of a version is taken, apart from what is required of it."""

    environment: Environment
    only_binary: bool = False
    uploaded_before: datetime | None = None

    @property
    def key(self) -> object:
        """What is equal for equal conditions, and can be hashed."""
        one = self.environment
        variables = tuple(sorted(one.variables.items()))
        return one.python, one.platforms, variables, self.only_binary, self.uploaded_before


@dataclass(slots=True)
class Candidate:
    """A version, and the file that an installer would take of it; None where none can be taken, for the `reason`.

    `is_yanked`: only yanked files can be taken.
    """

    version: Version
    text: str
    files: list[Row]
    file: Row | None = None
    is_yanked: bool = False
    reason: str = ""


class Candidates:
    """All versions of a project, ascending: version N is bit N of its sets.

    `fitting` are those of which a file can be taken, yanked or not.
    """

    def __init__(self, project: str, files: Iterable[Row], conditions: Conditions) -> None:
        self.project, self.conditions = project, conditions
        by_version: defaultdict[Version, list[Row]] = defaultdict(list)
        for file in files:
            version = _parsed(file["version"])
            if version is not None:
                by_version[version].append(file)
        self.all = [_candidate(version, by_version[version], conditions) for version in sorted(by_version)]
        self.fitting = _bits(one.file is not None for one in self.all)
        self.yanked = _bits(one.is_yanked for one in self.all)
        self.stable = _bits(not one.version.is_prerelease for one in self.all)
        self._versions = [one.version for one in self.all]
        self._sets: dict[str, VersionSet] = {}
        self._unmatched: list[str] = []
        self.names: dict[int, str] = {}

    @property
    def size(self) -> int:
        """How many files it is about."""
        return 1 + sum(len(one.files) for one in self.all)

    @property
    def known(self) -> int:
        """The bits of all versions."""
        return (1 << len(self.all)) - 1

    def matching(self, specifier: SpecifierSet) -> VersionSet:
        """The versions that a specifier allows, pre-releases like others.

        One that allows none has a bit of its own, so that sets of different ones are disjoint, and none is empty.
        """
        text = str(specifier)
        found = self._sets.get(text)
        if found is None:
            found = self._sets[text] = self._match(specifier, text)
        return found

    def _match(self, specifier: SpecifierSet, text: str) -> VersionSet:
        if not text:
            bits = self.known
        else:
            allowed = set(specifier.filter(self._versions, prereleases=True))
            bits = _bits(version in allowed for version in self._versions)
        if not bits:
            bits = 1 << len(self.all) + len(self._unmatched)
            self._unmatched.append(text)
        shortest = self.names.get(bits)
        if shortest is None or len(text) < len(shortest):
            self.names[bits] = text
        return VersionSet(bits, _notes(specifier))

    def reasons(self, bits: int) -> Counter[str]:
        """Why nothing can be taken of the known versions among `bits`, and of how many."""
        return Counter(one.reason for number, one in enumerate(self.all) if bits >> number & 1 and one.file is None)


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << number for number, flag in enumerate(flags) if flag)


@lru_cache(maxsize=131_072)
def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except (InvalidVersion, ValueError):  # ValueError: a number with thousands of digits
        return None


@lru_cache(maxsize=65_536)
def _notes(specifier: SpecifierSet) -> Notes:
    notes = Notes.NONE
    for one in specifier:
        notes |= Notes.CONDITIONED
        is_wildcard = one.version.endswith(".*")
        if one.operator in _UPPER_BOUNDS or (is_wildcard and one.operator == "=="):
            notes |= Notes.BOUNDED
        if one.operator.startswith("==") and not is_wildcard:
            notes |= Notes.PINNED
        if one.prereleases:
            notes |= Notes.PRERELEASES
    return notes


def _candidate(version: Version, files: list[Row], conditions: Conditions) -> Candidate:
    candidate = Candidate(version, files[0]["version"], files)
    recent = [file for file in files if _is_old_enough(file, conditions.uploaded_before)]
    usable = [file for file in recent if conditions.environment.allows(file["requires_python"])]
    wheels = [file for file in usable if file["kind"] == DistributionKind.WHEEL]
    ranks = conditions.environment.ranks(file["filename"] for file in wheels)
    sdists = [] if conditions.only_binary else [file for file in usable if file["kind"] == DistributionKind.SDIST]
    choice = sorted((file for file in wheels if file["filename"] in ranks), key=lambda file: ranks[file["filename"]])
    choice += sorted(sdists, key=lambda file: _SDIST_SUFFIXES.get(file["filename"][-4:], 1))
    if not choice:
        candidate.reason = _why_not(files, recent, usable, wheels)
        return candidate
    unyanked = [file for file in choice if not file["yanked"]]
    candidate.is_yanked = not unyanked
    candidate.file = (unyanked or choice)[0]
    return candidate


_SDIST_SUFFIXES = {".zip": 2}


def _why_not(files: Sequence[Row], recent: Sequence[Row], usable: Sequence[Row], wheels: Sequence[Row]) -> str:
    if not recent:
        return "too new"
    if not usable:
        wanted = sorted({file["requires_python"] for file in recent if file["requires_python"]})
        return f"for Python {' or '.join(wanted)}"
    if wheels:
        return "without a wheel for this environment"
    kinds = {file["kind"] for file in files}
    return "without a wheel" if DistributionKind.SDIST in kinds else "without a file that installers take"


def _is_old_enough(file: Row, before: datetime | None) -> bool:
    if before is None:
        return True
    if file["uploaded_at"] is None:
        return False
    moment = datetime.fromisoformat(file["uploaded_at"])
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment) < before
