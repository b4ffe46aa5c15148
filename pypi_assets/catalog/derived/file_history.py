"""Compute which files of a project were live and yanked, and at which serials.

`fold` is a pure function of one project's stored events and pages, so the order in which they were stored cannot
matter. It starts from the first event or from a checkpoint, with the same result. This module does not access the
database.
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
"""How many events that change files a page can be ahead of its serial, at most."""
_MOST_LOOSE = 100
"""How many events may follow the newest page before a checkpoint is made without a page."""
_Known = tuple[ChangelogEvent, FileChange]


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The serials at which one file was live and yanked.

    `version` is the release that its add event names, or, without an add event, the release in its filename.
    """

    filename: str
    version: str
    live: tuple[Interval, ...]
    yanked: tuple[Interval, ...]
    changes: tuple[IntervalChange, ...]

    def is_live(self, serial: int) -> bool:
        """Check whether the file was live at `serial`."""
        return any(serial in interval for interval in self.live)


@dataclass(frozen=True, slots=True)
class Fold:
    """The result of folding events and pages.

    `histories` has each file that changed after the checkpoint, or every file if there was no checkpoint. Each history
    has the intervals that had not ended at the checkpoint, and the changes after it. `newest_page` is the greatest
    serial at which a page counts. `unexplained` are the files that the newest sighting changes although no event does.

    `checkpoint` is the state from which a later fold can start; None if none can be made. If `is_news` is False, the
    earlier checkpoint serves as well.
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
    """Return the history of a project's files, from its `events` in order of serial and the `sightings` of its page.

    All events above `known_since` and up to `events_through` are stored. `version_of` returns the release of a
    filename, for files without an add event. Files that existed before the first event count from `known_since`, or
    from the event that creates the project.

    If a page differs from the state that the events lead to, the page wins, and the change has the cause UNEXPLAINED.
    For a page beyond `events_through`, the cause is LISTED, since the events that led to it are not known. Such a page
    proves nothing about earlier serials. A page can be newer than its serial. It counts at the serial at which it
    differs least from the events: the candidates are events up to the index's serial when the page was seen, and later
    ones that can have happened by then.

    With a `checkpoint`, `events` must be the events above its serial, and `sightings` those whose `seen_through` is its
    serial or more. Returns None if they change the past before the checkpoint: then fold again without it.
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
    """An event or a page changes the past before the checkpoint."""


