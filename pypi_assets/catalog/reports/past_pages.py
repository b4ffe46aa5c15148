"""The page of a project in the Simple API as it was at a serial.

The cost depends on the number of files that the project has had, not on the age of the catalog. Records of files are
the present ones, and so are facts that changed on a page without an event.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, and_, exists, func, or_, select, true

from pypi_assets.catalog.database import Catalog, bare_rows, read_by_index, sent_values, storable
from pypi_assets.catalog.ledger.epochs import newest_epoch
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.observed.projects import QUARANTINED, CatalogProject, find_project
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.reads.past_generations import (
    PRESENT_REQUIRES_PYTHON,
    PastGeneration,
    contents_at,
    counts_later,
    has_past_generations,
)
from pypi_assets.catalog.reads.stored_contents import StoredContents, StoredLists
from pypi_assets.catalog.reads.stored_json import from_json
from pypi_assets.catalog.reports.past_statuses import YankedFile, last_serial_at, page_status_at, yank_reasons
from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    live_intervals,
    past_generations,
    projects,
    releases,
    shared_details,
    yanked_intervals,
)
from pypi_assets.distributions.served_metadata import file_version, metadata_of_row, metadata_sha256
from pypi_assets.index.actions import Action

_QUARANTINES = (Action.QUARANTINE_PROJECT.value, Action.QUARANTINE_RELEASE.value)
_REMOVALS = (Action.REMOVE_FILE.value, Action.REMOVE_RELEASE.value, Action.REMOVE_PROJECT.value)
_MOST_STORED_FILES = 32_768
"""They take about 28 MB, and the spans 5 MB."""


class FilePlace(NamedTuple):
    """A file by its name, and by its sha256 or else by its project (normalized). None: any name with the sha256."""

    filename: str | None = None
    sha256: str | None = None
    project: str | None = None


class PastFile(NamedTuple):
    """A file that was live at a serial.

    `metadata` are the metadata rendered for it; if they are None, the index may offer its own metadata. `is_hidden`:
    the file is quarantined now.
    """

    project: str
    filename: str
    url: str | None
    metadata: bytes | None
    has_index_metadata: bool
    is_hidden: bool


class _PageFileRow(NamedTuple):
    """The selected columns of a file. Pages unpack the bare tuples, since a page can have thousands."""

    id: int
    project: str
    version: str
    filename: str
    kind: str
    url: str | None
    sha256: str | None
    size: int | None
    uploaded_at: str | None
    requires_python: str | None
    core_metadata_sha256: str | None
    first_seen_at: str | None
    outcome: str
    requires_dist_id: int | None
    details: str | None
    shared_details_id: int | None


_Row = tuple[Any, ...]
"""The values of a `_PageFileRow`."""
_REQUIRES_DIST_ID, _SHARED_DETAILS_ID = map(_PageFileRow._fields.index, ("requires_dist_id", "shared_details_id"))
_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    "id": distributions.c.id,
    "project": projects.c.name,
    "version": releases.c.version,
    "filename": distributions.c.filename,
    "kind": distributions.c.kind,
    "url": distributions.c.url,
    "sha256": distributions.c.sha256,
    "size": distributions.c.size,
    "uploaded_at": distributions.c.uploaded_at,
    "requires_python": PRESENT_REQUIRES_PYTHON,
    "core_metadata_sha256": distributions.c.core_metadata_sha256,
    "first_seen_at": distributions.c.first_seen_at,
    "outcome": distribution_data.c.outcome,
    "requires_dist_id": distribution_data.c.requires_dist_id,
    "details": distribution_data.c.details,
    "shared_details_id": distribution_data.c.shared_details_id,
}


_Span = tuple[int, int, int | None]
"""The id of a distribution, the serial since which it was live or yanked, and the end of that (None: it still is)."""


class _ShownDistributions(NamedTuple):
    """The distributions of a project that were live at a serial, and the spans of those that were yanked."""

    live: list[int]
    yanked: list[_Span]


class _History(NamedTuple):
    """The spans of a project's files, which determine the live and yanked files at each serial up to `through`."""

    through: int
    live: Sequence[_Span]
    yanked: Sequence[_Span]

    def at(self, serial: int) -> _ShownDistributions:
        """Return the live and yanked files at a serial."""
        return _ShownDistributions([id_ for id_, _, _ in _holding(self.live, serial)], _holding(self.yanked, serial))


