"""Compute the new rows of a project's files, and the changes to log, without access to the database."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pypi_assets.catalog.derived.checkpoint import Checkpoint
from pypi_assets.catalog.derived.file_history import FileHistory, Fold, fold
from pypi_assets.catalog.derived.project_state import Interval, canonical
from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.derived.stored_files import PageFacts, StoredFile
from pypi_assets.catalog.ledger.range_ledger import Seals
from pypi_assets.catalog.observed.projects import CORRECTED, CatalogProject
from pypi_assets.catalog.reads.read_outcomes import GONE, ReadOutcome
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.record import FilenameParts
from pypi_assets.index.actions import file_change
from pypi_assets.index.models import ChangelogEvent, IndexFile, ProjectPage

_UNREAD = frozenset({ReadOutcome.PENDING, ReadOutcome.EXHAUSTED})


REPLACED = "replaced"
"""The cause of the change at which a file's content is replaced under the same name."""
UNSEEN = -1
"""In place of the digest of a file's facts: the file has no URL yet, and waits for a page that shows it."""


@dataclass(frozen=True, slots=True)
class NewestPage:
    """The newest page of a project: its serial (None if no page was ever seen), and the filenames that it shows.

    The stored facts of these files are as of this page, even if their rows have an earlier `page_serial`.
    """

    serial: int | None
    names: Collection[str]


@dataclass(frozen=True, slots=True)
class ProjectInputs:
    """The stored inputs of a project. With a `checkpoint`, only those beyond it, and the files that change.

    `page` was just seen, and `facts` has the digest of the facts of each of its files. `newest` is the newest page
    before it.
    """

    project: CatalogProject
    names: "ParsedNames"
    page: ProjectPage | None
    facts: Mapping[str, int]
    events_through: int
    events: Sequence[ChangelogEvent]
    sightings: Sequence[Sighting]
    newest: NewestPage
    checkpoint: Checkpoint | None
    files: dict[str, StoredFile] = field(default_factory=dict)
    live: Mapping[int, tuple[Interval, ...]] = field(default_factory=dict)
    yanked: Mapping[int, tuple[Interval, ...]] = field(default_factory=dict)
    _touched: set[str] = field(default_factory=set, repr=False, compare=False)

    @property
    def is_page_newest(self) -> bool:
        """Check whether a page was just seen, and no newer page was seen before."""
        return self.page is not None and (self.newest.serial is None or self.page.last_serial >= self.newest.serial)

    def touched(self) -> set[str]:
        """Return the files whose rows may change, as far as that is known before the fold.

        These are files whose facts on the page are new, files that are no longer on it, files named by events, and
        files whose state beyond the checkpoint is stored.
        """
        if not self._touched:
            self._touched.update(self._find_touched())
        return self._touched

    def _find_touched(self) -> set[str]:
        found = {name for event in self.events if (name := file_change(event).filename) is not None}
        if self.checkpoint is None or self.page is None:
            found.update(self.facts)
        elif self.is_page_newest:
            known = self.checkpoint.facts
            found.update(name for name, fact in self.facts.items() if known.get(name) != fact)
            found.update(name for name in self.newest.names if name not in self.facts)
        else:
            found.update(name for name in self.facts if name not in self.newest.names)
        if self.checkpoint is not None:
            found.update(self.checkpoint.unsettled)
            found.update(name for name, fact in self.checkpoint.facts.items() if fact == UNSEEN)
        return found


