"""What the page of a project in the Simple API shows, as plain values. How it is rendered does not belong here."""

from dataclasses import dataclass
from typing import NamedTuple


class SimpleFile(NamedTuple):
    """A file of a page. `version` is the text of its release, `url` where the index has it; None: not known.

    `yanked` is as PEP 691 has it: a flag, or the reason. `metadata_sha256` is that of the metadata which are rendered
    of the file, or where `is_rendered` is False of those that the index itself offers; None: there are none.
    `first_seen_at` is when an observed index first showed the file, if no page states its upload.
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
    """The page of `project` (normalized), with its files in any order. `status` is that of the project (PEP 792); None:
    not known.

    `last_serial` is that of the project's last event; None: not known.
    """

    project: str
    status: str | None
    files: tuple[SimpleFile, ...]
    last_serial: int | None = None
