"""The interface between an index and `crawl/`: the methods that each kind of index must have.

`client.py` implements it for an index with a changelog, and `observing/observed_index.py` for an index without one.
`kinds.py` registers the kinds by name. How a crawl uses the interface does not belong here.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol, Self, TypeVar

from pypi_assets.index.file_origins import FileOrigin
from pypi_assets.index.models import (
    BrokenEntry,
    ChangelogRow,
    FetchedBytes,
    ListedProject,
    NotModified,
    ProjectPage,
)
from pypi_assets.index.ranged_files import RangedFile

_T = TypeVar("_T")
Report = Callable[[int, int], None]
"""Receives the number of projects polled so far, and the number to poll in total."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one polling round of an index.

    `looked_at` and `failed` count projects, `events` counts new events, and `waiting` counts the due projects that were
    left for the next round. `messages` are texts for people.
    """

    looked_at: int = 0
    failed: int = 0
    events: int = 0
    waiting: int = 0
    messages: tuple[str, ...] = ()


class FileSource(Protocol):
    """The source of the bytes of files. A kind of index forwards these methods to the client that it is given."""

    def agreed_file_origin(self, urls: Iterable[str]) -> FileOrigin | None:
        """Return the origin that the first pages agree on, by the `urls` of their files; see `file_origins.py`."""

    def trust_file_origin(self, origin: str) -> None:
        """Allow files from `origin` from now on; an empty string allows no further origin."""

    def stream_file(
        self, url: str, consume: Callable[[BinaryIO], _T], *, sha256: str | None, size: int | None, max_bytes: int
    ) -> tuple[_T, FetchedBytes]:
        """Return the result of `consume` for the file at `url`, after the file was checked to its end."""

    def open_ranges(
        self,
        url: str,
        *,
        sha256: str | None,
        size: int,
        max_bytes: int,
        metadata_sha256: str | None,
        has_sidecar: bool,
    ) -> RangedFile:
        """Return the file at `url`, to be read by byte ranges."""


class PackageIndex(FileSource, Protocol):
    """An index as `crawl/` sees it: a last serial, events ordered by serial, projects, their pages and their files.

    All methods can be called by several threads. They retry transient failures, keep to the rate, and raise the errors
    of `index/errors.py`. The event of a serial never changes: once `changelog` has returned an event, it returns the
    same event again.
    """

    @property
    def index_url(self) -> str:
        """The index's address to display, without credentials. A catalog belongs to one such address."""

    @property
    def changelog_url(self) -> str:
        """The source of the events, as displayed in errors."""

    @property
    def is_observed(self) -> bool:
        """True if the serials are a local counter, which starts at 0 with the first observation."""

    def observe(
        self,
        report: Report,
        *,
        everything: bool = False,
        with_list: bool = True,
        only: frozenset[str] | None = None,
    ) -> Observation:
        """Poll an index without serials, to update the state that `last_serial` and the other methods answer from.

        One round polls the projects that are due, or all projects if `everything`. Without `with_list`, only known
        projects are polled. With `only` (normalized names), just these projects are polled, even if they are not due or
        unknown. Indexes with serials do nothing here.
        """

    def last_serial(self) -> int:
        """Return the serial of the last event, or 0 if there are no events."""

    def changelog_page(self, since: int) -> list[ChangelogRow]:
        """Return the events with serials above `since`, ascending, up to the limit of one page."""

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogRow]]:
        """Yield pages of events with serials above `since`, until a page reaches `until` or no events are left."""

    def iter_listing(
        self, *, newer_than: int | None = None
    ) -> AbstractContextManager[tuple[int | None, Iterator[ListedProject | BrokenEntry]]]:
        """Return the last serial (None if unknown) and the projects that exist now, with their serials.

        A caller reads the projects only if the serial is above `newer_than`, so an older list need not be downloaded.
        """

    def project_page(self, project: str) -> ProjectPage | NotModified:
        """Return a project's page with the serial of the project's last event.

        Raises NotOnIndexError if there is no page.
        """

    def close(self) -> None:
        """Close all connections. Call it when no thread uses the index any more."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