@dataclass(slots=True)
class _Folding:
    """One run of `fold`, from a checkpoint or from the first event."""

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
        """Apply all events and pages."""
        start = self.start
        after = self.known_since if start is None else start.serial
        known = [(event, file_change(event)) for event in events if event.serial > after]
        if start is None:
            seen = list(seen_pages(self.sightings, [event for event, _ in known], self.known_since))
            pages = newest_by_serial(seen)
            judged = [page for page in pages if page.serial <= self.events_through]
            first = (page for page in seen if judged and page.serial == judged[0].serial)
            # the first page of the least serial defines the baseline
            self._begin(known, [*islice(first, 1), *judged[1:]])
        else:
            pages = self._continue(known, start)
        self._apply_all(known, pages)

    def _begin(self, known: Sequence[_Known], pages: Sequence[SeenPage]) -> None:
        self.state = ProjectState(self.version_of)
        if pages:
            self.first_page = pages[0].serial
            if known and known[-1][0].serial > pages[0].may_show_through:
                self._leave_open(pages[0])  # a later event with an earlier time can extend what the page can show
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
        """Return the serial from which files that predate the first event count.

        This is `known_since`, or the creation of the project, since none of its files existed before.
        """
        if _is_created(known) and pages and pages[0].serial >= known[0][0].serial:
            return known[0][0].serial
        return self.known_since

    def _continue(self, known: Sequence[_Known], start: Checkpoint) -> list[SeenPage]:
        """Start from the checkpoint, and return the pages that count after it."""
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
            if page.serial <= self.open_serial:  # the page was seen again
                self._leave_open(page)
        if any(event.timestamp <= self.open_until for event, _ in known):
            raise _PastChangedError  # a page can have shown the changes of such an event early
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
                    limit = page.serial  # the page's meaning is not part of the state here
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
        """Return the least serial at which a page's meaning is undecided.

        That is so if not all events that the page may show are stored.
        """
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
                raise _PastChangedError  # a page showed it before the event
        is_removal = change.action == Action.REMOVE_FILE and change.filename not in self.state.files
        if self.start is not None and self.known_since > 0 and is_removal:
            raise _PastChangedError  # it may have existed before the first event
        self.state.apply(event, change)
        self.last_serial = max(self.last_serial, event.serial)

    def _note_topic(self, event: ChangelogEvent, action: Action) -> None:
        """Record the subject of a yank or quarantine event.

        The first event about a subject implies its state before. So an event about a new subject can change the past.
        """
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
        """Return the serial at which the page differs least from the events.

        It is the page's own serial, or the serial of one of the `following` events that the page can already show.
        Events beyond the index's serial at the time of the page stop counting after the first one that contradicts the
        page.
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
            raise _PastChangedError  # a quarantine can have hidden the file since before the first event
        cause = UNEXPLAINED if page.serial <= self.events_through else LISTED
        changed = self.state.correct(page.yanked, max(page.serial, self.known_since), cause)
        if changed and cause == UNEXPLAINED:
            self._leave_open(page)
            if page.sighting == len(self.sightings) - 1:
                self.unexplained |= changed
        self.newest_page = max(self.newest_page or 0, page.serial)

    def _leave_open(self, page: SeenPage) -> None:
        """Mark the changes on the page as unexplained, until an event comes that the page can have shown early."""
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
        """Return the result, after all events and pages were applied."""
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
    """An event about a yank or a quarantine.

    `about` is its subject: the project, one release, or all spellings of one version. `text` is the version that the
    event names.
    """

    topic: str
    about: str
    text: str
    serial: int
    action: Action

    @property
    def itself(self) -> str:
        """Return the subject as the event spells it. It stays the same when a file with this spelling appears."""
        return _PROJECT if self.about == _PROJECT else _EXACT + self.text


def _is_created(known: Sequence[_Known]) -> bool:
    """Check whether the first event creates the project, so that nothing of it existed before."""
    return bool(known) and known[0][1].action == Action.CREATE_PROJECT


def _enter_baseline(state: ProjectState, known: Sequence[_Known], pages: Sequence[SeenPage]) -> dict[str, SeenPage]:
    """Enter the files that existed before the first event, in the state in which they were then.

    The files come from the first page, and from later pages if a quarantine can have hidden them from the first one.
    Their state also follows from events that later undo a yank or a quarantine.

    Return the files from later pages, each with the first page that shows it. Such a page can be newer than its serial:
    then an event that is not stored yet may have added or yanked the file.
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
                # a later unquarantine of this subject then ends a quarantine from after the page
                after_page.update((one.about, one.itself))
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
    """Return the subjects that an event can have if it concerns files of this release."""
    return (_PROJECT, _EXACT + version, _ALIKE + canonical(version))


def _enter_yanked_releases(state: ProjectState, known: Sequence[_Known], page: SeenPage) -> None:
    """Mark releases as yanked that were yanked before the first event, although none of their files remains from then.

    The evidence is a later file of such a release: the page shows it as yanked, and no event that the page can show has
    created or yanked the release.
    """
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
    """Check whether the event determines if the release that it names is yanked."""
    return change.action in _DECIDING or event.action == NEW_RELEASE


def _enter_removed(state: ProjectState, known: Sequence[_Known], pages: Sequence[SeenPage]) -> None:
    """Enter files that an event removes and no earlier event has added: they existed before the first event.

    This cannot happen if the first event creates the project. A file that an older page lacks was not visible.
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
    """Return the events about yanks and quarantines."""
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
    """Check whether an event that the page can show added the file, and the file did not exist before it."""
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
