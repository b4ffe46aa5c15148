"""What a kind of index must give, so that `crawl/` can follow it: the one interface between the two.

`client.py` has it for an index with a changelog, and `observing/observed_index.py` for one without. `kinds.py` has the
names of the kinds. How a crawl uses it does not belong here.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol, Self, TypeVar

from pypi_assets.index.file_origins import FileOrigin
from pypi_assets.index.files import RangedFile
from pypi_assets.index.models import (
    BrokenEntry,
    ChangelogRow,
    FetchedBytes,
    ListedProject,
    NotModified,
    ProjectPage,
)

_T = TypeVar("_T")
Report = Callable[[int, int], None]
"""Receives how many projects were looked at, and how many are to be."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one round of looking at an index came to.

    `looked_at` and `failed` count projects, `events` what was found new, `waiting` the projects that are due and were
    left to the next round. `messages` are for people.
    """

    looked_at: int = 0
    failed: int = 0
    events: int = 0
    waiting: int = 0
    messages: tuple[str, ...] = ()


class FileSource(Protocol):
    """Where the bytes of files come from. A kind of index takes these methods from the client that it is given."""

    def agreed_file_origin(self, urls: Iterable[str]) -> FileOrigin | None:
        """What the files of the first pages, at `urls`, agree on; see `file_origins.py`."""

    def trust_file_origin(self, origin: str) -> None:
        """From now on files may also come from `origin`; empty for none."""

    def stream_file(
        self, url: str, consume: Callable[[BinaryIO], _T], *, sha256: str | None, size: int | None, max_bytes: int
    ) -> tuple[_T, FetchedBytes]:
        """What `consume` makes of the file at `url`, checked to its end."""

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
        """The file at `url`, to be read by byte ranges."""


class PackageIndex(FileSource, Protocol):
    """An index as `crawl/` sees it: a last serial, events in order of serial, projects, their pages and their files.

    All methods can be called by several threads. They retry what is transient, keep to the rate, and raise the errors
    of `index/errors.py`. A serial never changes its meaning: what `changelog` gave once, it gives again.
    """

    @property
    def index_url(self) -> str:
        """The address that is shown, without credentials. A catalog belongs to one such address."""

    @property
    def changelog_url(self) -> str:
        """Where the events come from, as shown in errors."""

    @property
    def is_observed(self) -> bool:
        """Whether the serials are a counter of our own, that begins at 0 with the first observation."""

    def observe(self, report: Report, *, everything: bool = False, with_list: bool = True) -> Observation:
        """Brings up to date what `last_serial` and the other methods answer from, where the index itself has no
        serials. One round looks at what is due; with `everything` at each project. Without `with_list` it looks at
        projects that are known already. Does nothing for other kinds."""

    def last_serial(self) -> int:
        """The serial of the last event, 0 where there is none."""

    def changelog_page(self, since: int) -> list[ChangelogRow]:
        """The events with serials above `since`, ascending, up to the limit of one page."""

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogRow]]:
        """The pages of events with serials above `since`, up to the page that reaches `until` or the last one."""

    def iter_listing(
        self,
    ) -> AbstractContextManager[tuple[int | None, Iterator[ListedProject | BrokenEntry]]]:
        """The last serial (None: unknown) and the projects that are there now, with their serials."""

    def project_page(self, project: str) -> ProjectPage | NotModified:
        """The page of a project, with the serial of its last event. Raises NotOnIndexError where there is none."""

    def close(self) -> None:
        """Closes what is open; no thread uses it any more."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
