"""A faulty in-process index of many projects that records what it showed at each serial.

It replaces the client of an index: it answers a crawl immediately, without HTTP and without real files.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields, replace
from io import BytesIO
from random import Random
from typing import Any, BinaryIO

from packaging.utils import canonicalize_name, canonicalize_version

from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.index_state import IndexOperation, IndexProject, IndexState, OperationKind, ProjectStatus
from pypi_assets.devindex.uploads import UploadedFile
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader_pool import FinishedReading, WholeFile
from pypi_assets.distributions.record import DistributionKind, DistributionRecord
from pypi_assets.index.changelog import read_events
from pypi_assets.index.errors import NotOnIndexError, TransientError
from pypi_assets.index.models import (
    ChangelogEvent,
    ChangelogRow,
    FetchedBytes,
    IndexFile,
    ListedProject,
    ProjectPage,
    last_usable_serial,
)
from pypi_assets.index.protocol import Observation, Report
from pypi_assets_tests.model_truth import ShownBySerial, ShownFile, Truth

URL = "https://index.example.org/simple/"
AT = "2026-01-01T00:00:00.000000Z"
REFRESH_S = 86_400.0
"""How long a page may stay unchanged after an event that does not refresh it, in seconds."""
_HAS_VERSIONS = "versions" in {field.name for field in fields(ProjectPage)}
RACING_FILES = ("-cp39-none-any.whl", "-cp310-none-any.whl", "-cp311-none-any.whl", "-cp312-none-any.whl")


@dataclass(frozen=True, slots=True)
class _Page:
    """A project's page from serial `since` on. `files` is None if the page does not exist."""

    since: int
    serial: int
    status: str
    files: tuple[IndexFile, ...] | None
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Listed:
    """A project's entry on the project list from serial `since` on. `serial` is None if the project is not listed."""

    since: int
    name: str
    serial: int | None


