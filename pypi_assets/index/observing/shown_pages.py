"""What the pages of an index without serials show, and the protocol of what reads them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pypi_assets.index.models import BrokenEntry, IndexFile


@dataclass(frozen=True, slots=True)
class Validators:
    """What an answer can be requested by again on condition: RFC 9110's ETag and Last-Modified, as they came."""

    etag: str | None = None
    last_modified: str | None = None

    def headers(self) -> dict[str, str]:
        """The headers of a conditional request; none where nothing is known."""
        known = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in known.items() if value}


NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file as a page shows it, with all its hashes in hexadecimal digits, by the names of the algorithms.

    `has_signature` is what `gpg-sig` claims; None where the page claims nothing.
    """

    file: IndexFile
    hashes: Mapping[str, str] = field(default_factory=dict)
    has_signature: bool | None = None


@dataclass(frozen=True, slots=True)
class ShownPage:
    """What the page of a project shows; the fields are those of `ProjectPage`, without a serial.

    `serial` is one that the index gave all the same: then it is of another kind.
    """

    project: str
    files: tuple[ShownFile, ...] = ()
    name: str | None = None
    status: str = "active"
    versions: tuple[str, ...] = ()
    broken: tuple[BrokenEntry, ...] = ()
    validators: Validators = NO_VALIDATORS
    serial: int | None = None


@dataclass(frozen=True, slots=True)
class ShownProject:
    """A project on the list: its name as displayed, and the address of its page (None: below the index's own)."""

    name: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ShownList:
    """The list of projects."""

    projects: Iterable[ShownProject]
    validators: Validators = NO_VALIDATORS


class PageSource(Protocol):
    """Reads the pages of one kind of index without serials. `None` stands for *not modified since*.

    The methods can be called by several threads. They raise the errors of `index/errors.py`: NotOnIndexError for a page
    or a list that is not there, TransientError for what may work later, RefusedError for an answer that is no such
    page.
    """

    def list_of_projects(self, known: Validators) -> ShownList | None:
        """All projects of the index. Raises NotOnIndexError where the index has no list."""

    def page(self, project: str, url: str | None, known: Validators) -> ShownPage | None:
        """What the page of `project` (normalized) shows now; `url` is the one of the list, if it has any."""