def _holding(spans: Sequence[_Span], serial: int) -> list[_Span]:
    """Return the spans that contain the serial. Indexing tuples is fast, and a page can have thousands of files."""
    return [span for span in spans if span[1] <= serial and (span[2] is None or span[2] > serial)]


class _CachedEpoch:
    """The cached data of one epoch."""

    def __init__(self, epoch: int, most: int) -> None:
        self.epoch = epoch
        self._most = most
        self._files: dict[int, SimpleFile] = {}
        self._histories: dict[int, _History] = {}
        self._spans = 0
        self._using = threading.Lock()

    def shown(self, connection: Connection, project_id: int, serial: int) -> _ShownDistributions:
        """Return the project's distributions that were live at `serial`, which must have an answer."""
        with self._using:
            history = self._histories.get(project_id)
        if history is None or history.through < serial:
            history = _read_history(connection, project_id)
            with self._using:
                self._keep_history(project_id, history)
        return history.at(serial)

    def files(self, connection: Connection, ids: Sequence[int]) -> dict[int, SimpleFile]:
        """Return the newest contents of these distributions by id, in this order, as if they were not yanked.

        Each must have been live at a complete serial.
        """
        with self._using:
            found = {id_: self._files[id_] for id_ in ids if id_ in self._files}
        if missing := [id_ for id_ in ids if id_ not in found]:
            read = _read_files(connection, missing)
            found |= read
            with self._using:
                self._files |= read
                for id_ in list(islice(self._files, max(len(self._files) - self._most, 0))):
                    del self._files[id_]  # the files that were read first
            found = {id_: found[id_] for id_ in ids}
        return found

    def _keep_history(self, project_id: int, history: _History) -> None:
        self._drop_history(project_id)
        self._histories[project_id] = history
        self._spans += _size(history)
        while self._spans > self._most:
            self._drop_history(next(iter(self._histories)))  # the history that was read first

    def _drop_history(self, project_id: int) -> None:
        if (former := self._histories.pop(project_id, None)) is not None:
            self._spans -= _size(former)


class StoredFiles:
    """A cache of the files that pages at serials have shown, shared by threads, for one catalog.

    It has up to `most_files` files, and as many of the spans in which files were live or yanked, since pages of a
    project at many serials use the same rows. It is discarded when the epoch changes: any change of a file that was
    live at a complete serial changes that serial's epoch.
    """

    def __init__(self, most_files: int = _MOST_STORED_FILES) -> None:
        self._most_files = most_files
        self._kept = _CachedEpoch(0, most_files)
        self._using = threading.Lock()

    def as_of(self, connection: Connection) -> _CachedEpoch:
        """Return the cached data that are valid in this transaction."""
        epoch = newest_epoch(connection)
        with self._using:
            if epoch > self._kept.epoch:
                self._kept = _CachedEpoch(epoch, self._most_files)
            # a transaction that began before the last change caches nothing
            return self._kept if epoch == self._kept.epoch else _CachedEpoch(epoch, self._most_files)


