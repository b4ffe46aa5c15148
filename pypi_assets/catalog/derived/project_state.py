"""The state of a project's files at one serial, as events and pages change it, without access to the database.

Every change is found by an index (a filename, or the files of a release), so its cost depends only on what it changes.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from packaging.utils import canonicalize_version

from pypi_assets.index.actions import Action, FileChange
from pypi_assets.index.models import ChangelogEvent

NEW_RELEASE = "new release"
"""The action by which an index announces the text of a release. It changes no file."""


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The serials from `start` up to, but not including, `end`. If `end` is None, the interval has not ended."""

    start: int
    end: int | None

    def __contains__(self, serial: int) -> bool:
        return self.start <= serial and (self.end is None or serial < self.end)


class IntervalChange(NamedTuple):
    """A change of a file at a serial, and its cause."""

    serial: int
    cause: str


@dataclass(slots=True, eq=False)
class ReleaseState:
    """A release, by its text on the index.

    If `is_named_alone`, only an event about the release has this text, but no file and no announcement.
    """

    text: str
    is_yanked: bool = False
    is_quarantined: bool = False
    is_named_alone: bool = False
    files: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class FileState:
    """A file. It is live since `live_since`, and live and yanked since `yanked_since`; None if it is not.

    `is_present` and `is_yanked` are also true while a quarantine hides the file. `is_baseline`: it existed before the
    first event, and only a page shows this. `is_shown_alone`: a page has shown it, but no event has added it yet.
    """

    release: ReleaseState
    is_present: bool = False
    is_yanked: bool = False
    is_baseline: bool = False
    is_shown_alone: bool = False
    live_since: int | None = None
    yanked_since: int | None = None


@dataclass(slots=True)
class Trace:
    """The changes of a file since the state was created: the intervals that have ended, and all interval changes."""

    live: list[Interval] = field(default_factory=list)
    yanked: list[Interval] = field(default_factory=list)
    changes: list[IntervalChange] = field(default_factory=list)


