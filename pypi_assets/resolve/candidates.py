"""The versions of a project that a resolution can choose, for one environment."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, Protocol

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from pypi_assets.distributions.filenames import SDIST_SUFFIXES
from pypi_assets.distributions.installability import action_of
from pypi_assets.distributions.record import SKIPS, DistributionKind
from pypi_assets.distributions.served_metadata import own_requirements
from pypi_assets.locks.environments import Environment
from pypi_assets.resolve.positions import Positions
from pypi_assets.resolve.version_sets import Notes, VersionSet
from pypi_assets.short_texts import cached_if_short

_BINARY_KINDS: frozenset[str] = frozenset({DistributionKind.WHEEL})
_KINDS: frozenset[str] = _BINARY_KINDS | {DistributionKind.SDIST}
"""The kinds of files that installers accept."""
_SUFFIXES_OF_PIP = tuple(suffix for suffix in SDIST_SUFFIXES if suffix != ".tar.z")
_SUFFIXES_OF_UV = (".tar.gz", ".zip")
_PATCHES = 30
"""No minor version of Python has had as many patch releases."""
_UPPER_BOUNDS = frozenset(("<", "<=", "~="))
TOO_NEW = "too new"
"""The reason if all files of a version were uploaded too late."""
_FILENAME = itemgetter("filename")
Row = Mapping[str, Any]
"""A live file, as `DepgraphReader.project` returns it."""


class Releases(Protocol):
    """The releases of a project."""

    @property
    def names(self) -> Sequence[str]:
        """The versions of the releases. Some may have no live files."""
        ...

    def files(self, name: str) -> Iterable[Row]:
        """Return the live files of a release."""
        ...


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions on the files of a version that are independent of the requirements.

    - `as_uv` follows uv's rules: only the lower bound of Requires-Python counts, and `===1.0.0` accepts 1.0, because uv
      compares versions instead of texts.
    - `only_source` excludes wheels, `only_binary` excludes sdists, and `only_final` excludes pre-releases.
    - `hashes` excludes files without one of these SHA-256 hashes. None: all hashes are accepted.
    - `uploaded_before` excludes files that were uploaded at that moment or later.
    """

    environment: Environment
    only_binary: bool = False
    uploaded_before: datetime | None = None
    as_uv: bool = False
    only_source: bool = False
    only_final: bool = False
    hashes: frozenset[str] | None = None

    def allow_python(self, requires_python: str | None) -> bool:
        """Check whether the environment's Python can use a file with this Requires-Python."""
        if self.environment.allows(requires_python):
            return True
        python = self.environment.python
        return self.as_uv and python is not None and _allows_earlier(requires_python or "", python)

    @property
    def key(self) -> object:
        """Return a hashable value that is equal for equal conditions."""
        files = self.only_binary, self.only_source, self.only_final, self.hashes, self.uploaded_before
        return self.environment.key, self.as_uv, files


@dataclass(slots=True)
class Candidate:
    """A version with the file that an installer would choose, or None with the `reason` if it cannot choose any.

    `is_yanked` means that only yanked files can be chosen. `files` is empty if the version has no live files.
    """

    version: Version
    text: str
    files: list[Row]
    file: Row | None = None
    is_yanked: bool = False
    reason: str = ""


