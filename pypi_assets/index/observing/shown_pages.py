"""The content of pages of an index without serials, and the protocol for reading them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pypi_assets.index.models import BrokenEntry, IndexFile


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators for a conditional request: ETag and Last-Modified (RFC 9110), as received."""

    etag: str | None = None
    last_modified: str | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers of a conditional request, or no headers if nothing is known."""
        known = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in known.items() if value}


NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file as shown on a page, with all its hashes as hexadecimal digits, by the name of the algorithm.

    `has_signature` is the value of `gpg-sig`, or None if the page does not state it.
    """

    file: IndexFile
    hashes: Mapping[str, str] = field(default_factory=dict)
    has_signature: bool | None = None


@dataclass(frozen=True, slots=True)
class ShownPage:
    """The content of a project's page, with the fields of `ProjectPage` but without a serial from the local counter.

    `serial` is set if the index gives a serial after all. The index is then of another kind.
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
    """A project on the list: its display name, and the URL of its page (None if it is below the index's URL)."""

    name: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ShownList:
    """The list of projects."""

    projects: Iterable[ShownProject]
    validators: Validators = NO_VALIDATORS


class PageSource(Protocol):
    """Reads the pages of one kind of index without serials. A result of None means *not modified*.

    The methods can be called by several threads. They raise the errors of `index/errors.py`: NotOnIndexError for a page
    or list that does not exist, TransientError for a failure that may pass, and RefusedError for an answer that is not
    a page of an index.
    """

    def list_of_projects(self, known: Validators) -> ShownList | None:
        """Return all projects of the index. Raises NotOnIndexError if the index has no list."""

    def page(self, project: str, url: str | None, known: Validators) -> ShownPage | None:
        """Return the current page of `project` (normalized). `url` is the URL from the list, if the list has one."""