class ProjectState:
    """The files and releases of a project. `visible` has each live file, with whether it is yanked.

    `traces` has an entry for each file that was touched since the state was created.
    """

    def __init__(self, version_of: Callable[[str], str]) -> None:
        self.version_of = version_of
        self.files: dict[str, FileState] = {}
        self.releases: dict[str, ReleaseState] = {}
        self.is_quarantined = False
        self.visible: dict[str, bool] = {}
        self.traces: dict[str, Trace] = {}
        self._spellings: dict[str, list[ReleaseState]] | None = None
        self._are_named_alone: set[str] = set()

    def enter(self, filename: str, version: str) -> FileState:
        """Add a file that was not known before, in the release `version`. It is not present yet."""
        release = self.release(version)
        release.files.add(filename)
        self.touch(filename)
        file = self.files[filename] = FileState(release)
        return file

    def release(self, text: str) -> ReleaseState:
        """Return the release with this text, which is created if it is unknown.

        A yank or a quarantine of a release without files applies to the first release of the same version that gets
        files.
        """
        release = self.releases.get(text)
        if release is None:
            alike = self.spelled_like(text) if self._are_named_alone else []
            if len(alike) == 1 and alike[0].is_named_alone:
                release = self._rename(alike[0], text)
            else:
                release = self.add_release(ReleaseState(text))
        if release.is_named_alone:
            release.is_named_alone = False
            self._are_named_alone.discard(text)
        return release

    def releases_named(self, text: str) -> list[ReleaseState]:
        """Return the releases that an event about `text` refers to.

        This is the release with exactly this text, or else all releases whose texts are spellings of the same version,
        or else a new release.
        """
        exact = self.releases.get(text)
        if exact is not None:
            return [exact]
        return self.spelled_like(text) or [self.add_release(ReleaseState(text, is_named_alone=True))]

    def spelled_like(self, text: str) -> list[ReleaseState]:
        """Return the known releases whose texts are spellings of the same version as `text`."""
        if self._spellings is None:
            self._spellings = {}
            for release in self.releases.values():
                self._spellings.setdefault(canonical(release.text), []).append(release)
        return self._spellings.get(canonical(text), [])

    def add_release(self, release: ReleaseState) -> ReleaseState:
        """Add a release whose text is not known yet, and return it."""
        self.releases[release.text] = release
        if release.is_named_alone:
            self._are_named_alone.add(release.text)
        if self._spellings is not None:
            self._spellings.setdefault(canonical(release.text), []).append(release)
        return release

    def _rename(self, release: ReleaseState, text: str) -> ReleaseState:
        del self.releases[release.text]
        self._are_named_alone.discard(release.text)
        self._are_named_alone.add(text)
        release.text = text
        self.releases[text] = release
        return release

    def apply(self, event: ChangelogEvent, change: FileChange) -> None:
        """Apply `event`. Some events, such as the removal or the quarantine of a project, change many files."""
        action, version = change.action, event.version
        touched: Iterable[str] = ()
        if action == Action.ADD_FILE and change.filename is not None:
            touched = self._add_file(change.filename, version or self.version_of(change.filename))
        elif action == Action.REMOVE_FILE and change.filename is not None:
            touched = self._remove([change.filename] if change.filename in self.files else [])
        elif action in _OF_YANKED_FILE and change.filename is not None:
            touched = self._yank_file(change.filename, is_yanked=action == Action.YANK_FILE)
        elif action in _OF_PROJECT:
            touched = self._apply_to_project(action)
        elif action in _OF_RELEASE and version is not None:
            touched = self._apply_to_releases(action, self.releases_named(version))
        elif version is not None and event.action == NEW_RELEASE:
            self.release(version)
        self.refresh(touched, event.serial, action.value)

    def _add_file(self, filename: str, version: str) -> list[str]:
        file = self.files.get(filename)
        if file is None:
            file = self.enter(filename, version)
        elif file.release.text != version:
            file.release.files.discard(filename)
            file.release = self.release(version)
            file.release.files.add(filename)
        self.touch(filename)
        file.is_present, file.is_shown_alone = True, False
        file.is_yanked = file.release.is_yanked
        return [filename]

    def _yank_file(self, filename: str, *, is_yanked: bool) -> list[str]:
        """Yank or unyank one file. The other files of its release do not change."""
        file = self.files.get(filename)
        if file is None:
            return []
        file.is_yanked = file.is_present and is_yanked
        return [filename]

    def _apply_to_project(self, action: Action) -> list[str]:
        if action == Action.REMOVE_PROJECT:
            self.is_quarantined = False
            for release in self.releases.values():
                release.is_yanked = release.is_quarantined = False
            return self._remove(list(self.files))
        self.is_quarantined = action == Action.QUARANTINE_PROJECT
        return list(self.files)

    def _apply_to_releases(self, action: Action, releases: Iterable[ReleaseState]) -> list[str]:
        touched: list[str] = []
        for release in releases:
            touched += release.files
            if action == Action.REMOVE_RELEASE:
                release.is_yanked = release.is_quarantined = False
                self._remove(release.files)
            elif action in _YANKS:
                release.is_yanked = action == Action.YANK_RELEASE
                for filename in release.files:
                    self.files[filename].is_yanked = release.is_yanked
            else:
                release.is_quarantined = action == Action.QUARANTINE_RELEASE
        return sorted(touched)

    def _remove(self, filenames: Iterable[str]) -> list[str]:
        removed = list(filenames)
        for filename in removed:
            file = self.files[filename]
            file.is_present = file.is_yanked = False
        return removed

    def differences(self, shown: Mapping[str, bool]) -> set[str]:
        """Return the names of the files that a page shows differently from the state."""
        if shown == self.visible:
            return set()
        return {filename for filename, _ in shown.items() ^ self.visible.items()}

    def correct(self, shown: Mapping[str, bool], serial: int, cause: str) -> set[str]:
        """Change the state to match a page. Return the names of the files that change."""
        differing = self.differences(shown)
        for filename in sorted(differing & shown.keys()):
            file = self.files.get(filename) or self.enter(filename, self.version_of(filename))
            if not self.is_live(file):
                file.is_present = file.is_shown_alone = True
                differing |= self._end_quarantines(file.release)
            if file.is_yanked != shown[filename]:
                file.is_yanked = file.release.is_yanked = shown[filename]
        for filename in differing - shown.keys():
            if self.is_live(file := self.files[filename]):
                file.is_present = False
        self.refresh(sorted(differing), serial, cause)
        return differing

    def _end_quarantines(self, release: ReleaseState) -> set[str]:
        """End the quarantines of `release` and its project, since a page shows a file. Return the files they hid."""
        shown: set[str] = set()
        if release.is_quarantined:
            release.is_quarantined = False
            shown |= release.files
        if self.is_quarantined:
            self.is_quarantined = False
            shown |= self.files.keys()
        return shown

    def is_live(self, file: FileState) -> bool:
        """Check whether the file is present and not hidden by a quarantine."""
        return file.is_present and not self.is_quarantined and not file.release.is_quarantined

    def touch(self, filename: str) -> Trace:
        """Return the trace of a file, which is created if it has none."""
        trace = self.traces.get(filename)
        if trace is None:
            trace = self.traces[filename] = Trace()
        return trace

    def refresh(self, filenames: Iterable[str], serial: int, cause: str) -> None:
        """Update the intervals of these files to their state from `serial` on."""
        for filename in filenames:
            file = self.files[filename]
            is_live = self.is_live(file)
            is_yanked = is_live and file.is_yanked
            if is_live == (file.live_since is not None) and is_yanked == (file.yanked_since is not None):
                continue
            trace = self.touch(filename)
            file.live_since = _switched(trace.live, file.live_since, is_live, serial)
            file.yanked_since = _switched(trace.yanked, file.yanked_since, is_yanked, serial)
            trace.changes.append(IntervalChange(serial, cause))
            if is_live:
                self.visible[filename] = is_yanked
            else:
                self.visible.pop(filename, None)

    def concerns(self, event: ChangelogEvent, change: FileChange, filenames: Collection[str]) -> bool:
        """Check whether the event concerns one of these files, its release, or the whole project."""
        if change.action in _OF_RELEASE and event.version is not None:
            return any(not release.files.isdisjoint(filenames) for release in self.releases_named(event.version))
        return change.filename in filenames if change.filename is not None else change.action in _OF_PROJECT

    def tried(self, events: Iterable[tuple[ChangelogEvent, FileChange]]) -> Iterator["ProjectState"]:
        """Yield a copy of the state after each of `events`. It is the same object each time."""
        copy = ProjectState(self.version_of)
        copy.is_quarantined = self.is_quarantined
        for release in self.releases.values():
            copy.add_release(replace(release, files=set(release.files)))
        copy.files = {
            name: replace(file, release=copy.releases[file.release.text]) for name, file in self.files.items()
        }
        copy.visible = dict(self.visible)
        for event, change in events:
            copy.apply(event, change)
            yield copy