@dataclass
class ModelIndex:
    """The current index, its state at each serial, and the faults that it injects.

    Attributes that configure faults:

    - `before_answer` is called before each response.
    - `failing` is the share of requests that fail.
    - `stale` names projects whose pages may be old.
    - `absent` names projects whose page is missing once. A 404 that is repeated at the deadline would be believed.
    - `withdrawn` names projects that are not listed and have no page.
    - `is_cached` means that the project list may be old.
    - `forgets` means that files that are not shown cannot be downloaded.
    - `racing` is the share of pages whose content is newer than their serial.
    - `odd_rows` maps serials to changelog rows that break the protocol.

    Attributes that record what happened:

    - `fetched` has the URLs of downloaded files.
    - `delivered` has the filenames on all current pages that were returned, `delivered_late` those only on stale pages.
    - `hidden_since` maps a file that was uploaded during a quarantine to the serial of that quarantine.
    """

    state: IndexState = field(default_factory=IndexState)
    truth: Truth = field(default_factory=Truth)
    odd_rows: dict[int, list[Any]] = field(default_factory=dict)
    random: Random = field(default_factory=lambda: Random(0))
    failing: float = 0.0
    racing: float = 0.0
    stale: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    were_absent: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    is_cached: bool = False
    forgets: bool = False
    before_answer: Callable[[], None] = lambda: None
    clock: Callable[[], float] = lambda: 0.0
    page_rows: int = 7
    fetched: list[str] = field(default_factory=list)
    delivered: set[str] = field(default_factory=set)
    delivered_late: set[str] = field(default_factory=set)
    hidden_since: dict[str, int] = field(default_factory=dict)
    index_url: str = URL
    changelog_url: str = URL.replace("/simple/", "/pypi")
    _pages: dict[str, list[_Page]] = field(default_factory=dict)
    _raced: dict[str, list[_Page]] = field(default_factory=dict)
    _listed: dict[str, list[_Listed]] = field(default_factory=dict)
    _refreshes: dict[str, float] = field(default_factory=dict)
    _index_files: dict[tuple[str, bool], IndexFile] = field(default_factory=dict)

    @property
    def serial(self) -> int:
        return self.state.last_serial or 0

    @property
    def shown(self) -> ShownBySerial:
        """Return the shown files by serial."""
        return ShownBySerial(self.truth)

    def do(
        self, kind: str, project: str, version: str | None = None, filename: str | None = None, **options: bool
    ) -> bool:
        """Apply a devindex operation. Return False, without any effect, if it is impossible in the current state."""
        if not self._apply(kind, project, version, filename, **options):
            return False
        self._remember(project)
        if kind == "add" and filename is not None and not self._is_shown(filename):
            hiding = [
                row.serial
                for row in self.state.changelog
                if canonicalize_name(row.name) == canonicalize_name(project)
                and row.action.endswith(" quarantined")
                and (row.version is None or canonicalize_version(row.version) == canonicalize_version(version or ""))
            ]
            self.hidden_since[filename] = hiding[-1]
        return True

    def _apply(self, kind: str, project: str, version: str | None, filename: str | None, **options: bool) -> bool:
        file = _stored_file(filename) if kind == "add" and filename is not None else None
        operation = IndexOperation(
            OperationKind(kind), AT, project, version, filename, owner="someone", file=file, **options
        )
        try:
            self.state.apply(operation)
        except OperationRefusedError:
            return False
        return True

    def add_many(self, project: str, version: str, count: int) -> None:
        """Upload `count` files of one release, each with a separate event."""
        normalized = canonicalize_name(project)
        first = len(self.state.files)
        for number in range(first, first + count):
            filename = f"{normalized.replace('-', '_')}-{version}-{number}-py3-none-any.whl"
            if self._apply("add", project, version, filename):
                release = self.state.projects[normalized].find_release(version)
                assert release is not None
                self.truth.note_added(self.serial, normalized, filename, ShownFile(release.yanked, release.version))
        self._remember(project)

    def record_event(self, project: str, version: str | None, action: str, *, refreshes: bool = True) -> None:
        """Record an event that changes no file, such as a change of roles.

        Without `refreshes`, the project's page stays unchanged for a day.
        """
        known = self.state.project(project)
        if known is None:
            return
        known.last_serial = self.serial + 1
        self.state.changelog.append(ChangelogEvent(known.name, version, 1_700_000_000, action, known.last_serial))
        self._remember(project, refreshes=refreshes)

    def record_odd_row(self, project: str, shape: str) -> None:
        """Record an event that changes no file and whose changelog row breaks the protocol."""
        if self.state.project(project) is not None:
            self.record_event(project, None, "an odd row")
            name, _, timestamp, action, serial = astuple(self.state.changelog[-1])
            self.odd_rows[self.serial] = {
                "no name": [None, None, timestamp, action, serial],
                "odd version": [name, 10, timestamp, action, serial],
                "no serial": [name, None, timestamp, action, None],
                "serial as text": [name, None, timestamp, action, str(serial)],
                "short": [name, None],
            }[shape]

    def remove_with_its_user(self, project: str) -> None:
        """Remove a project whose page stays for a day."""
        if self._apply("remove-project", project, None, None):
            self._remember(project, refreshes=False)

    def respell(self, project: str) -> None:
        """Change the display name of the project to `project`, without an event."""
        known = self.state.project(project)
        if known is not None:
            known.name = project
            self._remember(project, refreshes=False, is_event=False)

    def page_serial(self, normalized: str) -> int:
        return self._pages[normalized][-1].serial

    def set_serial(self, normalized: str, serial: int) -> None:
        """Set the serial of the project to `serial` on its page and on the project list, without an event."""
        self._pages[normalized].append(replace(self._pages[normalized][-1], serial=serial))
        self._listed[normalized].append(replace(self._listed[normalized][-1], serial=serial))

    def drift(self, project: str, version: str, filename: str) -> None:
        """Add the file to the page if it was not shown, or remove it if it was, both without an event."""
        normalized = canonicalize_name(project)
        known = self.state.projects.get(normalized)
        release = known.find_release(version) if known else None
        if known is None or release is None or release not in known.visible_releases():
            return
        if filename in release.files:
            del release.files[filename]
            del self.state._releases_by_filename[filename]
        elif filename not in self.state._filenames:
            file = _stored_file(filename)
            release.files[filename] = self.state.files[file.path] = file
            self.state._filenames.add(filename)
            self.state._releases_by_filename[filename] = (normalized, release.version)
        else:
            return
        is_known = any(file.filename in self.delivered for page in self._pages[normalized] for file in page.files or ())
        self.truth.doubt(filename, self._pages[normalized][-1].serial if is_known else 0)
        self._remember(project, is_event=False)

    def _remember(self, name: str, *, refreshes: bool = True, is_event: bool = True) -> None:
        """Record the current pages and list, as shown from the last event of an operation on."""
        normalized = canonicalize_name(name)
        project = self.state.projects.get(normalized)
        files = {
            filename: ShownFile(release.yanked, release.version)
            for release in (project.visible_releases() if project else ())
            for filename in release.files
        }
        self.truth.note(self.serial, normalized, files)
        is_listed = project is not None and project.status is not ProjectStatus.QUARANTINED
        listed = _Listed(self.serial, project.name if project else name, project.last_serial if project else None)
        self._listed.setdefault(normalized, []).append(listed if is_listed else _Listed(self.serial, listed.name, None))
        if refreshes:
            self._refreshes.pop(normalized, None)
            self._refresh(normalized, project, is_event=is_event)
        elif is_event:
            self._refreshes.setdefault(normalized, self.clock() + REFRESH_S)

    def _refresh(self, normalized: str, project: IndexProject | None, *, is_event: bool = True) -> None:
        """Render the page of a project."""
        pages = self._pages.setdefault(normalized, [])
        if project is None:
            pages.append(_Page(self.serial, 0, "", None))
            return
        releases = project.visible_releases()
        shown = [self._index_file(file, release.yanked) for release in releases for file in release.files.values()]
        versions = tuple(release.version for release in releases if release.files)
        serial = project.last_serial if is_event or not pages else pages[-1].serial
        pages.append(_Page(self.serial, serial, project.status, tuple(shown), versions))

    def _index_file(self, file: UploadedFile, yanked: bool) -> IndexFile:
        found = self._index_files.get((file.filename, yanked))
        if found is None:
            found = self._index_files[file.filename, yanked] = _index_file(file, yanked=yanked)
        return found

    # Methods that a crawl calls

    is_observed = False

    def observe(self, report: Report, *, everything: bool = False, with_list: bool = True) -> Observation:
        """Return an empty observation, because this index has serials."""
        return Observation()

    def last_serial(self) -> int:
        self._answer()
        return self.serial

    def changelog(self, since: int, until: int) -> Iterator[Sequence[ChangelogRow]]:
        last: int | None = since
        while last is not None and last < until:
            self._answer()
            events = self.state.changelog_since(last, self.page_rows)
            if not events:
                return
            page: Sequence[ChangelogRow] = events
            if any(event.serial in self.odd_rows for event in events):
                rows = [self.odd_rows.get(event.serial, list(astuple(event))) for event in events]
                page = read_events(rows, last, self.changelog_url)
            yield page
            last = last_usable_serial(page)

    @contextmanager
    def iter_listing(self, *, newer_than: int | None = None) -> Iterator[tuple[int | None, Iterator[ListedProject]]]:
        self._answer()
        serial = max(0, self.serial - self.random.randrange(6)) if self.is_cached else self.serial
        then = [[one for one in entries if one.since <= serial][-1:] for entries in self._listed.values()]
        listed = [
            ListedProject(one.name, one.serial)
            for found in then
            for one in found
            if one.serial is not None and canonicalize_name(one.name) not in self.withdrawn
        ]
        yield serial, iter(listed)

    def project_page(self, project: str, *, etag: str | None = None) -> ProjectPage:
        self._answer()
        normalized = canonicalize_name(project)
        pages = self._pages.get(normalized, [])
        url = f"{self.index_url}{normalized}/"
        page = pages[-1] if pages else None
        if normalized in self.stale:
            old = [one for one in [*pages, *self._raced.get(normalized, ())] if one.files is not None]
            page = self.random.choice(old or [page])
        elif page is not None and self.racing and self.random.random() < self.racing:
            page = self._raced_page(normalized, page)
        if normalized in self.absent - self.were_absent:
            self.were_absent.add(normalized)
            page = None
        if page is None or page.files is None or normalized in self.withdrawn:
            raise NotOnIndexError("HTTP 404", url)
        shown = {file.filename for file in page.files}
        if normalized in self.stale and page is not pages[-1]:
            self.delivered_late |= shown - self.delivered
        else:
            self.delivered |= shown
            self.delivered_late -= shown
        versions: Any = {"versions": page.versions} if _HAS_VERSIONS else {}
        return ProjectPage(normalized, page.serial, page.status, page.files, **versions)

    def _raced_page(self, normalized: str, before: _Page) -> _Page:
        """Return a page with the serial from before, and the files from after, up to three changes."""
        if before.files is None or self._is_spelled_twice_unseen(normalized):
            return before
        for _ in range(self.random.randint(1, 3)):
            self._change_files(normalized)
        after = self._pages[normalized][-1]
        page = _Page(self.serial, before.serial, after.status, after.files, after.versions)
        self._raced.setdefault(normalized, []).append(page)
        return page

    def _is_spelled_twice_unseen(self, normalized: str) -> bool:
        """Check whether the project has two spellings of one version and files that no page has shown.

        Once such files are deleted, no follower can know to which spelling the events refer.
        """
        releases = self.state.projects[normalized].releases if normalized in self.state.projects else {}
        if len({canonicalize_version(version) for version in releases}) == len(releases):
            return False
        return not self.delivered.issuperset(filename for one in releases.values() for filename in one.files)

    def _change_files(self, normalized: str) -> None:
        """Apply one change of the project's files, with an event."""
        project = self.state.projects.get(normalized)
        if project is None or not project.releases:
            return
        version = self.random.choice(sorted(project.releases))
        kinds = ("add", "add", "remove-file", "remove-file", "remove-release", "yank", "unyank", "quarantine-release")
        kind = self.random.choice(kinds)
        filename = None
        if kind == "add":
            filename = f"{normalized.replace('-', '_')}-{version}{self.random.choice(RACING_FILES)}"
        elif kind == "remove-file":
            filename = self.random.choice([None, *sorted(project.releases[version].files)])
        if filename is not None or kind not in {"add", "remove-file"}:
            self.do(kind, project.name, version, filename)

    def stream_file(
        self, url: str, consume: Callable[[BinaryIO], Any], *, sha256: str | None, size: int | None, max_bytes: int
    ) -> tuple[Any, FetchedBytes]:
        self._fetch(url)
        return consume(BytesIO()), FetchedBytes(0, 1, 0.0)

    @contextmanager
    def open_ranges(self, url: str, **_: object) -> Iterator["EmptyRanges"]:
        self._fetch(url)
        yield EmptyRanges()

    def _fetch(self, url: str) -> None:
        self._answer()
        if self.forgets and not self._is_shown(url.rpartition("/")[2]):
            raise NotOnIndexError("HTTP 404", url)
        self.fetched.append(url)

    def _is_shown(self, filename: str) -> bool:
        place = self.state._releases_by_filename.get(filename)
        return place is not None and filename in self.truth.of_project(place[0])

    def _answer(self) -> None:
        self.before_answer()
        now = self.clock()
        for normalized in [name for name, due_at in self._refreshes.items() if due_at <= now]:
            del self._refreshes[normalized]
            self._refresh(normalized, self.state.projects.get(normalized))
        if self.failing and self.random.random() < self.failing:
            raise TransientError("HTTP 503", self.index_url)


@dataclass
class EmptyRanges:
    """A file opened for range requests. It has no bytes, because readers invent its content."""

    fetched: FetchedBytes = field(default_factory=lambda: FetchedBytes(0, 1, 0.0))

    def whole(self) -> BinaryIO:
        return BytesIO()


class ModelReaders:
    """Readers that derive a file's content from its filename."""

    limits = ReadLimits()

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


def _stored_file(filename: str) -> UploadedFile:
    digest = filename.encode().hex().ljust(64, "0")[-64:]
    size = 1 if filename.endswith(".whl") else 100_000
    return UploadedFile(filename, "sdist", "source", size, digest, digest[:32], digest, None, None, AT)


def _index_file(file: UploadedFile, *, yanked: bool) -> IndexFile:
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
