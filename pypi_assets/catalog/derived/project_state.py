"""The state of a project's files at one serial: what events and pages change, one after the other.

Every change is found by an index (the name of a file, the files of a release), so it costs by what it touches. Nothing
here touches the database.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from packaging.utils import canonicalize_version

from pypi_assets.index.actions import Action, FileChange
from pypi_assets.index.models import ChangelogEvent

NEW_RELEASE = "new release"
"""The action by which an index announces the text of a release; by itself it changes no file."""


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """Holds from the serial `start` up to, and not including, `end`. None: it still holds."""

    start: int
    end: int | None

    def __contains__(self, serial: int) -> bool:
        return self.start <= serial and (self.end is None or serial < self.end)


class IntervalChange(NamedTuple):
    """Something that happened to a file at a serial, and its cause."""

    serial: int
    cause: str


@dataclass(slots=True, eq=False)
class ReleaseState:
    """A release, by the text that the index has for it. `is_named_alone`: no file and no announcement has this text,
    only an event about a release."""

    text: str
    is_yanked: bool = False
    is_quarantined: bool = False
    is_named_alone: bool = False
    files: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class FileState:
    """A file. It is live from `live_since` on, and yanked while live from `yanked_since` on; None: it is not.

    `is_present` and `is_yanked` hold also while a quarantine hides the file. `is_baseline`: that it existed before
    the first event is known from a page alone. `is_shown_alone`: no event has added it yet.
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
    """What happened to a file since the state was begun: the intervals that ended, and all changes."""

    live: list[Interval] = field(default_factory=list)
    yanked: list[Interval] = field(default_factory=list)
    changes: list[IntervalChange] = field(default_factory=list)


class ProjectState:
    """The files and releases of a project, and which files are visible: for each live one, whether it is yanked.

    `traces` has an entry for each file that was touched since the state was made.
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
        """The state of a file that was not known before, as part of the release `version`; it is not there yet."""
        release = self.release(version)
        release.files.add(filename)
        self.touch(filename)
        file = self.files[filename] = FileState(release)
        return file

    def release(self, text: str) -> ReleaseState:
        """The release of that text, new where none is known.

        A yank or quarantine of a release without files holds for the first release of that version that gets files.
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
        """The releases that an event about `text` means: that of exactly this text, else all of the same version."""
        exact = self.releases.get(text)
        if exact is not None:
            return [exact]
        return self.spelled_like(text) or [self.add_release(ReleaseState(text, is_named_alone=True))]

    def spelled_like(self, text: str) -> list[ReleaseState]:
        """The known releases whose texts mean the same version as `text`."""
        if self._spellings is None:
            self._spellings = {}
            for release in self.releases.values():
                self._spellings.setdefault(canonical(release.text), []).append(release)
        return self._spellings.get(canonical(text), [])

    def add_release(self, release: ReleaseState) -> ReleaseState:
        """Adds a release of a text that is not known yet, and returns it."""
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
        """Applies `event`. Removals of a release or project, and quarantines, touch many files with one event."""
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
        """Yanks one file, or takes that back; what holds for the others of its release stays."""
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
        """The names of the files that a page shows otherwise than the state has them."""
        if shown == self.visible:
            return set()
        return {filename for filename, _ in shown.items() ^ self.visible.items()}

    def correct(self, shown: Mapping[str, bool], serial: int, cause: str) -> set[str]:
        """Changes the state to what a page shows. Returns the names of the files that it changes."""
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
        """What no quarantine hides any more, since a page shows a file of `release`."""
        shown: set[str] = set()
        if release.is_quarantined:
            release.is_quarantined = False
            shown |= release.files
        if self.is_quarantined:
            self.is_quarantined = False
            shown |= self.files.keys()
        return shown

    def is_live(self, file: FileState) -> bool:
        """Whether the file is there, and no quarantine hides it."""
        return file.is_present and not self.is_quarantined and not file.release.is_quarantined

    def touch(self, filename: str) -> Trace:
        """The trace of a file, begun where it has none yet."""
        trace = self.traces.get(filename)
        if trace is None:
            trace = self.traces[filename] = Trace()
        return trace

    def refresh(self, filenames: Iterable[str], serial: int, cause: str) -> None:
        """Brings the intervals of these files in line with what holds of them from `serial` on."""
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
        """Whether the event is about one of these files: about itself, its release, or the project."""
        if change.action in _OF_RELEASE and event.version is not None:
            return any(not release.files.isdisjoint(filenames) for release in self.releases_named(event.version))
        return change.filename in filenames if change.filename is not None else change.action in _OF_PROJECT

    def tried(self, events: Iterable[tuple[ChangelogEvent, FileChange]]) -> Iterator["ProjectState"]:
        """A copy of the state after each of `events`. The copy is the same object each time."""
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
    """The text of a version in its canonical form; `1.0` and `1.0.0` have the same."""
    return canonicalize_version(text, strip_trailing_zero=True)


def _switched(ended: list[Interval], since: int | None, holds: bool, serial: int) -> int | None:
    """Since when it holds, if from `serial` on it `holds`. An interval that ends goes into `ended`.

    What began and ended at one serial was never seen, and what ended at the serial at which it begins never ended.
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
