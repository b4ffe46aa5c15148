"""Compares a page with its accepted state, and decides which changes to accept now and which events follow.

Content that was never seen before is accepted immediately, since a stale copy from a cache cannot contain it. A
removal, or a return to something that was accepted earlier, waits until several observations agree, since a cache can
serve an old page again. All functions here are pure. Where the result is stored is decided in `round_state.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec
from packaging.utils import canonicalize_name, canonicalize_version

from pypi_assets.index.file_endings import RELEASE_ENDINGS
from pypi_assets.index.models import LONGEST_NAME, BrokenEntry, IndexFile, ProjectPage
from pypi_assets.index.observing.shown_pages import ShownFile, ShownPage

FIRST_AGREEING = 2
MOST_DOUBTS = 5
"""A change needs FIRST_AGREEING matching observations. Each doubt doubles the number, so it is 64 at most."""
CALM = 100
"""One doubt ends after this many observations without anything waiting for confirmation."""
MOST_GONE = 2_000
"""The number of removed files that are stored for a project. A forgotten file counts as new when it returns."""
_MOST_BEFORE = 8
_PAGE = ""
"""Stands for the page itself, in place of a filename."""


class KnownFile(msgspec.Struct, omit_defaults=True):
    """The accepted state of a file.

    `version` is the release that its event names. `before` holds the fingerprints of the file's earlier contents.
    `is_flag_moved` is true if the yank has changed since this content appeared, so that a further change could come
    from an old page.
    """

    file: IndexFile
    version: str | None = None
    hashes: dict[str, str] = {}
    is_there: bool = True
    is_flag_moved: bool = False
    before: list[str] = []
    has_signature: bool | None = None


class Waiting(msgspec.Struct):
    """A change that is shown and not accepted yet.

    `count` is the number of observations in a row that showed it, and `since` the time of the first (unix seconds).
    """

    shown: str
    count: int
    since: float


class KnownPage(msgspec.Struct, omit_defaults=True):
    """The accepted state of a project. `was_there` is true if the project has or had a page.

    `doubts` counts how often an accepted change was reverted. `calm` counts the observations since then without
    anything waiting for confirmation. `yanked_releases` are the versions that an event has yanked.
    """

    name: str
    is_there: bool = False
    was_there: bool = False
    status: str = "active"
    versions: list[str] = []
    files: dict[str, KnownFile] = {}
    broken: list[BrokenEntry] = []
    waiting: dict[str, Waiting] = {}
    yanked_releases: list[str] = []
    doubts: int = 0
    calm: int = 0

    def project_page(self, project: str, serial: int) -> ProjectPage:
        """Return the accepted state as a project page at the given serial."""
        files = tuple(known.file for known in self.files.values() if known.is_there)
        name = None if self.name == project else self.name
        return ProjectPage(project, serial, self.status, files, None, tuple(self.broken), tuple(self.versions), name)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A derived event: its release (None for an event of the whole project), and its action as in PyPI's changelog."""

    version: str | None
    action: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The new accepted state and the events that lead to it.

    `is_waiting` is true if a change waits for confirmation.
    """

    known: KnownPage
    events: tuple[NewEvent, ...]

    @property
    def is_waiting(self) -> bool:
        return bool(self.known.waiting)


def compare(known: KnownPage, shown: ShownPage | None, now: float, confirm_after_s: float) -> Compared:
    """Return the result of one observation of a project at time `now`. `shown` is None for a 404.

    A change that needs confirmation is accepted once FIRST_AGREEING observations in a row have shown it, over at least
    `confirm_after_s` seconds. Each time that something returns after it was accepted as removed, the project gets a
    doubt, which doubles that number.
    """
    comparing = _PageComparison(known, shown, now, confirm_after_s)
    comparing.run()
    return Compared(comparing.result(), tuple(comparing.events))


class _PageComparison:
    """One comparison. `_files` becomes the accepted files after it."""

    def __init__(self, known: KnownPage, shown: ShownPage | None, now: float, confirm_after_s: float) -> None:
        self.events: list[NewEvent] = []
        self._known, self._page = known, shown
        self._now, self._confirm_after_s = now, confirm_after_s
        self._waiting: dict[str, Waiting] = {}
        self._files = dict(known.files)
        self._yanked_releases = set(known.yanked_releases)
        self._is_there = known.is_there
        self._has_new_doubt = self._is_all_back = False

    def run(self) -> None:
        shown = {} if self._page is None else {entry.file.filename: entry for entry in self._page.files}
        if self._page is None:
            if self._known.is_there and self._is_confirmed(_PAGE, "gone"):
                self._remove_project()
            elif self._known.is_there:
                return
        elif not self._known.is_there:
            is_new = any(self._is_new(name, entry) for name, entry in shown.items())
            if self._known.was_there and not is_new:
                if not self._is_back(_PAGE, "there"):
                    return
                self._is_all_back = True
            self._is_there = True
            self.events.append(NewEvent(None, "create"))
        there = {name for name, known in self._files.items() if known.is_there}
        self._remove(sorted(name for name in there - shown.keys() if self._is_confirmed(name, "gone")))
        for name, entry in shown.items():
            self._take(name, entry)
        self._yank({name: entry.file.yanked for name, entry in shown.items()})

    def result(self) -> KnownPage:
        known, page = self._known, self._page
        doubts = min(known.doubts + self._has_new_doubt, MOST_DOUBTS)
        calm = 0 if self._waiting or self._has_new_doubt else known.calm + 1
        if doubts and calm >= CALM:
            doubts, calm = doubts - 1, 0
        is_taken = page is not None and self._is_there
        gone = [name for name, file in self._files.items() if not file.is_there]
        for name in gone[: max(0, len(gone) - MOST_GONE)]:
            del self._files[name]
        return KnownPage(
            name=known.name if page is None or page.name is None else page.name[:LONGEST_NAME],
            is_there=self._is_there,
            was_there=known.was_there or self._is_there,
            status=page.status if page is not None and is_taken else known.status,
            versions=list(page.versions) if page is not None and is_taken else known.versions,
            files=self._files,
            broken=list(page.broken) if page is not None and is_taken else [],
            waiting=self._waiting,
            yanked_releases=sorted(self._yanked_releases),
            doubts=doubts,
            calm=calm,
        )

    def _is_confirmed(self, name: str, shown: str) -> bool:
        """Check whether enough observations agree on a change of a file. If not, the change waits."""
        before = self._known.waiting.get(name)
        waiting = Waiting(shown, 1, self._now)
        if before is not None and before.shown == shown:
            waiting = Waiting(shown, before.count + 1, before.since)
        if waiting.count >= FIRST_AGREEING << self._known.doubts and self._now >= waiting.since + self._confirm_after_s:
            return True
        self._waiting[name] = waiting
        return False

    def _is_back(self, name: str, shown: str) -> bool:
        """Check the same for a return to an earlier state. Once accepted, it adds a doubt."""
        is_confirmed = self._is_all_back or self._is_confirmed(name, shown)
        self._has_new_doubt |= is_confirmed
        return is_confirmed

    def _is_new(self, name: str, shown: ShownFile) -> bool:
        """Check whether no earlier page can have shown this file with this content."""
        known = self._files.get(name)
        return known is None or not (_is_same(known, shown) or _fingerprint(shown) in known.before)

    def _remove_project(self) -> None:
        self._is_there = False
        self._files = {name: _gone(known) for name, known in self._files.items()}
        self._yanked_releases.clear()
        self.events.append(NewEvent(None, "remove project"))

    def _remove(self, names: Sequence[str]) -> None:
        """Remove files, with one event for a whole release if it has several files and all are removed."""
        of_release: dict[str, list[str]] = {}
        for name, known in self._files.items():
            if known.is_there and known.version is not None:
                of_release.setdefault(known.version, []).append(name)
        left = set(names)
        for version, files in of_release.items():
            if len(files) > 1 and left.issuperset(files):
                self.events.append(NewEvent(version, "remove release"))
                self._yanked_releases.discard(version)
                left.difference_update(files)
        self.events += [NewEvent(self._files[name].version, f"remove file {name}") for name in names if name in left]
        for name in names:
            self._files[name] = _gone(self._files.pop(name))

    def _take(self, name: str, shown: ShownFile) -> None:
        """Accept the shown state of a file on the page, except its yank, as far as it needs no confirmation."""
        known = self._files.get(name)
        if known is not None and _is_same(known, shown):
            if known.is_there:
                self._files[name] = _refreshed(known, shown)
            elif self._is_back(name, "there"):
                self._add(name, _refreshed(known, shown), known.file.generation)
            return
        if known is None:
            file = self._first_seen(shown.file)
            self._add(name, KnownFile(file, None, _hashes(shown), has_signature=shown.has_signature), 1)
        elif self._is_new(name, shown) or self._is_back(name, f"content {_fingerprint(shown)}"):
            before = [*known.before, _fingerprint(ShownFile(known.file, known.hashes))][-_MOST_BEFORE:]
            file = self._first_seen(shown.file)
            new = KnownFile(file, None, _hashes(shown), before=before, has_signature=shown.has_signature)
            self._add(name, new, known.file.generation + 1)

    def _first_seen(self, file: IndexFile) -> IndexFile:
        """Return the file with the time of this observation, if its page states no upload time."""
        seen_at = datetime.fromtimestamp(self._now, UTC).replace(microsecond=0, tzinfo=None)
        return file if file.uploaded_at else replace(file, first_seen_at=f"{seen_at.isoformat()}Z")

    def _add(self, name: str, new: KnownFile, generation: int) -> None:
        """Add a file, or a file's next content. It then gets the yank of its release, as in PyPI's changelog."""
        version = version_of(name, self._known.name, () if self._page is None else self._page.versions)
        file = replace(new.file, generation=generation, yanked=version in self._yanked_releases)
        self._files[name] = msgspec.structs.replace(new, file=file, version=version, is_there=True, is_flag_moved=False)
        self.events.append(NewEvent(version, f"add {_python_of(name)} file {name}"))

    def _yank(self, shown: Mapping[str, bool]) -> None:
        """Accept changed yanks, with one event for a whole release if all its files are then in the same state."""
        moved: dict[str, bool] = {}
        of_release: dict[str | None, list[str]] = {}
        for name, known in self._files.items():
            if not known.is_there:
                continue
            of_release.setdefault(known.version, []).append(name)
            if name not in shown or name in self._waiting or shown[name] == known.file.yanked:
                continue
            if not known.is_flag_moved or self._is_back(name, f"yanked {shown[name]}"):
                moved[name] = shown[name]
        for name, is_yanked in moved.items():
            known = self._files[name]
            file = replace(known.file, yanked=is_yanked)
            self._files[name] = msgspec.structs.replace(known, file=file, is_flag_moved=True)
        for version, names in of_release.items():
            self.events += self._yank_events(version, names, [name for name in names if name in moved])

    def _yank_events(self, version: str | None, names: Sequence[str], moved: Sequence[str]) -> Iterator[NewEvent]:
        flags = {self._files[name].file.yanked for name in names}
        if moved and version is not None and len(flags) == 1:
            is_yanked = flags.pop()
            (self._yanked_releases.add if is_yanked else self._yanked_releases.discard)(version)
            yield NewEvent(version, "yank release" if is_yanked else "unyank release")
            return
        for name in moved:
            yield NewEvent(version, f"{'yank' if self._files[name].file.yanked else 'unyank'} file {name}")


def _gone(known: KnownFile) -> KnownFile:
    file = replace(known.file, yanked=False)
    return msgspec.structs.replace(known, file=file, is_there=False, is_flag_moved=False)


def _refreshed(known: KnownFile, shown: ShownFile) -> KnownFile:
    """Return a file of the same content with the facts that the page shows now.

    If this page lacks a hash, size or upload time, the known value is kept. If the page's entry is broken, nothing
    changes.
    """
    if shown.file.url is None:
        return known
    hashes = known.hashes | _hashes(shown)
    uploaded_at = shown.file.uploaded_at or known.file.uploaded_at
    file = replace(
        shown.file,
        sha256=shown.file.sha256 or known.file.sha256,
        size=known.file.size if shown.file.size is None else shown.file.size,
        uploaded_at=uploaded_at,
        first_seen_at=None if uploaded_at else known.file.first_seen_at,
        generation=known.file.generation,
        yanked=known.file.yanked,
    )
    return msgspec.structs.replace(known, file=file, hashes=hashes, has_signature=shown.has_signature)


def _hashes(shown: ShownFile) -> dict[str, str]:
    return {
        name[:40]: digest.lower()
        for name, digest in list(shown.hashes.items())[:20]
        if isinstance(digest, str) and 0 < len(digest) <= 200
    }


def _is_same(known: KnownFile, shown: ShownFile) -> bool:
    """Check whether a file has the same content, as far as can be known.

    The contents are compared by a hash that both have, or else by size and upload time.
    """
    digests = _hashes(shown)
    for name in ("sha256", *sorted(digests)):
        if name in digests and name in known.hashes:
            return digests[name] == known.hashes[name]
    for before, now in ((known.file.size, shown.file.size), (known.file.uploaded_at, shown.file.uploaded_at)):
        if before is not None and now is not None and before != now:
            return False
    return True


def _fingerprint(shown: ShownFile) -> str:
    """Return a text that identifies the content of a file."""
    digests = _hashes(shown)
    for name in ("sha256", *sorted(digests)):
        if name in digests:
            return f"{name}={digests[name]}"
    return f"{shown.file.size} bytes of {shown.file.uploaded_at}"


def version_of(filename: str, project: str, listed: Sequence[str] = ()) -> str | None:
    """Return the version in a filename of `project`, or None if it is not certain.

    If one of the `listed` versions is equal, its spelling is returned: `1.0` for `demo-1.0.0.tar.gz`, if the page lists
    `1.0`.
    """
    ending = next((candidate for candidate in RELEASE_ENDINGS if filename.lower().endswith(candidate)), None)
    if ending is None:
        return None
    stem = filename[: -len(ending)]
    found: str | None = None
    if ending in {".whl", ".egg"}:
        parts = stem.split("-")
        found = parts[1] if len(parts) > 1 else None
    else:
        normalized = canonicalize_name(project)
        for place, character in enumerate(stem):
            if character in "-_" and canonicalize_name(stem[:place]) == normalized:
                found = stem[place + 1 :]
                break
    if not found or len(found) > LONGEST_NAME:
        return None
    canonical = canonicalize_version(found)
    return next((text for text in listed if canonicalize_version(text) == canonical), found)


def _python_of(filename: str) -> str:
    parts = filename.removesuffix(".whl").split("-")
    return parts[-3][:100] if filename.endswith(".whl") and len(parts) >= 5 else "source"
