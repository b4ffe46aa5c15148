"""Which files of a project were live and yanked, and from which serial to which.

A pure function of the events and pages that are stored of one project. It computes each project from scratch and never
patches, so the order in which events and pages were stored cannot matter. Nothing here touches the database.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.utils import canonicalize_version

from pypi_assets.index.actions import Action, FileChange, file_change
from pypi_assets.index.models import ChangelogEvent

UNEXPLAINED = "unexplained"
LISTED = "listed"
BASELINE = "baseline"


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """Holds from the serial `start` up to, and not including, `end`. None: it still holds."""

    start: int
    end: int | None

    def __contains__(self, serial: int) -> bool:
        return self.start <= serial and (self.end is None or serial < self.end)


@dataclass(frozen=True, slots=True)
class SeenPage:
    """What a page showed at `serial`: for each filename, whether it was yanked. A true 404 has no files."""

    serial: int
    yanked: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to a file at a serial, and its cause."""

    serial: int
    cause: str


@dataclass(frozen=True, slots=True)
class FileHistory:
    """When one file was live and yanked. `version` is the release that its add event names, else that of its
    filename."""

    filename: str
    version: str
    live: tuple[Interval, ...]
    yanked: tuple[Interval, ...]
    changes: tuple[Change, ...]

    def is_live(self, serial: int) -> bool:
        """Whether the file was live at `serial`."""
        return any(serial in interval for interval in self.live)


@dataclass(slots=True)
class _Flag:
    """One flag of one file over time."""

    intervals: list[Interval] = field(default_factory=list)
    since: int | None = None

    def set(self, value: bool, serial: int) -> bool:
        """Sets the flag as of `serial`. Returns whether that changed it."""
        if value == (self.since is not None):
            return False
        if value:
            self.since = serial
            return True
        if self.since != serial:  # what began and ended at one serial was never seen
            self.intervals.append(Interval(self.since or 0, serial))
        self.since = None
        return True

    def all(self) -> tuple[Interval, ...]:
        still = [] if self.since is None else [Interval(self.since, None)]
        return tuple(_joined([*self.intervals, *still]))


@dataclass(slots=True)
class _File:
    version: str
    present: bool = False
    yanked: bool = False
    live: _Flag = field(default_factory=_Flag)
    yanked_live: _Flag = field(default_factory=_Flag)
    changes: list[Change] = field(default_factory=list)


def file_histories(
    events: Sequence[ChangelogEvent],
    pages: Iterable[SeenPage],
    *,
    known_since: int,
    events_through: int,
    version_of: Callable[[str], str],
) -> dict[str, FileHistory]:
    """The history of each file of a project, by filename.

    `events` are the project's stored events in order of serial: all above `known_since`, up to `events_through`.
    `version_of` returns the release of a filename, for files without an add event. Files from before the first event
    count from `known_since`.

    Where a page differs from what the events lead to, the page wins and the change has the cause UNEXPLAINED. Beyond
    `events_through` the cause is LISTED, since the events that led to the page are not known. Such a page proves
    nothing about earlier serials.
    """
    known = [(event, file_change(event)) for event in events if event.serial > known_since]
    shown = _pages_by_serial(pages)
    project = _Project(version_of)
    project.begin(known, [page for page in shown if page.serial <= events_through], known_since)
    remaining = iter([*known])
    pending = next(remaining, None)
    for page in shown:
        while pending is not None and pending[0].serial <= page.serial:
            project.apply(*pending)
            pending = next(remaining, None)
        project.correct(page, max(page.serial, known_since), UNEXPLAINED if page.serial <= events_through else LISTED)
    while pending is not None:
        project.apply(*pending)
        pending = next(remaining, None)
    return project.histories()


def _pages_by_serial(pages: Iterable[SeenPage]) -> list[SeenPage]:
    """For each serial the page that was given last."""
    latest = {page.serial: page for page in pages}
    return [latest[serial] for serial in sorted(latest)]