def page_at(
    catalog: Catalog, serial: int, name: str, *, is_safe: bool = False, stored: StoredFiles | None = None
) -> SimplePage | None:
    """Return the page of the project `name` (in any spelling) at `serial`, which must have an answer.

    Return None if there was no page, or if the project is not followed at `serial`. With `is_safe`, files are omitted
    that the index no longer shows because they were removed or quarantined since. `stored` is a cache of files that
    earlier pages of this catalog have shown.
    """
    with catalog.read() as connection:
        read_by_index(connection)
        project = find_project(connection, storable(name))
        if project is None or not _is_answered(connection, project, serial):
            return None
        kept = (stored or StoredFiles()).as_of(connection)
        live, yanked = kept.shown(connection, project.id, serial)
        if is_safe:
            safe = _safe_now(connection, project.id, serial)
            live = [id_ for id_ in live if id_ in safe]
        status = page_status_at(connection, project, serial, has_live_files=bool(live))
        if status is None:
            return None
        files = kept.files(connection, live)
        past = _past_contents(connection, serial, live)
        files |= _simple_files(_replaced(connection, past))
        for id_, is_yanked in _yanked(connection, project.id, serial, yanked, files).items():
            files[id_] = files[id_]._replace(yanked=is_yanked)
        return SimplePage(
            project.normalized, status, tuple(files.values()), last_serial_at(connection, project.id, serial)
        )


def past_files(catalog: Catalog, serial: int, place: FilePlace) -> list[PastFile]:
    """Return the files at this place that were live at `serial`. Usually there is one, or none."""
    with catalog.read() as connection:
        read_by_index(connection)
        ids = _ids_of(connection, place)
        if not ids:
            return []
        is_answered = answered_at(connection, distributions.c.project_id, serial)
        ids = _live_at(connection, serial, distributions.c.id.in_(ids), is_answered)
        return _past_files(connection, place, ids, _past_contents(connection, serial, ids))


def files_of_hash(catalog: Catalog, place: FilePlace) -> list[PastFile]:
    """Return all files with the sha256 of the place, and its name if it has one, that were ever seen, live or not."""
    with catalog.read() as connection:
        read_by_index(connection)
        ids = _ids_of(connection, place)
        found = _past_files(connection, place, ids, {})
        if found or not ids:
            return found
        had = past_generations.c
        query = select(had.distribution_id, had.until).where(had.sha256 == place.sha256, had.distribution_id.in_(ids))
        past: dict[int, PastGeneration] = {}
        for id_, until in connection.execute(query):
            past |= contents_at(connection, until - 1, [id_])
        return _past_files(connection, place, list(past), past)


def _past_files(
    connection: Connection, place: FilePlace, ids: Sequence[int], past: Mapping[int, PastGeneration]
) -> list[PastFile]:
    """Return the files among these distributions whose content has the hash of the place, if it has one.

    `past` has contents other than the newest.
    """
    hidden = _hidden_now(connection, ids)
    newest = _as_dumped(connection, _rows(connection, [id_ for id_ in ids if id_ not in past]))
    found = ((_PageFileRow._make(row), dumped) for row, dumped in (*newest, *_replaced(connection, past)))
    return [
        PastFile(
            project=file.project,
            filename=file.filename,
            url=file.url,
            metadata=metadata_of_row(dumped),
            has_index_metadata=file.core_metadata_sha256 is not None,
            is_hidden=file.id in hidden,
        )
        for file, dumped in found
        if place.sha256 is None or file.sha256 == place.sha256
    ]


def is_hidden_now(catalog: Catalog, place: FilePlace) -> bool:
    """Check whether a file at this place is quarantined now."""
    with catalog.read() as connection:
        read_by_index(connection)
        return bool(_hidden_now(connection, _ids_of(connection, place)))


def _is_answered(connection: Connection, project: CatalogProject, serial: int) -> bool:
    query = select(projects.c.id).where(projects.c.id == project.id, answered_at(connection, projects.c.id, serial))
    return connection.scalar(query) is not None


def _size(history: _History) -> int:
    return len(history.live) + len(history.yanked)


def _read_history(connection: Connection, project_id: int) -> _History:
    """Return all spans of the project's files."""

    def spans(intervals: Table) -> Sequence[_Span]:
        query = (
            select(distributions.c.id, intervals.c.start, intervals.c.end)  # the index has all of these columns
            .join(intervals, intervals.c.distribution_id == distributions.c.id)
            .where(distributions.c.project_id == project_id)
        )
        return bare_rows(connection, query)

    return _History(complete_serial(connection), spans(live_intervals), spans(yanked_intervals))


