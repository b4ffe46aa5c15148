"""Load the stored events and pages of projects and fold them, from their checkpoints or from their first events.

The changes to rows that result from a fold are in file_updates.py and recompute.py.
"""

from collections.abc import Collection, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.derived.checkpoint import Checkpoint, StoredCheckpoint, discard_checkpoints, load_checkpoints
from pypi_assets.catalog.derived.file_history import Fold
from pypi_assets.catalog.derived.file_updates import UNSEEN, NewestPage, ParsedNames, ProjectInputs, fold_inputs
from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.derived.stored_files import facts_digest, load_files, load_named_files, shown_at
from pypi_assets.catalog.observed.events import events_beyond_checkpoints, events_by_project, events_through
from pypi_assets.catalog.observed.projects import CatalogProject, load_projects
from pypi_assets.catalog.observed.sightings import StoredSighting, has_page_of, sightings_of
from pypi_assets.catalog.observed.snapshots import SnapshotWalk, walk_snapshots
from pypi_assets.catalog.tables import checkpoints, sightings
from pypi_assets.index.models import ChangelogEvent, ProjectPage


@dataclass(frozen=True, slots=True)
class FoldedProject:
    """The stored inputs of a project, and the result of folding them."""

    inputs: ProjectInputs
    fold: Fold


def fold_projects(
    connection: Connection,
    project_ids: Iterable[int],
    pages: Mapping[int, ProjectPage],
    seen: Mapping[int, StoredSighting],
) -> list[FoldedProject]:
    """Fold each project from its checkpoint, or from its first event, in order of ids.

    `pages` were just seen, and `seen` has the new sightings among them, both by project id. Checkpoints whose past has
    changed are deleted.
    """
    # sorted by id, with their current rows
    known = {project.id: project for project in load_projects(connection, list(project_ids))}
    points = load_checkpoints(connection, known)
    revised = {
        id_
        for id_, point in points.items()
        if point.page_serial != known[id_].page_serial
        or _is_contradicted(connection, point.checkpoint, pages.get(id_), seen.get(id_))
    }
    points = {id_: point for id_, point in points.items() if id_ not in revised}
    # its events_through must be read before the events
    loading = _Loading(connection, known, pages, seen, events_through(connection))
    folded = loading.beyond(points)
    revised |= points.keys() - folded.keys()
    discard_checkpoints(connection, revised)
    folded |= loading.whole([id_ for id_ in known if id_ not in folded])
    return [folded[id_] for id_ in known]


def _is_contradicted(
    connection: Connection, checkpoint: Checkpoint, page: ProjectPage | None, seen: StoredSighting | None
) -> bool:
    """Check whether a new sighting changes the past before the checkpoint.

    It does if its page has a serial that the checkpoint includes, was never seen before, and shows other files than the
    stored intervals at that serial.
    """
    if seen is None or seen.seen_through < checkpoint.serial:
        return seen is not None
    serial = seen.page_serial
    if serial is None or serial > checkpoint.serial or has_page_of(connection, seen):
        return False
    return not checkpoint.allows(serial) or shown_at(connection, seen.project_id, serial) != _shown(page)


def _facts(page: ProjectPage | None) -> dict[str, int]:
    """Return the digest of the facts of each file of a page. Files with broken entries are skipped."""
    return {} if page is None else {file.filename: facts_digest(file) for file in page.files if file.url is not None}


def _shown(page: ProjectPage | None) -> dict[str, bool]:
    return {} if page is None else {file.filename: file.yanked for file in page.files}