class _Project:
    """The state of a project while its events and pages are applied."""

    def __init__(self, version_of: Callable[[str], str]) -> None:
        self._version_of = version_of
        self._files: dict[str, _File] = {}
        self._quarantined = False
        self._quarantined_releases: set[str] = set()
        self._yanked_releases: set[str] = set()

    def begin(
        self, known: Sequence[tuple[ChangelogEvent, FileChange]], pages: Sequence[SeenPage], known_since: int
    ) -> None:
        """Infers the state before the first event, from the first page and from what later events undo."""
        first_page = pages[0] if pages else None
        first_of: dict[tuple[str, str | None], FileChange] = {}
        after_page: dict[str | None, tuple[Action, int]] = {}
        for event, change in known:
            topic = _TOPICS.get(change.action)
            if topic is None:
                continue
            release = None if event.version is None else _release(event.version)
            scope = None if change.action in _OF_PROJECT else release
            first_of.setdefault((topic, scope), change)
            if topic == _QUARANTINE and first_page is not None and event.serial > first_page.serial:
                after_page.setdefault(scope, (change.action, event.serial))
        quarantined = {scope for (_, scope), change in first_of.items() if change.action in _CLEARINGS}
        self._quarantined = None in quarantined
        self._quarantined_releases = {scope for scope in quarantined if scope is not None}
        cleared_at = {scope: serial for scope, (action, serial) in after_page.items() if action in _CLEARINGS}
        added = {change.filename: event.serial for event, change in reversed(known) if change.action == Action.ADD_FILE}
        for page in pages:
            for filename, yanked in page.yanked.items():
                if filename in self._files or added.get(filename, page.serial + 1) <= page.serial:
                    continue
                version = self._version_of(filename)
                release = _release(version)
                if page is not first_page and not any(
                    cleared_at.get(scope, page.serial + 1) <= page.serial for scope in (None, release)
                ):
                    continue  # no quarantine can have hidden it from the first page
                first_yank = first_of.get((_YANK, release))
                file = self._files[filename] = _File(version, present=True)
                file.yanked = yanked if first_yank is None else first_yank.action == Action.UNYANK_RELEASE
                if file.yanked:
                    self._yanked_releases.add(release)
        self._refresh(self._files, known_since, BASELINE)

    def apply(self, event: ChangelogEvent, change: FileChange) -> None:
        """Applies `event`. Removals of a release or project, and quarantines, touch many files with one event."""
        action, serial = change.action, event.serial
        release = None if event.version is None else _release(event.version)
        touched: Iterable[str] = self._files
        if action == Action.ADD_FILE and change.filename is not None:
            version = event.version or self._version_of(change.filename)
            file = self._files.setdefault(change.filename, _File(version))
            file.version, file.present = version, True
            file.yanked = _release(version) in self._yanked_releases
            touched = [change.filename]
        elif action == Action.REMOVE_FILE:
            touched = [name for name in self._files if name == change.filename]
            self._remove(touched)
        elif action == Action.REMOVE_RELEASE and release is not None:
            touched = self._of_release(release)
            self._remove(touched)
            self._quarantined_releases.discard(release)
            self._yanked_releases.discard(release)
        elif action == Action.REMOVE_PROJECT:
            self._remove(self._files)
            self._quarantined = False
            self._quarantined_releases.clear()
            self._yanked_releases.clear()
        elif action in {Action.QUARANTINE_PROJECT, Action.UNQUARANTINE_PROJECT}:
            self._quarantined = action == Action.QUARANTINE_PROJECT
        elif action == Action.QUARANTINE_RELEASE and release is not None:
            self._quarantined_releases.add(release)
        elif action == Action.UNQUARANTINE_RELEASE and release is not None:
            self._quarantined_releases.discard(release)
        elif action in {Action.YANK_RELEASE, Action.UNYANK_RELEASE} and release is not None:
            touched = self._of_release(release)
            yanked = action == Action.YANK_RELEASE
            for filename in touched:
                self._files[filename].yanked = yanked
            (self._yanked_releases.add if yanked else self._yanked_releases.discard)(release)
        else:
            return
        self._refresh(touched, serial, action.value)

    def correct(self, page: SeenPage, serial: int, cause: str) -> None:
        """Changes the state to what `page` shows."""
        for filename, yanked in page.yanked.items():
            file = self._files.get(filename)
            if file is None:
                file = self._files[filename] = _File(self._version_of(filename))
            release = _release(file.version)
            if not self._is_live(file):
                file.present = True
                self._quarantined = False
                self._quarantined_releases.discard(release)
            if file.yanked != yanked:
                file.yanked = yanked
                (self._yanked_releases.add if yanked else self._yanked_releases.discard)(release)
        for filename, file in self._files.items():
            if filename not in page.yanked and self._is_live(file):
                file.present = False
        self._refresh(self._files, serial, cause)

    def histories(self) -> dict[str, FileHistory]:
        return {
            filename: FileHistory(filename, file.version, file.live.all(), file.yanked_live.all(), tuple(file.changes))
            for filename, file in self._files.items()
        }

    def _of_release(self, release: str) -> list[str]:
        return [name for name, file in self._files.items() if _release(file.version) == release]

    def _remove(self, filenames: Iterable[str]) -> None:
        for filename in filenames:
            self._files[filename].present = False
            self._files[filename].yanked = False

    def _is_live(self, file: _File) -> bool:
        return file.present and not self._quarantined and _release(file.version) not in self._quarantined_releases

    def _refresh(self, filenames: Iterable[str], serial: int, cause: str) -> None:
        for filename in filenames:
            file = self._files[filename]
            live = self._is_live(file)
            changed = file.live.set(live, serial)
            changed |= file.yanked_live.set(live and file.yanked, serial)
            if changed:
                file.changes.append(Change(serial, cause))


_QUARANTINE = "quarantine"
_YANK = "yank"
_CLEARINGS = frozenset({Action.UNQUARANTINE_PROJECT, Action.UNQUARANTINE_RELEASE})
_OF_PROJECT = frozenset({Action.QUARANTINE_PROJECT, Action.UNQUARANTINE_PROJECT})
_TOPICS = {
    Action.QUARANTINE_PROJECT: _QUARANTINE,
    Action.UNQUARANTINE_PROJECT: _QUARANTINE,
    Action.QUARANTINE_RELEASE: _QUARANTINE,
    Action.UNQUARANTINE_RELEASE: _QUARANTINE,
    Action.YANK_RELEASE: _YANK,
    Action.UNYANK_RELEASE: _YANK,
}


@lru_cache(maxsize=4_096)
def _release(version: str) -> str:
    return canonicalize_version(version, strip_trailing_zero=True)


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    """The same serials in as few intervals as possible: an interval that ends where the next one begins is joined with
    it."""
    joined: list[Interval] = []
    for interval in intervals:
        if joined and joined[-1].end == interval.start:
            joined[-1] = Interval(joined[-1].start, interval.end)
        else:
            joined.append(interval)
    return joined