@dataclass(slots=True)
class FileUpdate:
    """One file of a project: its row if it has one, its history, and its intervals as they are stored.

    `shown` has the facts on a page that was just seen, unless the facts of a newer page are stored. `page_serial` is
    the serial of the page whose facts count. If `is_on_newest`, this page is the project's newest one, so the row need
    not have its serial. `id` is 0 until the file has a row. `shown_generation` is the generation on the page. `skipped`
    is the reason why the rules of scopes skip the file, if they do.
    """

    name: str
    stored: StoredFile | None
    shown: PageFacts | None
    page_serial: int | None
    history: FileHistory
    old_live: tuple[Interval, ...] = ()
    old_yanked: tuple[Interval, ...] = ()
    id: int = 0
    is_on_newest: bool = False
    shown_generation: int = 1
    skipped: str | None = None

    @property
    def differing(self) -> set[tuple[str, str, int]]:
        """Return the boundaries that were added to the intervals or removed, each as (flag, edge, serial).

        For example, `("yanked", "end", 1350)`.
        """
        if self.old_live == self.history.live and self.old_yanked == self.history.yanked:
            return set()
        return _boundaries(self.old_live, self.old_yanked) ^ _boundaries(self.history.live, self.history.yanked)

    @property
    def has_new_facts(self) -> bool:
        """Check whether the page shows other facts of a known file than are stored."""
        return self.stored is not None and self.shown is not None and self.shown != self.stored.facts

    @property
    def is_replaced(self) -> bool:
        """Check whether the page shows another content under this name than is stored, by its hash or generation."""
        if self.stored is None or self.shown is None or self.stored.facts.url is None:
            return False
        before, now = self.stored.facts.sha256, self.shown.sha256
        return (None not in {before, now} and before != now) or self.shown_generation > self.stored.generation

    @property
    def generation(self) -> int:
        """Return the generation of the file, which counts its contents, including the content on the page."""
        if self.stored is None:
            return self.shown_generation
        return max(self.stored.generation + self.is_replaced, self.shown_generation)

    @property
    def is_to_be_read(self) -> bool:
        """Check whether a known file must be read.

        It must if it has a URL for the first time or its content was replaced, or if it had vanished and is live now.
        """
        if self.stored is None:
            return False
        known = self.stored.facts
        if self.stored.outcome == ReadOutcome.VANISHED and (self.shown or known).url is not None and self.is_live:
            return True
        return self.shown is not None and (known.url is None or self.is_replaced)

    @property
    def is_queued(self) -> bool:
        """Check whether the file must be read, and is not skipped."""
        is_new = self.stored is None and self.shown is not None
        return (is_new or self.is_to_be_read) and self.skipped is None

    @property
    def known_facts(self) -> PageFacts | None:
        """Return the facts that a page has shown of the file; None if only events mention it."""
        facts = self.shown or (self.stored and self.stored.facts)
        return facts if facts and facts.url is not None else None

    @property
    def is_live(self) -> bool:
        """Check whether the file is live now."""
        return bool(self.history.live) and self.history.live[-1].end is None

    @property
    def is_unseen(self) -> bool:
        """Check whether so far only events mention the file, and no attempt was made to read it."""
        facts = self.shown or (self.stored and self.stored.facts)
        return (not facts or facts.url is None) and (self.stored is None or self.stored.outcome in _UNREAD)

    def has_vanished(self, newest_page: int | None) -> bool:
        """Check whether the file can no longer be read.

        It cannot if only events mention it, and a page as new as its add event lacks it. But if the file is live now,
        it waits for the next page. A file whose attempts were exhausted because it was deleted has also vanished, once
        it is known not to be live.
        """
        if self.stored is not None and (self.stored.outcome, self.stored.error_kind) == (ReadOutcome.EXHAUSTED, GONE):
            return not self.is_live
        if newest_page is None or not self.is_unseen or self.is_live:
            return False
        known = [one.start for one in self.history.live[:1]] or [one.serial for one in self.history.changes[:1]]
        return bool(known) and known[0] <= newest_page and not self.history.is_live(newest_page)

    @property
    def corrected_at(self) -> int | None:
        """Return the serial from which the release or the facts of a known file change; None if they do not."""
        if self.stored is None:
            return None
        if self.is_replaced:
            return self.page_serial
        if self.stored.version != self.history.version:
            return self.history.changes[-1].serial if self.history.changes else None
        return self.page_serial if self.has_new_facts else None


@dataclass(frozen=True, slots=True)
class ProjectUpdate:
    """The computed changes of a project. `newest_page` is the greatest serial at which a page of it counts."""

    project: CatalogProject
    names: "ParsedNames"
    newest_page: int | None
    files: list[FileUpdate] = field(default_factory=list)


class ParsedNames:
    """The parts of a project's filenames. Each filename is parsed once."""

    def __init__(self, project: CatalogProject) -> None:
        self._project = project.normalized
        self._parts: dict[str, FilenameParts] = {}

    def parts(self, filename: str) -> FilenameParts:
        if filename not in self._parts:
            self._parts[filename] = parse_filename(filename, self._project)
        return self._parts[filename]

    def version(self, filename: str) -> str:
        return self.parts(filename).version or ""


class ChangeRow(NamedTuple):
    """A row of `changes`: a change at `serial`, and the serial under which dumps publish it."""

    distribution_id: int
    serial: int
    cause: str
    logged_serial: int


class ReleaseTexts:
    """The releases of files that no event names, in the spelling of the index if that is known.

    The stored release of a file is kept. A version from a filename is mapped to one of the versions that the newest
    page lists (PEP 700): to the same text, or else to the only one with the same canonical form.
    """

    def __init__(self, names: ParsedNames, known: Mapping[str, StoredFile], page: ProjectPage | None) -> None:
        self._names, self._known = names, known
        self._texts = frozenset() if page is None else frozenset(page.versions)
        self._shown = {file.filename for file in page.files} if page is not None and page.versions else frozenset()
        self._spellings: dict[str, list[str]] = {}

    def version(self, filename: str) -> str:
        row = self._known.get(filename)
        guessed = self._names.version(filename) if row is None else row.version
        if guessed in self._texts or filename not in self._shown:
            return guessed
        if not self._spellings:
            for text in self._texts:
                self._spellings.setdefault(canonical(text), []).append(text)
        alike = self._spellings.get(canonical(guessed), [])
        return alike[0] if len(alike) == 1 else guessed


