"""What the rows of a project's files are to become, and which changes are logged. Nothing here touches the database."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pypi_assets.catalog.derived.file_history import FileHistory, fold
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.derived.stored_files import PageFacts, StoredFile
from pypi_assets.catalog.ledger.range_ledger import Seals
from pypi_assets.catalog.observed.project_names import CORRECTED
from pypi_assets.catalog.observed.projects import Project
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.record import FilenameParts
from pypi_assets.index.models import ChangelogEvent, ProjectPage

_UNREAD = frozenset({Outcome.PENDING, Outcome.EXHAUSTED})


@dataclass(frozen=True, slots=True)
class StoredProjects:
    """What is stored of some projects, by project id; intervals by the id of the distribution."""

    events_through: int
    events: Mapping[int, Sequence[ChangelogEvent]]
    sightings: Mapping[int, Sequence[Sighting]]
    files: Mapping[int, Mapping[str, StoredFile]]
    live: Mapping[int, tuple[Interval, ...]]
    yanked: Mapping[int, tuple[Interval, ...]]


@dataclass(slots=True)
class FileUpdate:
    """One file of a project: its row if it has one, its history, and the intervals that are stored of it so far.

    `shown` are the facts of a page that was just seen, unless a newer page has replaced them. `page_serial` is that of
    the page whose facts count. `id` is 0 until the file has a row.
    """

    name: str
    stored: StoredFile | None
    shown: PageFacts | None
    page_serial: int | None
    history: FileHistory
    old_live: tuple[Interval, ...] = ()
    old_yanked: tuple[Interval, ...] = ()
    id: int = 0

    @property
    def has_new_facts(self) -> bool:
        """Whether the page shows other facts of a known file than are stored."""
        return self.stored is not None and self.shown is not None and self.shown != self.stored.facts

    @property
    def is_to_be_read(self) -> bool:
        """Whether a known file has an address for the first time, or other bytes than before."""
        if self.stored is None or self.shown is None:
            return False
        known = self.stored.facts
        return known.url is None or known.sha256 not in {None, self.shown.sha256}

    def has_vanished(self, newest_page: int | None) -> bool:
        """Whether only events know the file, and a page as new as its add event lacks it. Then it cannot be read."""
        facts = self.shown or (self.stored and self.stored.facts)
        if newest_page is None or (facts and facts.url is not None):
            return False
        if self.stored is not None and self.stored.outcome not in _UNREAD:
            return False
        first = self.history.changes[0].serial if self.history.changes else None
        return first is not None and first <= newest_page and not self.history.is_live(newest_page)

    @property
    def corrected_at(self) -> int | None:
        """The serial from which the row of a known file reads otherwise than before, with the same intervals."""
        if self.stored is None:
            return None
        if self.stored.version != self.history.version:
            return self.history.changes[-1].serial if self.history.changes else None
        return self.page_serial if self.has_new_facts else None


@dataclass(frozen=True, slots=True)
class ProjectUpdate:
    """What follows for a project. `newest_page` is the greatest serial at which a page of it counts."""

    project: Project
    names: "ParsedNames"
    newest_page: int | None
    files: list[FileUpdate] = field(default_factory=list)


class ParsedNames:
    """The parts of a project's filenames, each parsed once."""

    def __init__(self, project: Project) -> None:
        self._project = project.normalized
        self._parts: dict[str, FilenameParts] = {}

    def parts(self, filename: str) -> FilenameParts:
        if filename not in self._parts:
            self._parts[filename] = parse_filename(filename, self._project)
        return self._parts[filename]

    def version(self, filename: str) -> str:
        return self.parts(filename).version or ""


class ChangeRow(NamedTuple):
    """A row of `changes`: what happened at `serial`, and the serial under which dumps publish it."""

    distribution_id: int
    serial: int
    cause: str
    logged_serial: int


def compute_update(project: Project, page: ProjectPage | None, stored: StoredProjects) -> ProjectUpdate:
    """What follows for `project` from all that is stored of it, and from the `page` that was just seen."""
    names = ParsedNames(project)
    folded = fold(
        stored.events[project.id],
        stored.sightings[project.id],
        known_since=project.known_since,
        events_through=stored.events_through,
        version_of=names.version,
    )
    histories = {} if folded is None else folded.histories
    known = stored.files[project.id]
    shown = {} if page is None else {file.filename: file for file in page.files if file.url is not None}
    update = ProjectUpdate(project, names, None if folded is None else folded.newest_page)
    for name in dict.fromkeys([*known, *shown, *histories]):
        row = known.get(name)
        history = histories.get(name)
        if history is None:  # shown by a page that another one of the same serial has replaced
            history = FileHistory(name, names.version(name) if row is None else row.version, (), (), ())
        file = FileUpdate(name, row, None, None if row is None else row.page_serial, history)
        if page is not None and name in shown and (file.page_serial is None or file.page_serial <= page.last_serial):
            file.shown, file.page_serial = PageFacts.of(shown[name]), page.last_serial
        if row is not None:
            file.id = row.id
            file.old_live, file.old_yanked = stored.live.get(row.id, ()), stored.yanked.get(row.id, ())
        update.files.append(file)
    return update


def logged_changes(updates: Iterable[ProjectUpdate], sealed: Seals) -> Iterator[ChangeRow]:
    """What dumps are to publish: each change at its own serial, or after what is sealed already.

    Each file needs its id.
    """
    for update in updates:
        for file in update.files:
            causes = {change.serial: change.cause for change in file.history.changes}
            differing = _boundaries(file.old_live, file.old_yanked) ^ _boundaries(
                file.history.live, file.history.yanked
            )
            logged = {(serial, causes.get(serial, CORRECTED)) for _, _, serial in differing}
            if (corrected_at := file.corrected_at) is not None:
                logged.add((corrected_at, CORRECTED))
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
