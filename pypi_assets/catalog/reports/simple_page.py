"""The content of a project's page in the Simple API, as plain values. Rendering does not belong here."""

from dataclasses import dataclass
from typing import NamedTuple


class SimpleFile(NamedTuple):
    """A file of a page. `version` is the text of its release; `url` is its address on the index, if known.

    `yanked` is a flag or the reason, as in PEP 691. `metadata_sha256` is the hash of the metadata that are rendered for
    the file; if `is_rendered` is False, of the metadata that the index offers, if any. `first_seen_at` is when an
    observed index first showed the file, if no page states its upload time.
    """

    filename: str
    version: str
    kind: str
    url: str | None
    sha256: str | None
    size: int | None
    requires_python: str | None
    uploaded_at: str | None
    yanked: bool | str
    metadata_sha256: str | None
    is_rendered: bool
    first_seen_at: str | None = None


@dataclass(frozen=True, slots=True)
class SimplePage:
    """The page of `project` (normalized), with its files in any order.

    `status` is the project's status (PEP 792), and `last_serial` the serial of its last event; None if they are
    unknown.
    """

    project: str
    status: str | None
    files: tuple[SimpleFile, ...]
    last_serial: int | None = None