def fold_inputs(inputs: ProjectInputs) -> Fold | None:
    """Fold the inputs of a project. Return None if they change the past before the checkpoint."""
    page = inputs.page if inputs.is_page_newest else None
    return fold(
        inputs.events,
        inputs.sightings,
        known_since=inputs.project.known_since,
        events_through=inputs.events_through,
        version_of=ReleaseTexts(inputs.names, inputs.files, page).version,
        checkpoint=inputs.checkpoint,
    )


def compute_update(inputs: ProjectInputs, folded: Fold) -> ProjectUpdate:
    """Return the changes to a project's rows, from its fold and the page that was just seen."""
    page = inputs.page
    shown = {} if page is None else {file.filename: file for file in page.files if file.url is not None}
    newest: Collection[str] = shown if inputs.is_page_newest else inputs.newest.names
    update = ProjectUpdate(inputs.project, inputs.names, folded.newest_page)
    for name in sorted({*inputs.files, *folded.histories, *(inputs.touched() & shown.keys())}):
        file = _file_update(name, inputs, folded)
        file.is_on_newest = name in newest
        if name in shown and page is not None and (file.page_serial is None or file.page_serial <= page.last_serial):
            file.shown, file.page_serial = _facts_of(shown[name], file.stored), page.last_serial
            file.shown_generation = shown[name].generation
        update.files.append(file)
    return update


def _facts_of(shown: IndexFile, stored: StoredFile | None) -> PageFacts:
    """Return the facts that the page shows of a file. If it shows no hash, the stored hash of the content is kept."""
    facts = PageFacts.of(shown)
    if facts.sha256 is None and stored is not None and shown.generation <= stored.generation:
        facts = facts._replace(sha256=stored.facts.sha256)
    return facts


def _file_update(name: str, inputs: ProjectInputs, folded: Fold) -> FileUpdate:
    """Return the file as it was before the page that was just seen, with its complete history."""
    row, history = inputs.files.get(name), folded.histories.get(name)
    if row is None:
        known = history or FileHistory(name, inputs.names.version(name), (), (), ())
        return FileUpdate(name, None, None, None, known)
    live, yanked = inputs.live.get(row.id, ()), inputs.yanked.get(row.id, ())
    start = None if inputs.checkpoint is None else inputs.checkpoint.serial
    if history is None:  # unchanged, or shown by a page that another page of the same serial has replaced
        kept = (live, yanked) if start is not None else ((), ())
        history = FileHistory(name, row.version, *kept, ())
    elif start is not None:
        history = replace(
            history,
            live=_intervals_up_to(live, start) + history.live,
            yanked=_intervals_up_to(yanked, start) + history.yanked,
        )
    is_shown = name in inputs.newest.names and row.facts.url is not None
    page_serial = inputs.newest.serial if is_shown else row.page_serial
    return FileUpdate(name, row, None, page_serial, history, live, yanked, row.id)


def _intervals_up_to(intervals: Iterable[Interval], serial: int) -> tuple[Interval, ...]:
    """Return the intervals that had ended by `serial`, which later events do not change."""
    return tuple(one for one in intervals if one.end is not None and one.end <= serial)


def first_visible_change(updates: Iterable[ProjectUpdate]) -> int | None:
    """Return the least serial at which any answer about these files changes; None if none does.

    The facts of a file have no serials: a change of them is visible since the file was first live.
    """
    return min((serial for update in updates for serial in _visible_changes(update)), default=None)


def _visible_changes(update: ProjectUpdate) -> Iterator[int]:
    for file in update.files:
        yield from _visible_since(file, has_vanished=file.has_vanished(update.newest_page))


def _visible_since(file: FileUpdate, *, has_vanished: bool) -> Iterator[int]:
    yield from (serial for _, _, serial in file.differing)
    if file.stored is not None:
        is_moved = file.stored.version != file.history.version
        if is_moved or has_vanished or file.has_new_facts or file.is_to_be_read:
            yield from (interval.start for interval in (*file.old_live, *file.history.live))


def logged_changes(updates: Iterable[ProjectUpdate], sealed: Seals) -> Iterator[ChangeRow]:
    """Yield the changes for dumps to publish: each at its own serial, or after the sealed serials.

    Each file must have its id.
    """
    for update in updates:
        for file in update.files:
            causes = {change.serial: change.cause for change in file.history.changes}
            logged = {(serial, causes.get(serial, CORRECTED)) for _, _, serial in file.differing}
            if (corrected_at := file.corrected_at) is not None:
                logged.add((corrected_at, REPLACED if file.is_replaced else CORRECTED))
            for serial, cause in sorted(logged):
                for logged_serial in sealed.logged_serials(max(serial, 1)):
                    yield ChangeRow(file.id, serial, cause, logged_serial)


def _boundaries(live: Sequence[Interval], yanked: Sequence[Interval]) -> set[tuple[str, str, int]]:
    return {
        (flag, edge, serial)
        for flag, intervals in (("live", live), ("yanked", yanked))
        for interval in intervals
        for edge, serial in (("start", interval.start), ("end", interval.end))
        if serial is not None
    }
