"""Read advisories in OSV format from a zip or a folder of JSON files, and find the ones that affect a version.

Advisories are untrusted input: their size, number and nesting depth are limited. Unreadable records are skipped, and
listed with the reason. The format is described at https://ossf.github.io/osv-schema/.
"""

import io
import os
import stat
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from pypi_assets.distributions.requirements import parsed_version
from pypi_assets.errors import ExpectedError
from pypi_assets.version_order import canonical_version

RECORD_BYTES, TOTAL_BYTES, DIRECTORY_BYTES = 16 * 1024**2, 4 * 1024**3, 16 * 1024**2
MOST_RECORDS, MOST_VERSIONS, MOST_FOLDERS = 300_000, 5_000_000, 10_000
_ECOSYSTEM = "PyPI"
_SUFFIX = ".json"
_PLAIN = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_MOST_SHOWN = 100


class AdvisoriesError(ExpectedError):
    """Advisories that cannot be read at all. The message has the path and the reason."""


class _Event(msgspec.Struct):
    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None
    limit: str | None = None


class _Range(msgspec.Struct):
    type: str
    events: list[_Event] | None = None


class _Package(msgspec.Struct):
    ecosystem: str
    name: str


class _Affected(msgspec.Struct):
    package: _Package | None = None
    versions: list[str] | None = None
    ranges: list[_Range] | None = None


class _Record(msgspec.Struct):
    id: str
    withdrawn: str | None = None
    affected: list[_Affected] | None = None


_decoder = msgspec.json.Decoder(_Record)


@dataclass(frozen=True, slots=True)
class _Ends:
    """The events of one OSV range, sorted by version.

    `is_affected_first` is true if the range includes all versions from the start (`introduced: "0"`). An entry of
    `changes` is (version, whether later versions are affected, whether the change excludes the version itself). With
    `last_affected` 2.0, for example, 2.0 is still affected, so the entry is (2.0, False, True). A version at or above
    all `limits` is never affected.
    """

    is_affected_first: bool
    changes: list[tuple[Version, bool, bool]]
    limits: list[Version]

    def has(self, version: Version) -> bool:
        if self.limits and not any(version < limit for limit in self.limits):
            return False
        is_affected = self.is_affected_first
        for at, affects, is_after in self.changes:
            if version > at if is_after else version >= at:
                is_affected = affects
        return is_affected


@dataclass(frozen=True, slots=True)
class _Advisory:
    """The versions (canonical) and ranges of one project that one advisory affects."""

    id: str
    versions: frozenset[str]
    ranges: list[_Ends]

    def has(self, canonical: str, parsed: Version | None) -> bool:
        return canonical in self.versions or (parsed is not None and any(one.has(parsed) for one in self.ranges))


@dataclass(frozen=True, slots=True)
class Advisories:
    """Advisories about projects of the ecosystem `PyPI`.

    `records` counts the advisories in use, `withdrawn` the withdrawn ones, and `others` the ones about other
    ecosystems. `problems` lists everything that was skipped, as (name, reason).
    """

    records: int
    withdrawn: int
    others: int
    problems: tuple[tuple[str, str], ...]
    _by_project: dict[str, list[_Advisory]] = field(repr=False)

    @property
    def projects(self) -> list[str]:
        """Return the normalized names of all projects with an advisory, sorted."""
        return sorted(self._by_project)

    def affected(self, project: str, version: str) -> list[str]:
        """Return the ids of the advisories that affect a version, sorted.

        An advisory affects a version if its `versions` list it, or if one of its ranges of type `ECOSYSTEM` contains
        it.
        """
        found = self._by_project.get(canonicalize_name(project), ())
        canonical, parsed = _canonical(version), parsed_version(version)
        return sorted({one.id for one in found if one.has(canonical, parsed)})


def read_advisories(path: Path) -> Advisories:
    """Read the advisories of the zip or folder at `path`.

    Raises AdvisoriesError if it cannot be read, has no JSON files, or exceeds a limit.
    """
    reading = _AdvisoryReading()
    try:
        for name, content in _folder_members(path, reading) if path.is_dir() else _zip_members(path, reading):
            reading.add(name, content)
    except OSError as error:
        raise AdvisoriesError(f"{path}: {error.strerror or error}") from error
    except _TooMuchError as error:
        raise AdvisoriesError(f"{path}: {error}") from None
    if not reading.seen:
        raise AdvisoriesError(
            f"{path} has no file that ends in {_SUFFIX}: use OSV's all.zip for PyPI, or the folder that it unpacks to"
        )
    return reading.result()


class _TooMuchError(Exception):
    pass


class _BadRecordError(Exception):
    pass