@dataclass(frozen=True, slots=True)
class _Loading:
    """A loader that folds projects. The number of SQL statements does not grow with the number of projects."""

    connection: Connection
    projects: Mapping[int, CatalogProject]
    pages: Mapping[int, ProjectPage]
    seen: Mapping[int, StoredSighting]
    events_through: int

    def beyond(self, points: Mapping[int, StoredCheckpoint]) -> dict[int, FoldedProject]:
        """Fold these projects from their checkpoints. Projects whose past changes are missing from the result."""
        if not points:
            return {}
        events = events_beyond_checkpoints(self.connection, points)
        sightings = sightings_beyond_checkpoints(self.connection, points, self._shown())
        inputs = {}
        for id_, point in points.items():
            names = {name for name, fact in point.checkpoint.facts.items() if fact != UNSEEN}
            newest = NewestPage(self.projects[id_].page_serial, names)
            inputs[id_] = self._inputs(id_, events[id_], sightings[id_], newest, point.checkpoint)
        self._load_files(inputs, {id_: one.touched() for id_, one in inputs.items()})
        folds = {id_: fold for id_, one in inputs.items() if (fold := fold_inputs(one)) is not None}
        self._load_files(inputs, {id_: fold.histories.keys() - inputs[id_].files.keys() for id_, fold in folds.items()})
        return {id_: FoldedProject(inputs[id_], fold) for id_, fold in folds.items()}

    def whole(self, ids: Sequence[int]) -> dict[int, FoldedProject]:
        """Fold these projects from their first events."""
        if not ids:
            return {}
        events = events_by_project(self.connection, ids)
        sightings = load_sightings(self.connection, ids, self._shown())
        files = load_files(self.connection, ids)
        found = {}
        for id_ in ids:
            before = sightings[id_][:-1] if id_ in self.seen else sightings[id_]
            newest = NewestPage(self.projects[id_].page_serial, _names_of_newest(before))
            inputs = self._inputs(id_, events[id_], sightings[id_], newest, None)
            inputs.files.update(files[id_])
            if (fold := fold_inputs(inputs)) is None:
                raise ValueError(f"the history of {inputs.project.name} was not folded, although it has no checkpoint")
            found[id_] = FoldedProject(inputs, fold)
        return found

    def _load_files(self, inputs: Mapping[int, ProjectInputs], names: Mapping[int, Collection[str]]) -> None:
        wanted = {id_: of_it for id_, of_it in names.items() if of_it}
        for id_, files in load_named_files(self.connection, wanted).items():
            inputs[id_].files.update(files)

    def _shown(self) -> dict[int, Mapping[str, bool]]:
        """Return the files of the snapshots that were just stored, by snapshot id, so that they are not read again."""
        return {sighting.snapshot_id: _shown(self.pages.get(id_)) for id_, sighting in self.seen.items()}

    def _inputs(
        self,
        id_: int,
        events: Sequence[ChangelogEvent],
        sightings: Sequence[Sighting],
        newest: NewestPage,
        checkpoint: Checkpoint | None,
    ) -> ProjectInputs:
        page = self.pages.get(id_)
        return ProjectInputs(
            project=self.projects[id_],
            names=ParsedNames(self.projects[id_]),
            page=page,
            facts=_facts(page),
            events_through=self.events_through,
            events=events,
            sightings=sightings,
            newest=newest,
            checkpoint=checkpoint,
        )


def _names_of_newest(sightings: Iterable[Sighting]) -> Collection[str]:
    """Return the files on the page with the greatest serial. If several have this serial, the one seen last counts."""
    newest: Sighting | None = None
    for one in sightings:
        if one.is_page and (newest is None or (one.page_serial or 0) >= (newest.page_serial or 0)):
            newest = one
    return frozenset() if newest is None else frozenset(newest.shown)


_Known = Mapping[int, Mapping[str, bool]]


def load_sightings(
    connection: Connection, project_ids: Collection[int], shown: _Known | None = None
) -> dict[int, list[Sighting]]:
    """Return all sightings of each project, in the order in which they were stored.

    `shown` has the files of snapshots that the caller already knows, by snapshot id.
    """
    return _loaded(connection, project_ids, sightings_of(connection, project_ids), shown or {})


def sightings_beyond_checkpoints(
    connection: Connection, project_ids: Collection[int], shown: _Known | None = None
) -> dict[int, list[Sighting]]:
    """Return sightings as `load_sightings` does, but without those from before each project's checkpoint.

    Each of the projects must have a checkpoint.
    """
    has_checkpoint = checkpoints.c.project_id == sightings.c.project_id
    rows = sightings_of(connection, project_ids, has_checkpoint, sightings.c.seen_through >= checkpoints.c.serial)
    return _loaded(connection, project_ids, rows, shown or {})


class _ShownFiles(Mapping[str, bool]):
    """The files of one snapshot. They are decoded on access, so that only one snapshot of a project is in memory."""

    __slots__ = ("_snapshot_id", "_walk")

    def __init__(self, walk: SnapshotWalk, snapshot_id: int) -> None:
        self._walk = walk
        self._snapshot_id = snapshot_id

    def _now(self) -> Mapping[str, bool]:
        return self._walk.shown(self._snapshot_id)

    def __getitem__(self, filename: str) -> bool:
        return self._now()[filename]

    def __contains__(self, filename: object) -> bool:
        return filename in self._now()

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def keys(self) -> KeysView[str]:
        return self._now().keys()

    def items(self) -> ItemsView[str, bool]:
        return self._now().items()

    def __eq__(self, other: object) -> bool:
        return self._now() == other


def _loaded(
    connection: Connection, project_ids: Collection[int], rows: Sequence[StoredSighting], known: _Known
) -> dict[int, list[Sighting]]:
    unknown: dict[int, set[int]] = {}
    for row in rows:
        if row.snapshot_id not in known:
            unknown.setdefault(row.project_id, set()).add(row.snapshot_id)
    walks = walk_snapshots(connection, unknown)
    found: dict[int, list[Sighting]] = {project_id: [] for project_id in project_ids}
    for row in rows:
        id_ = row.snapshot_id
        found[row.project_id].append(
            Sighting(
                row.page_serial,
                row.seen_through,
                known[id_] if id_ in known else _ShownFiles(walks[row.project_id], id_),
                is_page=row.page_status is not None,
                shows_through=row.shows_through,
                seen_at=row.at,
            )
        )
    return found