def _live_at(connection: Connection, serial: int, *where: ColumnElement[bool]) -> list[int]:
    """Return the distributions that were live at `serial`."""
    live = live_intervals.c
    query = select(distributions.c.id).join(live_intervals, live.distribution_id == distributions.c.id)
    return list(connection.scalars(query.where(holds_at(live.start, live.end, serial), *where)))


def _safe_now(connection: Connection, project_id: int, serial: int) -> set[int]:
    """Return the project's distributions that are live now, and whose content was not replaced since `serial`."""
    now = live_intervals.c
    query = (
        select(distributions.c.id)
        .join(live_intervals, and_(now.distribution_id == distributions.c.id, now.end.is_(None)))
        .where(distributions.c.project_id == project_id, ~counts_later(distributions.c.id, serial))
    )
    return set(connection.scalars(query))


def _yanked(
    connection: Connection,
    project_id: int,
    serial: int,
    yanked: Iterable[_Span],
    files: Mapping[int, SimpleFile],
) -> dict[int, bool | str]:
    """Return the reason that the page showed for each of these yanked files, or True without a reason, by id."""
    since = {id_: (start, end) for id_, start, end in yanked if id_ in files}
    if not since:
        return {}
    sent = sent_values(connection, distributions.c.id, list(since))
    query = select(distributions.c.id, distributions.c.yanked_reason).join(sent, sent.c.value == distributions.c.id)
    newest = connection.execute(query)
    named = {id_: YankedFile(files[id_].filename, *since[id_], reason) for id_, reason in newest}
    reasons = yank_reasons(connection, project_id, serial, list(named.values()))
    return {id_: reasons.get(file.filename) or True for id_, file in named.items()}


def _rows(connection: Connection, ids: Sequence[int]) -> Sequence[_Row]:
    """Return the stored columns of these distributions."""
    sent = sent_values(connection, distributions.c.id, ids)
    query = (
        select(*(column.label(name) for name, column in _COLUMNS.items()))
        .select_from(sent)
        .join(distributions, distributions.c.id == sent.c.value)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
    )
    return bare_rows(connection, query)


def _read_files(connection: Connection, ids: Sequence[int]) -> dict[int, SimpleFile]:
    return _simple_files(_as_dumped(connection, _rows(connection, ids)))


def _as_dumped(connection: Connection, rows: Sequence[_Row]) -> Iterator[tuple[_Row, dict[str, Any]]]:
    """Yield each row with the facts from which its metadata are rendered.

    Files with the same facts, as most files of a release, share one object.
    """
    lists = StoredLists(connection).load({row[_REQUIRES_DIST_ID] for row in rows})
    stored = StoredContents(connection, shared_details).load({row[_SHARED_DETAILS_ID] for row in rows})
    extras = {id_: from_json(content).get("provides_extra") for id_, content in stored.items()}
    described: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        _, project, release, filename, kind, *_, python, _, _, outcome, requires_id, own, shared_id = row
        version = file_version(filename, release, project)
        same = (kind, outcome, version, python, requires_id, shared_id, own)
        known = described.get(same)
        if known is None:
            details = from_json(own) if own else {}
            shared = None if shared_id is None else extras[shared_id]
            known = described[same] = {
                "project": project,
                "version": version,
                "filename": filename,
                "kind": kind,
                "outcome": outcome,
                "requires_python": python,
                "requires_dist": None if requires_id is None else lists[requires_id],
                "provides_extra": shared or details.get("provides_extra"),
                "requires_by": details.get("requires_by"),
                "notes": details.get("notes"),
            }
        yield row, known


def _past_contents(connection: Connection, serial: int, ids: Sequence[int]) -> Mapping[int, PastGeneration]:
    """Return the past contents of the files that were replaced since `serial`, by distribution id."""
    return contents_at(connection, serial, ids) if has_past_generations(connection) else {}