class _AdvisoryReading:
    """A collection of advisories that grows while they are read. It enforces the limits."""

    def __init__(self) -> None:
        self.seen = 0
        self._problems: list[tuple[str, str]] = []
        self._by_project: defaultdict[str, list[_Advisory]] = defaultdict(list)
        self._records = self._withdrawn = self._others = self._bytes = self._versions = 0

    def problem(self, name: str, reason: str) -> None:
        """Record why `name` is skipped."""
        self._problems.append((name, reason))

    def count(self) -> None:
        """Count one more record file."""
        self.seen += 1
        if self.seen > MOST_RECORDS:
            raise _TooMuchError(f"there are more than {MOST_RECORDS} records")

    def add(self, name: str, content: bytes) -> None:
        self._bytes += len(content)
        if self._bytes > TOTAL_BYTES:
            raise _TooMuchError(f"the records have more than {TOTAL_BYTES} bytes together")
        if len(content) > RECORD_BYTES:
            self.problem(name, f"it has more than {RECORD_BYTES} bytes")
            return
        try:
            record = _decoder.decode(content)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            self.problem(name, f"it is not a valid OSV record: {str(error) or 'it is nested too deeply'}")
            return
        affected = [(one.package.name, one) for one in record.affected or () if one.package and _is_ours(one.package)]
        if not affected:
            self._others += 1
        elif record.withdrawn is not None:
            self._withdrawn += 1
        else:
            self._records += 1
            for project, one in affected:
                self._add_affected(name, record.id, canonicalize_name(project), one)

    def _add_affected(self, name: str, record_id: str, project: str, affected: _Affected) -> None:
        self._versions += len(affected.versions or ()) + sum(len(one.events or ()) for one in affected.ranges or ())
        if self._versions > MOST_VERSIONS:
            raise _TooMuchError(f"the records list more than {MOST_VERSIONS} versions together")
        ranges = []
        for one in affected.ranges or ():
            if one.type == "ECOSYSTEM":
                try:
                    ranges.append(_ends_of(one.events or ()))
                except _BadRecordError as error:
                    self.problem(name, f"a range of {record_id} is skipped: {error}")
        versions = frozenset(map(_canonical, affected.versions or ()))
        self._by_project[project].append(_Advisory(record_id, versions, ranges))

    def result(self) -> Advisories:
        return Advisories(self._records, self._withdrawn, self._others, tuple(self._problems), dict(self._by_project))


def _is_ours(package: _Package) -> bool:
    return package.ecosystem.partition(":")[0] == _ECOSYSTEM


def _ends_of(events: Iterable[_Event]) -> _Ends:
    """Return the events of a range, sorted by version. Events of equal versions keep their order."""
    changes: list[tuple[Version, bool, bool]] = []
    limits = []
    is_affected_first = False
    for event in events:
        if event.introduced == "0":  # before all versions, also before pre-releases of 0
            is_affected_first = True
        elif event.introduced is not None:
            changes.append((_required(event.introduced), True, False))
        if event.fixed is not None:
            changes.append((_required(event.fixed), False, False))
        if event.last_affected is not None:
            changes.append((_required(event.last_affected), False, True))
        if event.limit is not None and event.limit != "*":
            limits.append(_required(event.limit))
    return _Ends(is_affected_first, sorted(changes, key=itemgetter(0)), limits)


def _required(text: str) -> Version:
    parsed = parsed_version(text)
    if parsed is None:
        raise _BadRecordError(f"{text[:_MOST_SHOWN]!r} is not a valid PEP 440 version")
    return parsed


def _canonical(text: str) -> str:
    try:
        return canonical_version(text)
    except ValueError:  # a number in it has too many digits
        return text


class _BoundedFile(io.FileIO):
    """A file that rejects a single read of more than `DIRECTORY_BYTES`.

    zipfile reads the directory of an archive whole, however large it is.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        rest = os.fstat(self.fileno()).st_size - self.tell()
        if min(rest, rest if size is None or size < 0 else size) > DIRECTORY_BYTES:
            raise _TooMuchError(
                f"its zip directory has more than {DIRECTORY_BYTES} bytes: use OSV's all.zip for PyPI only"
            )
        return super().read(size) or b""


def _zip_members(path: Path, reading: _AdvisoryReading) -> Iterator[tuple[str, bytes]]:
    with _BoundedFile(path) as file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise AdvisoriesError(f"{path} is neither a folder nor a readable zip: {error}") from error
        for member in archive.infolist():
            if member.is_dir() or not member.filename.endswith(_SUFFIX):
                continue
            reading.count()
            if member.compress_type not in _PLAIN:
                reading.problem(member.filename, "its compression method is not deflate")
                continue
            try:
                with archive.open(member) as content:
                    read = content.read(RECORD_BYTES + 1)
            except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, NotImplementedError) as error:
                reading.problem(member.filename, f"it cannot be unpacked: {error}")
                continue
            yield member.filename, read


def _folder_members(path: Path, reading: _AdvisoryReading) -> Iterator[tuple[str, bytes]]:
    for folders, (folder, below, files) in enumerate(os.walk(path)):
        if folders >= MOST_FOLDERS:
            raise _TooMuchError(f"it has more than {MOST_FOLDERS} folders")
        below.sort()
        for name in sorted(files):
            if not name.endswith(_SUFFIX):
                continue
            reading.count()
            one = Path(folder) / name
            shown = str(one.relative_to(path))
            try:
                content = _content_of(one)
            except OSError as error:
                reading.problem(shown, f"it cannot be read: {error.strerror}")
                continue
            if content is None:
                reading.problem(shown, "it is not a regular file")
                continue
            yield shown, content


def _content_of(path: Path) -> bytes | None:
    """Return the content, up to one byte more than a record may have. Return None if the file is not a regular file.

    Links are not followed.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(RECORD_BYTES + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
