"""Which files of a project were live and yanked, and from which serial to which.

A pure function of the events and pages that are stored of one project, so the order in which they were stored cannot
matter. It begins at the first event, or at a checkpoint, which leads to the same. Nothing here touches the database.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf

from pypi_assets.catalog.derived.checkpoint import Checkpoint, captured, state_of
from pypi_assets.catalog.derived.project_state import (
    NEW_RELEASE,
    Interval,
    IntervalChange,
    ProjectState,
    Trace,
    canonical,
)
from pypi_assets.catalog.derived.seen_pages import SeenPage, Sighting, in_order, newest_by_serial, seen_pages
from pypi_assets.index.actions import NO_FILE_CHANGE, Action, FileChange, file_change
from pypi_assets.index.models import ChangelogEvent

UNEXPLAINED = "unexplained"
LISTED = "listed"
BASELINE = "baseline"

_MOST_AHEAD = 20
"""How many events that change files a page can be ahead of its serial."""
_MOST_LOOSE = 100
"""How many events can follow the newest page before a checkpoint is made without one."""
_Known = tuple[ChangelogEvent, FileChange]


@dataclass(frozen=True, slots=True)
class FileHistory:
    """When one file was live and yanked. `version` is the release that its add event names, else that of its
    filename."""

    filename: str
    version: str
    live: tuple[Interval, ...]
    yanked: tuple[Interval, ...]
    changes: tuple[IntervalChange, ...]

    def is_live(self, serial: int) -> bool:
        """Whether the file was live at `serial`."""
        return any(serial in interval for interval in self.live)


@dataclass(frozen=True, slots=True)
class Fold:
    """What follows from events and pages.

    `histories` has each file that was touched beyond the checkpoint, or every file where there was none: with the
    intervals that had not ended at the checkpoint, and the changes after it. `newest_page` is the greatest serial at
    which a page counts. `unexplained` are the files that the newest sighting changes although no event does.

    `checkpoint` is the state from which a later fold can begin; None where none can be made. It `is_news` where the
    one before does not serve as well.
    """

    histories: dict[str, FileHistory]
    newest_page: int | None
    unexplained: frozenset[str]
    checkpoint: Checkpoint | None
    is_news: bool


def fold(
    events: Sequence[ChangelogEvent],
    sightings: Iterable[Sighting],
    *,
    known_since: int,
    events_through: int,
    version_of: Callable[[str], str],
    checkpoint: Checkpoint | None = None,
) -> Fold | None:
    """What follows from the `events` of a project, in order of serial, and from the `sightings` of its page.

    All events above `known_since` and up to `events_through` are stored. `version_of` returns the release of a
    filename, for files without an add event. Files from before the first event count from `known_since`, or from the
    event that creates the project.

    Where a page differs from what the events lead to, the page wins and the change has the cause UNEXPLAINED. Beyond
    `events_through` the cause is LISTED, since the events that led to the page are not known. Such a page proves
    nothing about earlier serials. A page that is newer than its serial counts where it differs least from the events:
    those up to the index's serial at that time, and later ones that can have happened by then.

    With a `checkpoint`, the events are those above its serial, and the sightings those with a `seen_through` of its
    serial or more. Returns None where they change what was before the checkpoint: then fold again without it.
    """
    if checkpoint is not None and (checkpoint.known_since != known_since or checkpoint.serial > events_through):
        return None
    ordered = in_order(sightings)
    folding = _Folding(ordered, events_through, known_since, version_of, checkpoint)
    try:
        folding.run(events)
    except _PastChangedError:
        return None
    return folding.result()


class _PastChangedError(Exception):
    """An event or a page changes what was before the checkpoint."""


@dataclass(slots=True)
class _Folding:
    """One fold, from a checkpoint or from the first event."""

    sightings: list[Sighting]
    events_through: int
    known_since: int
    version_of: Callable[[str], str]
    start: Checkpoint | None
    state: ProjectState = field(init=False)
    topics: set[tuple[str, str]] = field(default_factory=set)
    unexplained: set[str] = field(default_factory=set)
    first_page: int | None = None
    newest_page: int | None = None
    last_serial: int = 0
    open_serial: int = -1
    open_until: float = -inf
    settled: dict[str, Trace] = field(default_factory=dict)
    captured: Checkpoint | None = None

    def run(self, events: Sequence[ChangelogEvent]) -> None:
        """Applies all events and pages."""
        start = self.start
        after = self.known_since if start is None else start.serial
        known = [(event, file_change(event)) for event in events if event.serial > after]
        if start is None:
            seen = list(seen_pages(self.sightings, [event for event, _ in known], self.known_since))
            pages = newest_by_serial(seen)
            judged = [page for page in pages if page.serial <= self.events_through]
            first = (page for page in seen if judged and page.serial == judged[0].serial)
            self._begin(known, [*islice(first, 1), *judged[1:]])  # what was there before is what it showed first
        else:
            pages = self._continue(known, start)
        self._apply_all(known, pages)

    def _begin(self, known: Sequence[_Known], pages: Sequence[SeenPage]) -> None:
        self.state = ProjectState(self.version_of)
        if pages:
            self.first_page = pages[0].serial
        returned = _enter_baseline(self.state, known, pages)
        newest = len(self.sightings) - 1
        self.unexplained |= {name for name, page in returned.items() if page.sighting == newest}
        if pages and pages[0].sighting == newest and pages[0].serial > self.known_since:
            # a page can show early what a later event adds or yanks
            self.unexplained |= {name for name, yanked in pages[0].yanked.items() if yanked or name in self.state.files}
        if self.known_since > 0:
            _enter_removed(self.state, known, pages)
        self.state.refresh(list(self.state.files), self._exists_since(known, pages), BASELINE)

    def _exists_since(self, known: Sequence[_Known], pages: Sequence[SeenPage]) -> int:
        """Since when files from before the first event count. None of a project existed before its creation."""
        if _is_created(known) and pages and pages[0].serial >= known[0][0].serial:
            return known[0][0].serial
        return self.known_since

    def _continue(self, known: Sequence[_Known], start: Checkpoint) -> list[SeenPage]:
        """Begins at the checkpoint; returns the pages that count after it."""
        self.state = state_of(start, self.version_of)
        self.topics = set(start.topics)
        self.first_page, self.newest_page = start.first_page, start.newest_page
        self.last_serial = start.last_serial
        self.open_serial, self.open_until = start.open_serial, start.open_until
        pages = newest_by_serial(
            seen_pages(
                self.sightings,
                [event for event, _ in known],
                self.known_since,
                after=start.serial,
                last_serial=start.last_serial,
            )
        )
        while pages and pages[0].serial <= start.serial:
            page = pages.pop(0)
            if page.yanked != self.state.visible:
                raise _PastChangedError
            if page.serial <= self.open_serial:  # seen again
                self._leave_open(page)
        if any(event.timestamp <= self.open_until for event, _ in known):
            raise _PastChangedError  # a page can have shown early what it changes
        if start.first_page is None and pages and pages[0].serial <= self.events_through:
            raise _PastChangedError
        return pages

    def _apply_all(self, known: Sequence[_Known], pages: list[SeenPage]) -> None:
        serials = [event.serial for event, _ in known]
        judged = [page for page in pages if page.serial <= self.events_through]
        limit = self._first_open_serial()
        done = 0
        while judged:
            page = judged.pop(0)
            upto = bisect_right(serials, page.serial)
            for event, change in known[done:upto]:
                self._apply(event, change)
            done = upto
            counts_at = self._agreeing_serial(page, known[done : bisect_right(serials, page.may_show_through)])
            if counts_at == page.serial:
                self._correct(page)
            elif all(other.serial != counts_at for other in judged):
                judged.append(replace(page, serial=counts_at, through=counts_at, may_show_through=counts_at))
                judged.sort(key=lambda one: one.serial)
                if counts_at >= limit:
                    limit = page.serial  # what it means is not part of the state here
            is_last = page.serial < limit and not any(other.serial < limit for other in judged)
            if is_last and (len(known) - done <= _MOST_LOOSE or limit <= self.events_through):
                self._capture(page.serial)
        for event, change in known[done:]:
            self._apply(event, change)
        if self.captured is None and len(known) - done > _MOST_LOOSE and limit > self.events_through:
            self._capture(self.events_through)
        for page in pages:
            if page.serial > self.events_through:
                self._correct(page)

    def _first_open_serial(self) -> int:
        """The least serial at which what a page means is not decided yet: events that it may show are not stored."""
        return min(
            (
                seen.seen_through if seen.page_serial is None else seen.page_serial
                for seen in self.sightings
                if seen.seen_through > self.events_through
            ),
            default=self.events_through + 1,
        )

    def _apply(self, event: ChangelogEvent, change: FileChange) -> None:
        self._note_topic(event, change.action)
        if self.start is not None and change.action == Action.ADD_FILE:
            file = self.state.files.get(change.filename or "")
            if file is not None and file.is_shown_alone and file.is_present:
                raise _PastChangedError  # a page showed it early
        is_removal = change.action == Action.REMOVE_FILE and change.filename not in self.state.files
        if self.start is not None and self.known_since > 0 and is_removal:
            raise _PastChangedError  # it may have been there before the first event
        self.state.apply(event, change)
        self.last_serial = max(self.last_serial, event.serial)

    def _note_topic(self, event: ChangelogEvent, action: Action) -> None:
        """Remembers what a yank or a quarantine is about. What was before follows from the first event about it."""
        topic = _TOPICS.get(action)
        if topic is None:
            return
        if action in _OF_PROJECT:
            keys = {(topic, _PROJECT)}
            is_about_the_past = action in _CLEARINGS
        else:
            releases = self.state.releases_named(event.version or "")
            keys = {(topic, release.text) for release in releases}
            is_about_the_past = (
                action in _CLEARINGS
                if topic == _QUARANTINE
                else any(self.state.files[name].is_baseline for one in releases for name in one.files)
                or (action == Action.UNYANK_RELEASE and not all(one.is_yanked for one in releases))
            )
        if self.start is not None and is_about_the_past and not keys <= self.topics:
            raise _PastChangedError
        self.topics |= keys
        if action in _CLEARINGS:
            self.topics.add((_CLEARED, _PROJECT))

    def _agreeing_serial(self, page: SeenPage, following: Sequence[_Known]) -> int:
        """The serial at which the page differs least from the events: its own, or that of one of those `following` that
        it can show already.

        Beyond the index's serial when the page was answered, none counts after one that contradicts the page.
        """
        ahead = [one for one in following if one[1].action not in NO_FILE_CHANGE]
        if not ahead:
            return page.serial
        unexplained = self.state.differences(page.yanked)
        least = len(unexplained)
        best = page.serial
        if least:
            tried = self.state.tried(ahead[:_MOST_AHEAD])
            for (event, change), state in zip(ahead, tried, strict=False):
                differing = len(state.differences(page.yanked))
                if differing < least:
                    least, best = differing, event.serial
                elif event.serial > page.through and best == page.serial and state.concerns(event, change, unexplained):
                    break
        return best

    def _correct(self, page: SeenPage) -> None:
        if (
            self.start is not None
            and (_CLEARED, _PROJECT) in self.topics
            and any(name not in self.state.files for name in self.state.differences(page.yanked))
        ):
            raise _PastChangedError  # a quarantine can have hidden it since before the first event
        cause = UNEXPLAINED if page.serial <= self.events_through else LISTED
        changed = self.state.correct(page.yanked, max(page.serial, self.known_since), cause)
        if changed and cause == UNEXPLAINED:
            self._leave_open(page)
            if page.sighting == len(self.sightings) - 1:
                self.unexplained |= changed
        self.newest_page = max(self.newest_page or 0, page.serial)

    def _leave_open(self, page: SeenPage) -> None:
        """What the page shows at its serial is unexplained until an event comes that it can show."""
        self.open_serial = max(self.open_serial, page.serial)
        self.open_until = max(self.open_until, self.sightings[page.sighting].may_show_until)

    def _capture(self, serial: int) -> None:
        if serial < self.known_since or (self.start is not None and serial <= self.start.serial):
            return
        page_serials = (seen.page_serial for seen in self.sightings if seen.is_page and seen.page_serial is not None)
        self.captured = Checkpoint(
            serial=serial,
            known_since=self.known_since,
            first_page=self.first_page,
            newest_page=self.newest_page,
            last_serial=max([self.last_serial, *(one for one in page_serials if one <= serial)]),
            topics=frozenset(self.topics),
            open_serial=self.open_serial,
            open_until=self.open_until,
            **captured(self.state),
        )
        self.settled, self.state.traces = self.state.traces, {}

    def result(self) -> Fold:
        """What follows, once all events and pages are applied."""
        unsettled = self.state.traces
        touched = self.settled.keys() | unsettled.keys()
        touched |= self.state.files.keys() if self.start is None else set(self.start.unsettled)
        new, is_news = self.captured, self.start is None
        if self.start is not None:
            if new is None:
                new = replace(self.start)
            new.facts = self.start.facts
            is_news = bool(touched) or any(
                getattr(new, name) != getattr(self.start, name) for name in ("last_serial", "topics", "open_until")
            )
        if new is not None:
            new.unsettled = tuple(sorted(unsettled))
        return Fold(
            histories={name: self._history(name, self.settled.get(name), unsettled.get(name)) for name in touched},
            newest_page=self.newest_page,
            unexplained=frozenset(self.unexplained),
            checkpoint=new,
            is_news=is_news,
        )

    def _history(self, filename: str, *traces: Trace | None) -> FileHistory:
        file = self.state.files.get(filename)
        if file is None:  # an earlier fold saw it beyond the checkpoint
            return FileHistory(filename, self.version_of(filename), (), (), ())
        found = [trace for trace in traces if trace is not None]
        return FileHistory(
            filename,
            file.release.text,
            (*(one for trace in found for one in trace.live), *_still(file.live_since)),
            (*(one for trace in found for one in trace.yanked), *_still(file.yanked_since)),
            tuple(change for trace in found for change in trace.changes),
        )


def _still(since: int | None) -> tuple[Interval, ...]:
    return () if since is None else (Interval(since, None),)


@dataclass(frozen=True, slots=True)
class _Topic:
    """An event about yanks or quarantines of `text`. `about` is the project, a release, or all of one version."""

    topic: str
    about: str
    text: str
    serial: int
    action: Action

    @property
    def itself(self) -> str:
        """What the event names, the same before and after a file of that text is known."""
        return _PROJECT if self.about == _PROJECT else _EXACT + self.text


def _is_created(known: Sequence[_Known]) -> bool:
    """Whether the first event creates the project, so that nothing of it existed before."""
    return bool(known) and known[0][1].action == Action.CREATE_PROJECT


def _enter_baseline(state: ProjectState, known: Sequence[_Known], pages: Sequence[SeenPage]) -> dict[str, SeenPage]:
    """Enters what existed before the first event: from the first page, from what later events undo, and from later
    pages what a quarantine hid from the first one. Returns these files, each with the page that shows it first.

    Such a page can be newer than its serial: then an event that is not stored yet may have added or yanked the file.
    """
    first_page = pages[0] if pages else None
    returned: dict[str, SeenPage] = {}
    topics = _topics(known, [] if first_page is None else map(state.version_of, first_page.yanked))
    on_page = (
        {about for name in first_page.yanked for about in _abouts(state.version_of(name))}
        if first_page and topics
        else set()
    )
    first_of: dict[tuple[str, str], _Topic] = {}
    named: set[tuple[str, str]] = set()
    cleared_at: dict[str, int] = {}
    after_page: set[str] = set()
    for one in topics:
        if (one.topic, one.itself) not in named:
            first_of.setdefault((one.topic, one.about), one)
        named.add((one.topic, one.itself))
        if one.topic == _QUARANTINE and first_page is not None and one.serial > first_page.serial:
            if after_page.isdisjoint({one.about, one.itself}) and one.action in _CLEARINGS:
                cleared_at[one.about] = one.serial
            if one.action in _CLEARINGS or one.serial > first_page.through or one.about in on_page:
                after_page.update((one.about, one.itself))  # no quarantine has hidden from the page what this one hides
    added: dict[str, int] = {}
    for event, change in known:
        if change.action == Action.ADD_FILE and change.filename is not None:
            added.setdefault(change.filename, event.serial)
    for page in pages if cleared_at else pages[:1]:
        for filename in sorted(page.yanked.keys() - state.files.keys()):
            if _came_by_event(filename, page, added, known):
                continue
            version = state.version_of(filename)
            abouts = _abouts(version) if topics else (_PROJECT,)
            is_hidden = any(cleared_at.get(about, page.serial + 1) <= page.serial for about in abouts)
            if page is not first_page and not is_hidden:
                continue  # no quarantine can have hidden it from the first page
            if page is not first_page:
                returned[filename] = page
            yanks = [first_of[_YANK, about] for about in abouts if (_YANK, about) in first_of]
            first_yank = min(yanks, key=lambda one: one.serial, default=None)
            file = state.enter(filename, version)
            file.is_present = file.is_baseline = file.is_shown_alone = True
            file.is_yanked = page.yanked[filename] if first_yank is None else first_yank.action == Action.UNYANK_RELEASE
            file.release.is_yanked |= file.is_yanked
    if first_page is not None:
        _enter_yanked_releases(state, known, first_page)
    for one in () if _is_created(known) else first_of.values():
        if one.action == Action.UNQUARANTINE_PROJECT:
            state.is_quarantined = True
        elif one.action in {Action.UNQUARANTINE_RELEASE, Action.UNYANK_RELEASE}:
            text = one.about[1:]
            exact = [state.release(text)] if one.about.startswith(_EXACT) else None
            for release in exact or state.spelled_like(text) or state.releases_named(text):
                release.is_quarantined |= one.action == Action.UNQUARANTINE_RELEASE
                release.is_yanked |= one.action == Action.UNYANK_RELEASE
    return returned


def _abouts(version: str) -> tuple[str, ...]:
    """What topics about a file of that release can be about."""
    return (_PROJECT, _EXACT + version, _ALIKE + canonical(version))


def _enter_yanked_releases(state: ProjectState, known: Sequence[_Known], page: SeenPage) -> None:
    """Enters the releases that were yanked before the first event, though no file of theirs is left from then: the page
    shows a later file of theirs as yanked, and no event that it can show has made the release, or yanked it."""
    shown = [(event, change) for event, change in known if event.serial <= page.through]
    decided = {canonical(event.version) for event, change in shown if event.version and _decides_yank(event, change)}
    if any(change.action == Action.REMOVE_PROJECT for _, change in shown) or _is_created(known):
        return
    for event, change in shown:
        if change.action == Action.ADD_FILE and change.filename is not None and page.yanked.get(change.filename):
            version = event.version or state.version_of(change.filename)
            if canonical(version) not in decided:
                state.release(version).is_yanked = True


def _decides_yank(event: ChangelogEvent, change: FileChange) -> bool:
    """Whether it follows from the event if the release that it names is yanked."""
    return change.action in _DECIDING or event.action == NEW_RELEASE


def _enter_removed(state: ProjectState, known: Sequence[_Known], pages: Sequence[SeenPage]) -> None:
    """Enters the files that an event removes and that none before it has added: they existed before the first event.

    Nothing did of a project that the first event creates. What an older page lacks was not visible.
    """
    if _is_created(known):
        return
    added: set[str | None] = set()
    for event, change in known:
        if any(page.serial < event.serial and page.may_show_through < event.serial for page in pages[:1]):
            return
        if change.action == Action.ADD_FILE:
            added.add(change.filename)
        elif (
            change.action == Action.REMOVE_FILE
            and change.filename
            and not (change.filename in added or change.filename in state.files)
        ):
            file = state.enter(change.filename, event.version or state.version_of(change.filename))
            file.is_present, file.is_yanked = True, file.release.is_yanked


def _topics(known: Sequence[_Known], texts_of_page: Iterable[str]) -> list[_Topic]:
    """The events about yanks and quarantines."""
    found = []
    texts: set[str] | None = None
    announced: list[str] = []
    for event, change in known:
        if event.version is not None and (change.action == Action.ADD_FILE or event.action == NEW_RELEASE):
            announced.append(event.version)
        topic = _TOPICS.get(change.action)
        if topic is None:
            continue
        if change.action in _OF_PROJECT:
            about = _PROJECT
        else:
            texts = set(texts_of_page) if texts is None else texts
            texts.update(announced)
            announced.clear()
            version = event.version or ""
            about = _EXACT + version if version in texts else _ALIKE + canonical(version)
        found.append(_Topic(topic, about, event.version or "", event.serial, change.action))
    return found


def _came_by_event(filename: str, page: SeenPage, added: dict[str, int], known: Sequence[_Known]) -> bool:
    """Whether an event that the page can show added the file, and it was not there before."""
    serial = added.get(filename)
    if serial is None or serial > page.may_show_through:
        return False
    removal = FileChange(Action.REMOVE_FILE, filename)
    return serial <= page.serial or not any(
        page.serial < event.serial < serial and change == removal for event, change in known
    )


_PROJECT = ""
_EXACT, _ALIKE = "=", "~"
_QUARANTINE = "quarantine"
_YANK = "yank"
_CLEARED = "cleared"
_CLEARINGS = frozenset({Action.UNQUARANTINE_PROJECT, Action.UNQUARANTINE_RELEASE})
_OF_PROJECT = frozenset({Action.QUARANTINE_PROJECT, Action.UNQUARANTINE_PROJECT})
_DECIDING = frozenset({Action.YANK_RELEASE, Action.UNYANK_RELEASE, Action.REMOVE_RELEASE})
_TOPICS = {
    Action.QUARANTINE_PROJECT: _QUARANTINE,
    Action.UNQUARANTINE_PROJECT: _QUARANTINE,
    Action.QUARANTINE_RELEASE: _QUARANTINE,
    Action.UNQUARANTINE_RELEASE: _QUARANTINE,
    Action.YANK_RELEASE: _YANK,
    Action.UNYANK_RELEASE: _YANK,
}
