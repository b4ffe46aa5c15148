"""Plain values read from an index: events, listed projects, project pages and their files.

How the catalog stores them is defined in `catalog/tables.py`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from packaging.utils import canonicalize_name

from pypi_assets.index.errors import RefusedError


def is_count(value: object) -> TypeGuard[int]:
    """Check whether `value` is a non-negative integer that fits a database's 64-bit column."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


LONGEST_NAME = 512
"""The most characters in a project name, version or filename. Databases cannot index names of any length."""

LONGEST_ACTION = 2_000
"""The most characters in an event's action, which can hold a filename and a Python version, both free text."""


@dataclass(frozen=True, slots=True)
class ChangelogEvent:
    """One row of the changelog: what happened to which project or release, at which serial.

    `name` is the display name, and `timestamp` is in unix seconds, UTC. A later serial can have an earlier timestamp.
    """

    name: str
    version: str | None
    timestamp: int
    action: str
    serial: int


@dataclass(frozen=True, slots=True)
class BrokenEntry:
    """One entry of an answer that breaks the protocol. It is set aside, so that the other entries can still be used.

    `text` is the entry's JSON, cut if it is very long. `name` is the name of its project or file, if it has a usable
    name. For a changelog row, `serial` is the row's serial if it is usable and in order, and `after` is the last usable
    serial before the row.
    """

    problem: str
    text: str
    name: str | None = None
    serial: int | None = None
    after: int | None = None


ChangelogRow = ChangelogEvent | BrokenEntry


def last_usable_serial(rows: Sequence[ChangelogRow]) -> int | None:
    """Return the serial of the last row that has a usable one, or None if no row has."""
    return next((row.serial for row in reversed(rows) if row.serial is not None), None)


@dataclass(frozen=True, slots=True)
class ListedProject:
    """One project of the Simple index. `last_serial` is None if the index does not publish serials."""

    name: str
    last_serial: int | None

    @property
    def normalized(self) -> str:
        return canonicalize_name(self.name)


@dataclass(frozen=True, slots=True)
class ProjectListing:
    """All projects of the Simple index, and the index's last serial at that time."""

    last_serial: int | None
    projects: tuple[ListedProject, ...]


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of a project page (PEP 691, 700, 714). `size` is in bytes, and `uploaded_at` is ISO 8601 in UTC.

    `url` is None if the file's entry is broken: then only the file's presence on the page is known. `generation` counts
    the contents that the index has had under this filename, as far as they were observed. `first_seen_at` is the time
    at which an observed index first showed this content. It is set only if the page has no `uploaded_at`.
    """

    filename: str
    url: str | None
    sha256: str | None
    size: int | None
    uploaded_at: str | None
    requires_python: str | None
    yanked: bool
    yanked_reason: str | None
    core_metadata: bool
    core_metadata_sha256: str | None
    generation: int = 1
    first_seen_at: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """One project's page of the Simple API, as of `last_serial`, the serial of the project's last event.

    `broken` holds the file entries that break the protocol. Broken entries with a usable filename are also in `files`.
    `versions` are the releases with visible files (PEP 700), empty if the index does not list them. `name` is the
    display name, or None if it equals the normalized name.
    """

    project: str
    last_serial: int
    status: str
    files: tuple[IndexFile, ...]
    etag: str | None = None
    broken: tuple[BrokenEntry, ...] = ()
    versions: tuple[str, ...] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True)
class NotModified:
    """The answer to a conditional request: the page with that ETag is current, as of `last_serial` if that is given."""

    last_serial: int | None


@dataclass(frozen=True, slots=True)
class FetchedBytes:
    """The cost of fetching one file: bytes received, requests sent (including redirects and retries), and seconds.

    `sha256` is the hash of the whole file, if all of it was fetched.
    """

    bytes: int
    requests: int
    seconds: float
    sha256: str | None = None


LONGEST_TEXT = 4_000
"""The most characters kept of a broken entry. A changelog row that was cut cannot be read again later."""
_ALWAYS = 10
_ONE_IN = 100


def broken_entry(
    problem: str, entry: object, *, name: object = None, serial: int | None = None, after: int | None = None
) -> BrokenEntry:
    """Return `entry`, a value of an answer, as a BrokenEntry. A `name` that is not text is dropped."""
    usable = name[:LONGEST_NAME] if isinstance(name, str) and name else None
    return BrokenEntry(problem, _text(entry), usable, serial, after)


def _text(entry: object) -> str:
    try:
        return json.dumps(entry, default=str)[:LONGEST_TEXT]
    except (RecursionError, ValueError):  # the entry nests too deep, or holds a number with too many digits to print
        return json.dumps("an entry that nests too deep to be shown")


def require_few(broken: int, good: int, what: str, url: str) -> None:
    """Raise RefusedError if more than ten entries of `what` are broken, plus one for every hundred good entries.

    With more broken entries than that, the server most likely speaks another protocol.
    """
    if broken > _ALWAYS + good // _ONE_IN:
        raise RefusedError(f"{what} breaks the protocol: {broken} of {broken + good} entries are broken", url)