class Candidates:
    """All versions of a project in ascending order. Version N is bit N of sets.

    The files of a version are read on first access. `stable` has the bits of all versions that are not pre-releases.
    """

    def __init__(self, project: str, releases: Releases, positions: Positions, conditions: Conditions) -> None:
        self.project, self.releases = project, releases
        self._positions, self._conditions = positions, conditions
        self.count, self.known, self.stable = positions.count, positions.known, positions.stable
        self._read: dict[int, Candidate] = {}
        self._sets: dict[str, VersionSet] = {}
        self._unmatched: list[str] = []
        self.names: dict[int, str] = {}

    def __getitem__(self, number: int) -> Candidate:
        found = self._read.get(number)
        if found is None:
            files = [file for name in self._positions.names[number] for file in self.releases.files(name)]
            found = self._read[number] = _candidate(self._positions.version(number), files, self._conditions)
        return found

    def is_known(self, number: int) -> bool:
        """Check whether a version was accessed before."""
        return number in self._read

    def number_of(self, version: str) -> int | None:
        """Return the number of a version, in any spelling, or None if the project does not have it."""
        return self._positions.number_of(version)

    def spellings(self, number: int) -> Sequence[str]:
        """Return the names of the releases that have this version."""
        return self._positions.names[number]

    def newest_first(self, bits: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the known versions among `bits` that have a file to choose, newest first, with their numbers."""
        return ((number, candidate) for number, candidate in self.live(bits) if candidate.file is not None)

    def live(self, bits: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the known versions among `bits` that have files, newest first, with their numbers."""
        left = bits & self.known
        while left:
            number = left.bit_length() - 1
            left ^= 1 << number
            candidate = self[number]
            if candidate.files:
                yield number, candidate

    def yanked(self, bits: int) -> int:
        """Return the versions among `bits` that have only yanked files to choose."""
        return sum(1 << number for number, candidate in self.newest_first(bits) if candidate.is_yanked)

    @cached_property
    def fitting(self) -> int:
        """Return the bits of all versions that have a file to choose."""
        return sum(1 << number for number, _ in self.newest_first(self.known))

    def matching(self, specifier: SpecifierSet) -> VersionSet:
        """Return the versions that a specifier allows, pre-releases included.

        If it allows none, the set has one bit beyond all versions. So no set is empty, and different specifiers that
        allow nothing have disjoint sets.
        """
        text = str(specifier)
        found = self._sets.get(text)
        if found is None:
            found = self._sets[text] = self._match(specifier, text)
        return found

    def allowed(self, specifier: SpecifierSet) -> int:
        """Return the bits of the versions that a specifier allows, pre-releases included."""
        return self._positions.allowed(specifier, exact_as_text=not self._conditions.as_uv)

    def _match(self, specifier: SpecifierSet, text: str) -> VersionSet:
        bits = self.allowed(specifier)
        if not bits:
            bits = 1 << self.count + len(self._unmatched)
            self._unmatched.append(text)
        shortest = self.names.get(bits)
        if shortest is None or len(text) < len(shortest):
            self.names[bits] = text
        return VersionSet(bits, notes_of(specifier))

    def named_alone(self, specifier: SpecifierSet) -> int:
        """Return the bit of the version that a specifier with a single comparison names exactly."""
        [one, *others] = specifier
        number = None if others else self.number_of(one.version)
        return 0 if number is None else 1 << number

    def reasons(self, bits: int) -> Counter[str]:
        """Count the reasons why the known versions among `bits` have no file to choose."""
        return Counter(one.reason for _, one in self.live(bits) if one.file is None)


@cached_if_short(maxsize=4_096)
def _allows_earlier(requires_python: str, python: tuple[int, int, int]) -> bool:
    """Check whether the specifier allows any Python version before `python`."""
    major, minor, micro = python
    earlier = [f"{major}.{one}.{patch}" for one in range(minor) for patch in range(_PATCHES)]
    earlier += [f"{major}.{minor}.{patch}" for patch in range(micro)]
    return any(map(SpecifierSet(requires_python).contains, earlier))


@lru_cache(maxsize=2_048)  # each can have thousands of characters
def notes_of(specifier: SpecifierSet) -> int:
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
    if conditions.as_uv:
        files = [_as_uv_reads(file) for file in files]
    candidate = Candidate(version, files[0]["version"] if files else str(version), files)
    if conditions.only_final and version.is_prerelease:
        candidate.reason = "not final" if files else ""
        return candidate
    choice = installable_files(files, conditions)
    if not choice:
        candidate.reason = _why_not(files, conditions)
        return candidate
    unyanked = [file for file in choice if not file["yanked"]]
    candidate.is_yanked = not unyanked
    candidate.file = (unyanked or choice)[0]
    if conditions.as_uv and candidate.file["kind"] == DistributionKind.SDIST:
        candidate.file = _resolved_by_wheel(candidate.file, files, conditions)
    return candidate


def _resolved_by_wheel(sdist: Row, files: Iterable[Row], conditions: Conditions) -> Row:
    """Return an sdist with the requirements of a wheel that cannot be chosen, if there is one.

    uv assumes that all files of a version have the same requirements, and a wheel is read faster than an sdist. It
    takes the wheel that is closest to fitting, the first of equally close ones, but not if a wheel is too new.
    """
    wheels = [
        file for file in files if file["kind"] == DistributionKind.WHEEL and refusal(file, conditions.as_uv) != SKIPS
    ]
    if not wheels or not all(_is_old_enough(wheel, conditions.uploaded_before) for wheel in wheels):
        return sdist

    def distance(wheel: Row) -> tuple[bool, bool, int, str]:
        is_yanked = wheel["yanked"] and not sdist["yanked"]
        filename = wheel["filename"]
        if conditions.only_source:
            return False, False, 0, filename
        return (
            is_yanked,
            not conditions.allow_python(wheel["requires_python"]),
            conditions.environment.distance(filename),
            filename,
        )

    closest = min(wheels, key=distance)
    if closest["requires_dist"] is None:
        return sdist
    return {**sdist, "requires_dist": closest["requires_dist"], "refusals": closest.get("refusals")}


def _as_uv_reads(file: Row) -> Row:
    """Return a file with the metadata by which uv resolves it: an sdist's own, also if the index serves others."""
    if file["kind"] != DistributionKind.SDIST or not file.get("installed_metadata"):
        return file
    requires_python, requires_dist = own_requirements(file["installed_metadata"])
    pythons = dict.fromkeys(filter(None, [file["requires_python"], requires_python]))
    return {**file, "requires_python": ",".join(pythons) or None, "requires_dist": requires_dist}


def installable_files(files: Iterable[Row], conditions: Conditions) -> list[Row]:
    """Return the files of a version that an installer can choose, yanked or not, the best first.

    An index lists the files of equal versions by filename. Among equally good files, pip takes the last, uv the first.
    """
    usable = [file for file in allowed_files(files, conditions) if conditions.allow_python(file["requires_python"])]
    usable.sort(key=_FILENAME, reverse=not conditions.as_uv)
    wheels = [file for file in usable if file["kind"] == DistributionKind.WHEEL]
    ranks = conditions.environment.ranks(map(_FILENAME, wheels))
    choice = sorted((file for file in wheels if file["filename"] in ranks), key=lambda file: ranks[file["filename"]])
    return choice + [file for file in usable if file["kind"] == DistributionKind.SDIST]


def allowed_files(files: Iterable[Row], conditions: Conditions) -> list[Row]:
    """Return the wheels and sdists of a version that meet all conditions except the environment."""
    kinds = _KINDS
    if conditions.only_binary:
        kinds &= _BINARY_KINDS
    if conditions.only_source:
        kinds -= _BINARY_KINDS
    return [
        file
        for file in files
        if file["kind"] in kinds
        and _is_old_enough(file, conditions.uploaded_before)
        and _has_hash(file, conditions.hashes)
        and refusal(file, conditions.as_uv) != SKIPS
    ]


def refusal(file: Row, as_uv: bool) -> str | None:
    """Return what uv, else pip, does with a file that it does not accept, SKIPS or FAILS, or None if it accepts it."""
    suffixes = _SUFFIXES_OF_UV if as_uv else _SUFFIXES_OF_PIP
    if file["kind"] == DistributionKind.SDIST and not file["filename"].endswith(suffixes):
        return SKIPS
    return action_of(file.get("refusals"), "uv" if as_uv else "pip")


def _why_not(files: Sequence[Row], conditions: Conditions) -> str:
    recent = [file for file in files if _is_old_enough(file, conditions.uploaded_before)]
    usable = [file for file in recent if conditions.allow_python(file["requires_python"])]
    if not recent:
        return TOO_NEW
    if not usable:
        wanted = sorted({file["requires_python"] for file in recent if file["requires_python"]})
        return f"for Python {' or '.join(wanted)}"
    if not any(_has_hash(file, conditions.hashes) for file in usable):
        return "without a file of a required hash"
    if all(refusal(file, conditions.as_uv) == SKIPS for file in usable):
        return "skipped by the installer for the names or metadata of its files"
    if conditions.only_source:
        return "without an sdist"
    if any(file["kind"] == DistributionKind.WHEEL for file in usable):
        return "without a wheel for this environment"
    kinds = {file["kind"] for file in files}
    return "without a wheel" if DistributionKind.SDIST in kinds else "without a file that installers take"


def _has_hash(file: Row, hashes: frozenset[str] | None) -> bool:
    return hashes is None or file["sha256"] in hashes


def _is_old_enough(file: Row, before: datetime | None) -> bool:
    if before is None:
        return True
    since = file["uploaded_at"] or file.get("first_seen_at")
    if since is None:
        return False
    moment = datetime.fromisoformat(since)
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment) < before