def canonical(text: str) -> str:
    """Return the canonical form of a version. `1.0` and `1.0.0` have the same form."""
    return canonicalize_version(text, strip_trailing_zero=True)


def _switched(ended: list[Interval], since: int | None, holds: bool, serial: int) -> int | None:
    """Return the start of the interval that is open after `serial`; None if there is none.

    `since` is the start of the interval before, and `holds` whether there is an open interval from `serial` on. An
    interval that ends is appended to `ended`. If an interval would begin and end at the same serial, it is omitted. If
    an interval ended at the serial at which the next one begins, the two become one.
    """
    if holds == (since is not None):
        return since
    if since is None:
        return ended.pop().start if ended and ended[-1].end == serial else serial
    if since != serial:
        ended.append(Interval(since, serial))
    return None


_OF_YANKED_FILE = frozenset({Action.YANK_FILE, Action.UNYANK_FILE})
_YANKS = frozenset({Action.YANK_RELEASE, Action.UNYANK_RELEASE})
_OF_PROJECT = frozenset({Action.REMOVE_PROJECT, Action.QUARANTINE_PROJECT, Action.UNQUARANTINE_PROJECT})
_OF_RELEASE = _YANKS | {Action.REMOVE_RELEASE, Action.QUARANTINE_RELEASE, Action.UNQUARANTINE_RELEASE}