def _replaced(connection: Connection, past: Mapping[int, PastGeneration]) -> Iterator[tuple[_Row, dict[str, Any]]]:
    """Yield each of these files with its past content, and the facts from which the metadata of that are rendered."""
    if not past:
        return
    for row in map(_PageFileRow._make, _rows(connection, list(past))):
        then = past[row.id]
        facts = then.facts
        found = row._replace(
            url=facts["url"],
            sha256=then.sha256,
            size=facts["size"],
            uploaded_at=facts["uploaded_at"],
            requires_python=then.requires_python,
            core_metadata_sha256=facts.get("core_metadata_sha256"),
            first_seen_at=facts.get("first_seen_at"),
        )
        details = facts["details"]
        yield (
            found,
            {
                "project": row.project,
                "version": row.version,
                "filename": row.filename,
                "kind": row.kind,
                "outcome": facts["outcome"],
                "requires_python": then.requires_python,
                "requires_dist": facts["requires_dist"],
                "provides_extra": details.get("provides_extra"),
                "requires_by": details.get("requires_by"),
                "notes": details.get("notes"),
            },
        )


def _simple_files(described: Iterable[tuple[_Row, dict[str, Any]]]) -> dict[int, SimpleFile]:
    """Return the files of these rows by id, as if they were not yanked."""
    # by identity, which is valid as long as the object exists
    hashes: dict[int, tuple[dict[str, Any], str | None]] = {}
    found: dict[int, SimpleFile] = {}
    for row, dumped in described:
        if id(dumped) not in hashes:
            hashes[id(dumped)] = dumped, metadata_sha256(dumped)
        # by position, which takes half the time
        id_, _, version, filename, kind, url, sha256, size, uploaded, requires_python, offered, first_seen, *_ = row
        rendered = hashes[id(dumped)][1]
        shown = rendered or offered
        has_own = rendered is not None
        found[id_] = SimpleFile(
            filename, version, kind, url, sha256, size, requires_python, uploaded, False, shown, has_own, first_seen
        )
    return found


def _ids_of(connection: Connection, place: FilePlace) -> list[int]:
    """Return the distributions at this place, including those that had the hash before they were replaced."""
    is_named = true() if place.filename is None else distributions.c.filename == storable(place.filename)
    if place.sha256 is None:
        of_project = select(projects.c.id).where(projects.c.normalized == storable(place.project or ""))
        is_of_it = distributions.c.project_id == of_project.scalar_subquery()
        return list(connection.scalars(select(distributions.c.id).where(is_of_it, is_named)))
    ids = set(connection.scalars(select(distributions.c.id).where(distributions.c.sha256 == place.sha256, is_named)))
    if has_past_generations(connection):
        matches = past_generations.c.distribution_id == distributions.c.id
        had = select(distributions.c.id).join(past_generations, matches)
        ids.update(connection.scalars(had.where(past_generations.c.sha256 == place.sha256, is_named)))
    return sorted(ids)


def _hidden_now(connection: Connection, ids: Sequence[int]) -> set[int]:
    """Return the quarantined files among these distributions.

    A file is quarantined if a quarantine ended its last live interval, or if its project's status is quarantined and no
    removal ended that interval. A file that was removed while it was quarantined stays quarantined.
    """
    if not ids:
        return set()
    c = live_intervals.c
    last_end = select(func.max(c.end)).where(c.distribution_id == distributions.c.id)
    is_live = exists().where(c.distribution_id == distributions.c.id, c.end.is_(None))

    def ended_by(causes: Iterable[str]) -> ColumnElement[bool]:
        of_it = and_(
            changes.c.distribution_id == distributions.c.id,
            changes.c.serial == last_end.correlate(distributions).scalar_subquery(),
        )
        return exists().where(of_it, changes.c.cause.in_(causes))

    query = (
        select(distributions.c.id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .where(
            distributions.c.id.in_(ids),
            ~is_live,
            or_(ended_by(_QUARANTINES), and_(projects.c.status == QUARANTINED, ~ended_by(_REMOVALS))),
        )
    )
    return set(connection.scalars(query))
