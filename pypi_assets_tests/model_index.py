"""An index in this process, with many projects, which keeps what it showed at each serial, and which can misbehave.

It stands in for the client of an index: it answers a crawl at once, without HTTP and without bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from random import Random
from typing import Any, BinaryIO

from packaging.utils import canonicalize_name

from pypi_assets.devindex.errors import OperationRefusedError
from pypi_assets.devindex.index_state import IndexState, Operation, OperationKind, ProjectStatus
from pypi_assets.devindex.uploads import StoredFile
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import Limits
from pypi_assets.distributions.reader_pool import FinishedReading, WholeFile
from pypi_assets.distributions.record import DistributionKind, DistributionRecord
from pypi_assets.index.errors import GoneError, TransientError
from pypi_assets.index.models import ChangelogEvent, FetchedBytes, IndexFile, ListedProject, ProjectPage

URL = "https://index.example.org/simple/"
AT = "2026-01-01T00:00:00.000000Z"
Shown = frozenset[tuple[str, bool]]
"""What pages show: (filename, yanked)."""


@dataclass(frozen=True, slots=True)
class _Page:
    """A project's page from `since` on: its files, None where there is no page."""

    since: int
    serial: int
    status: str
    files: tuple[IndexFile, ...] | None


@dataclass
class ModelIndex:
    """The index as it is, as it was at each serial, and the troubles that it makes.

    Before each answer `before_answer` is called. `failing` is how often, of all requests, one fails. `stale` names the
    projects whose pages are older than they should be, `absent` those whose page is missing, each once only, since
    a 404 that is there again at the deadline is believed; `is_cached`: the list of projects may be old,
    `forgets` that what is not shown cannot be downloaded. `fetched` is what was.
    """

    state: IndexState = field(default_factory=IndexState)
    shown: dict[int, Shown] = field(default_factory=lambda: {0: frozenset()})
    random: Random = field(default_factory=lambda: Random(0))
    failing: float = 0.0
    stale: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    were_absent: set[str] = field(default_factory=set)
    is_cached: bool = False
    forgets: bool = False
    before_answer: Callable[[], None] = lambda: None
    page_rows: int = 7
    fetched: list[str] = field(default_factory=list)
    index_url: str = URL
    changelog_url: str = URL.replace("/simple/", "/pypi")
    _pages: dict[str, list[_Page]] = field(default_factory=dict)

    @property
    def serial(self) -> int:
        return self.state.last_serial or 0

    def do(self, kind: str, project: str, version: str | None = None, filename: str | None = None) -> None:
        """Does an operation of devindex; nothing happens where it makes no sense now."""
        file = _stored_file(filename) if kind == "add" and filename is not None else None
        before = self.serial
        try:
            self.state.apply(Operation(OperationKind(kind), AT, project, version, filename, owner="someone", file=file))
        except OperationRefusedError:
            return
        self._remember(project, before)

    def record_event(self, project: str, version: str | None, action: str) -> None:
        """An event that changes nothing, such as those of roles or of former times."""
        known = self.state.project(project)
        if known is None:
            return
        before = self.serial
        known.last_serial = before + 1
        self.state.changelog.append(ChangelogEvent(known.name, version, 1_700_000_000, action, known.last_serial))
        self._remember(project, before)

    def _remember(self, name: str, before: int) -> None:
        """Keeps what the index shows now; before the last event of an operation it showed what it did before."""
        for serial in range(before + 1, self.serial):
            self.shown[serial] = self.shown[before]
        project = self.state.project(name)
        page = _Page(self.serial, 0, "", None)
        if project is not None:
            files = tuple(
                _index_file(file, yanked=release.yanked)
                for release in project.visible_releases()
                for file in release.files.values()
            )
            page = _Page(self.serial, project.last_serial, project.status, files)
        normalized = canonicalize_name(name)
        self._pages.setdefault(normalized, []).append(page)
        shown = {(file.filename, file.yanked) for pages in self._pages.values() for file in pages[-1].files or ()}
        self.shown[self.serial] = frozenset(shown)

    # What a crawl requests

    def last_serial(self) -> int:
        self._answer()
        return self.serial

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogEvent]]:
        while since < until:
            self._answer()
            page = self.state.changelog_since(since, self.page_rows)
            if not page:
                return
            yield page
            since = page[-1].serial

    @contextmanager
    def iter_listing(self) -> Iterator[tuple[int | None, Iterator[ListedProject]]]:
        self._answer()
        serial = max(0, self.serial - self.random.randrange(6)) if self.is_cached else self.serial
        then = [(name, [page for page in pages if page.since <= serial][-1:]) for name, pages in self._pages.items()]
        listed = [
            ListedProject(name, page.serial)
            for name, pages in then
            for page in pages
            if page.files is not None and page.status != ProjectStatus.QUARANTINED
        ]
        yield serial, iter(listed)

    def project_page(self, project: str, *, etag: str | None = None) -> ProjectPage:
        self._answer()
        normalized = canonicalize_name(project)
        pages = self._pages.get(normalized, [])
        url = f"{self.index_url}{normalized}/"
        page = pages[-1] if pages else None
        if normalized in self.stale:
            page = self.random.choice([old for old in pages if old.files is not None] or [page])
        if normalized in self.absent - self.were_absent:
            self.were_absent.add(normalized)
            page = None
        if page is None or page.files is None:
            raise GoneError("HTTP 404", url)
        return ProjectPage(normalized, page.serial, page.status, page.files)

    def stream_file(
        self, url: str, consume: Callable[[BinaryIO], Any], *, sha256: str | None, size: int | None, max_bytes: int
    ) -> tuple[Any, FetchedBytes]:
        self._fetch(url)
        return consume(BytesIO()), FetchedBytes(0, 1, 0.0)

    @contextmanager
    def open_ranges(self, url: str, **_: object) -> Iterator["_Ranges"]:
        self._fetch(url)
        yield _Ranges()

    def _fetch(self, url: str) -> None:
        self._answer()
        if self.forgets and url.rpartition("/")[2] not in {filename for filename, _ in self.shown[self.serial]}:
            raise GoneError("HTTP 404", url)
        self.fetched.append(url)

    def _answer(self) -> None:
        self.before_answer()
        if self.failing and self.random.random() < self.failing:
            raise TransientError("HTTP 503", self.index_url)


