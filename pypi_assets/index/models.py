"""What an index answers, as plain values: events, listed projects, project pages and their files.

How the catalog stores them is defined in `catalog/tables.py`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from packaging.utils import canonicalize_name

from pypi_assets.index.errors import RefusedError


def is_count(value: object) -> TypeGuard[int]:
    """Whether `value` is a whole number from 0 that a database's 64-bit column can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


LONGEST_NAME = 512
"""The most characters of a project's name, a version or a filename; databases cannot index unbounded names."""

LONGEST_ACTION = 2_000
"""The most characters of an event's action: a filename, and a Python version of free text before it."""


@dataclass(frozen=True, slots=True)
class ChangelogEvent:
    """One row of the changelog: what happened to which project (or release) at which serial.

    `name` is as displayed, `timestamp` is in unix seconds, UTC. Timestamps may run backwards against serials.
    """

    name: str
    version: str | None
    timestamp: int
    action: str
    serial: int


@dataclass(frozen=True, slots=True)
class BrokenEntry:
    """One entry of an answer that breaks the protocol. It is kept aside, so that it does not cost the others.

    `text` is its JSON, cut where it is very long. `name` is that of its project or file, where it has a usable one. A
    row of the changelog has a `serial` if that is usable at its place, and `after`, the usable serial before it.
    """

    problem: str
    text: str
    name: str | None = None
    serial: int | None = None
    after: int | None = None


ChangelogRow = ChangelogEvent | BrokenEntry


def last_usable_serial(rows: Sequence[ChangelogRow]) -> int | None:
    """The serial of the last of these rows that has a usable one; None where none has."""
    return next((row.serial for row in reversed(rows) if row.serial is not None), None)


@dataclass(frozen=True, slots=True)
class ListedProject:
    """One project of the Simple index; `last_serial` is None where the index gives none."""

    name: str
    last_serial: int | None

    @property
    def normalized(self) -> str:
        return canonicalize_name(self.name)


@dataclass(frozen=True, slots=True)
class ProjectListing:
    """All projects of the Simple index, with the index's own last serial at that time."""

    last_serial: int | None
    projects: tuple[ListedProject, ...]


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of a project page (PEP 691, 700, 714). `size` is in bytes; `uploaded_at` is ISO 8601, UTC.

    `url` is None where the file's entry is broken: then it is known that the page shows the file, and nothing else.
    `generation` counts the contents that the index has had under this name, as far as they were observed.
    `first_seen_at` is when an observed index first showed this content, if its pages state no `uploaded_at`.
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
    """One project's page of the Simple API, true at `last_serial`, the serial of the project's last event.

    `broken` are the entries of files that break the protocol. Those with a usable filename are among `files` too.
    `versions` are the texts of the releases with visible files (PEP 700); empty where the index lists none. `name` is
    as displayed; None where the page shows only the normalized one.
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
    """The answer to a conditional request: the page with that ETag is current, at `last_serial` if that is given."""

    last_serial: int | None


@dataclass(frozen=True, slots=True)
class FetchedBytes:
    """The cost of fetching one file: its bytes, the requests sent (with redirects and retries), the time.

    `sha256` is that of all its bytes, where they were fetched.
    """

    bytes: int
    requests: int
    seconds: float
    sha256: str | None = None


LONGEST_TEXT = 4_000
"""The most characters that are kept of an entry. A row of the changelog that is cut cannot be read again later."""
_ALWAYS = 10
_ONE_IN = 100


def broken_entry(
    problem: str, entry: object, *, name: object = None, serial: int | None = None, after: int | None = None
) -> BrokenEntry:
    """`entry`, a value of an answer, to be kept aside. A `name` that is no text is left out."""
    usable = name[:LONGEST_NAME] if isinstance(name, str) and name else None
    return BrokenEntry(problem, _text(entry), usable, serial, after)


def _text(entry: object) -> str:
    try:
        return json.dumps(entry, default=str)[:LONGEST_TEXT]
    except (RecursionError, ValueError):  # it nests too deep, or has a number that is too long to be written
        return json.dumps("an entry that nests too deep to be shown")


def require_few(broken: int, good: int, what: str, url: str) -> None:
    """Raises RefusedError where more than ten entries of `what` are broken, plus one for each hundred good ones: it
    speaks another protocol then."""
    if broken > _ALWAYS + good // _ONE_IN:
        raise RefusedError(f"{what} breaks the protocol: {broken} of {broken + good} entries are broken", url)