@dataclass
class _Ranges:
    fetched: FetchedBytes = field(default_factory=lambda: FetchedBytes(0, 1, 0.0))

    def whole(self) -> BinaryIO:
        return BytesIO()


class ModelReaders:
    """Readers that make up a file's content from its filename."""

    limits = Limits()

    def read_together(self, files: Sequence[WholeFile]) -> list[FinishedReading]:
        return [self.read(None, file.filename, project=file.project) for file in files]

    def read(
        self,
        _source: object,
        filename: str,
        *,
        project: str | None,
        kind: DistributionKind | None = None,
        extract_first: bool = False,
    ) -> FinishedReading:
        parts = parse_filename(filename, project)
        record = DistributionRecord(
            filename,
            parts.kind,
            parts.project,
            parts.version,
            requires_dist=(f"needs-{filename}",),
            modules=(filename,),
        )
        return FinishedReading(record, None)


def _stored_file(filename: str) -> StoredFile:
    digest = filename.encode().hex().ljust(64, "0")[-64:]
    size = 1 if filename.endswith(".whl") else 100_000
    return StoredFile(filename, "sdist", "source", size, digest, digest[:32], digest, None, None, AT)


def _index_file(file: StoredFile, *, yanked: bool) -> IndexFile:
    return IndexFile(
        filename=file.filename,
        url=f"https://index.example.org/packages/{file.filename}",
        sha256=file.sha256,
        size=file.size,
        uploaded_at=file.uploaded_at,
        requires_python=None,
        yanked=yanked,
        yanked_reason=None,
        core_metadata=False,
        core_metadata_sha256=None,
    )
