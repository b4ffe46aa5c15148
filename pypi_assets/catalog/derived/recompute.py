"""Update the rows of projects to match their events and pages, and log the changes.

The number of SQL statements does not grow with the number of projects. For a project with a checkpoint, only inputs
beyond the checkpoint and the files that change are loaded. A project without a checkpoint, or whose past changes, is
folded from its first event. Only rows that differ are written.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import at_a_time, insert_missing, lock_rows, sent_rows, sent_values, upsert
from pypi_assets.catalog.derived.checkpoint import StoredCheckpoint, store_checkpoints
from pypi_assets.catalog.derived.file_history import LISTED, UNEXPLAINED
from pypi_assets.catalog.derived.file_updates import (
    UNSEEN,
    ChangeRow,
    FileUpdate,
    ProjectInputs,
    ProjectUpdate,
    compute_update,
    first_visible_change,
    logged_changes,
)
from pypi_assets.catalog.derived.folding import FoldedProject, fold_projects
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.stored_files import PageFacts, intervals_of_files
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.ledger.range_ledger import lock_state, log_changes, seals
from pypi_assets.catalog.observed.followed import mark_projects
from pypi_assets.catalog.observed.projects import CORRECTED, CatalogProject
from pypi_assets.catalog.observed.sightings import StoredSighting
from pypi_assets.catalog.reads.file_counts import counting_files
from pypi_assets.catalog.reads.past_generations import keep_past_generations
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.scopes.reading_rules import ReadingRules, reading_rules, skip, uploaded_time
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    live_intervals,
    releases,
    yanked_intervals,
)
from pypi_assets.catalog.work.read_queue import queue_reads
from pypi_assets.index.models import ProjectPage
from pypi_assets.scopes.closure import Spans, span
from pypi_assets.scopes.ruleset import RuledFile, ScopeFile

UNEXPLAINED_CHANGES = "unexplained changes"
"""The name of the count of unexplained changes."""

_WORTH_A_CHECKPOINT = 200
"""If a project has more events and files on pages than this, a fold from scratch costs more than a checkpoint."""
_UNKNOWN = -2
"""In place of the digest of a file's facts: they were not available when the checkpoint was made."""


def recompute(
    connection: Connection,
    projects: Sequence[CatalogProject],
    pages: Mapping[int, ProjectPage],
    seen: Mapping[int, StoredSighting] | None = None,
) -> set[int]:
    """Recompute `projects`, and queue the files that must be read.

    `pages` were just seen, and `seen` has the new sightings among them, which are already stored; both are by project
    id. The facts on these pages replace the facts of older pages. Return the ids of the projects whose pages in `seen`
    change files although no stored event does.
    """
    folded = fold_projects(connection, [project.id for project in projects], pages, seen or {})
    files = [file.id for one in folded for file in one.inputs.files.values()]
    live = intervals_of_files(connection, live_intervals, files)
    yanked = intervals_of_files(connection, yanked_intervals, files)
    updates = [compute_update(replace(one.inputs, live=live, yanked=yanked), one.fold) for one in folded]
    release_ids = _release_ids(connection, updates)
    rules = reading_rules(connection, [one.project.id for one in updates])
    for one in updates:
        if one.project.id in rules:
            _skip_by_rules(one, rules[one.project.id])
    _enter_files(connection, updates, release_ids)
    _queue_files(connection, updates, rules)
    _lock_unseen(connection, folded)
    with counting_files(connection, _changed_files(updates)) as entered:
        entered += [file.id for one in updates for file in one.files if file.stored is None]
        _update_files(connection, updates, release_ids)
        lock_state(connection, exclusive=False)
        sealed = seals(connection)
        _log_changes(connection, logged_changes(updates, sealed))
        _log_explained(connection, folded, updates)
        for table, old, new in (
            (live_intervals, live, {file.id: file.history.live for one in updates for file in one.files}),
            (yanked_intervals, yanked, {file.id: file.history.yanked for one in updates for file in one.files}),
        ):
            _replace_intervals(connection, table, old, new)
        if (changed_at := first_visible_change(updates)) is not None:
            note_change(connection, changed_at, sealed.complete)
            mark_projects(connection, [one.project.id for one in updates])
    new_points = {one.inputs.project.id: _checkpoint(one, update) for one, update in zip(folded, updates, strict=True)}
    store_checkpoints(connection, {id_: point for id_, point in new_points.items() if point is not None})
    return {id_ for one in folded if one.fold.unexplained and (id_ := one.inputs.project.id) in (seen or {})}


def _skip_by_rules(update: ProjectUpdate, rules: ReadingRules) -> None:
    """Set `skipped` for the files that the rules skip.

    The rules get all live files of the project, including known ones, since they may count its newest files.
    """
    files = {file.name: file for file in update.files if file.is_live and file.known_facts is not None}
    ruled = [
        RuledFile(name, update.names.parts(name).kind, uploaded_time(file.known_facts and file.known_facts.uploaded_at))
        for name, file in files.items()
    ]
    for name, reason in rules.skipped(update.project.normalized, ruled).items():
        files[name].skipped = reason


def _queue_files(connection: Connection, updates: Iterable[ProjectUpdate], rules: Mapping[int, ReadingRules]) -> None:
    """Queue the files that must be read. If the project is in scopes, their rules set the priority."""
    without_rules: list[tuple[int, int]] = []
    for one in updates:
        wanted = [file for file in one.files if file.is_queued]
        if (of_it := rules.get(one.project.id)) is None:
            without_rules += [(file.id, one.project.id) for file in wanted]
        elif wanted:
            live = {file.name: _as_scope_file(one, file) for file in one.files if file.is_live}
            first = _one_of_each_kind(one, wanted, of_it.read_first(live))
            queue_reads(connection, [(file.id, one.project.id) for file in wanted], of_it.nice, first)
    queue_reads(connection, without_rules)


def _one_of_each_kind(update: ProjectUpdate, files: Iterable[FileUpdate], leading: Collection[str]) -> set[int]:
    """Return the id of the smallest `leading` file of each kind. Usually all of them have the same requirements."""
    smallest: dict[str, tuple[int, str, int]] = {}
    for file in files:
        if file.name in leading:
            kind, size = update.names.parts(file.name).kind, file.known_facts and file.known_facts.size
            mine = (size or 0, file.name, file.id)
            smallest[kind] = min(smallest.get(kind, mine), mine)
    return {id_ for _, _, id_ in smallest.values()}


def _as_scope_file(update: ProjectUpdate, file: FileUpdate) -> ScopeFile:
    return ScopeFile(
        file.history.version, update.names.parts(file.name).kind, _spans(file.history.live), _spans(file.history.yanked)
    )


def _spans(intervals: Iterable[Interval]) -> Spans:
    return tuple(span(one.start, one.end) for one in intervals)


def _checkpoint(folded: FoldedProject, update: ProjectUpdate) -> StoredCheckpoint | None:
    """Return the project's next checkpoint.

    Return None if the present one is still right, or if the project is too small for one.
    """
    inputs, new = folded.inputs, folded.fold.checkpoint
    before = inputs.checkpoint
    if new is None or (before is None and not _is_large(inputs)):
        return None
    if inputs.is_page_newest:
        facts = dict(inputs.facts)
    elif before is not None:
        facts = {name: fact for name, fact in before.facts.items() if fact != UNSEEN}
    else:
        facts = dict.fromkeys(inputs.newest.names, _UNKNOWN)
    is_whole = facts.keys() <= new.files.keys()
    waiting = (file for file in update.files if file.is_unseen and not file.has_vanished(update.newest_page))
    facts.update((file.name, UNSEEN) for file in waiting if file.name not in facts)
    page_serial = inputs.page.last_serial if inputs.is_page_newest and inputs.page else inputs.newest.serial
    is_same = before is not None and not folded.fold.is_news
    if is_same and before is not None and facts == before.facts and page_serial == inputs.newest.serial:
        return None
    new.facts = facts
    return StoredCheckpoint(new, page_serial if is_whole else None)


def _is_large(inputs: ProjectInputs) -> bool:
    """Check whether a fold from scratch costs more than a checkpoint."""
    work = len(inputs.events) + len(inputs.sightings)
    pages = (len(one.shown) for one in inputs.sightings)
    return any(work >= _WORTH_A_CHECKPOINT for work in accumulate(pages, initial=work))


def _lock_unseen(connection: Connection, folded: Iterable[FoldedProject]) -> None:
    """Lock the files that may be exhausted afterwards because no page shows them, before the state is locked."""
    files = (file for one in folded for file in one.inputs.files.values())
    unseen = sorted(file.id for file in files if file.facts.url is None and file.outcome == ReadOutcome.PENDING)
    for ids in at_a_time(unseen):
        lock_rows(connection, distribution_data, distribution_data.c.distribution_id.in_(ids))


def _changed_files(updates: Iterable[ProjectUpdate]) -> list[int]:
    """Return the ids of the known files whose outcome or liveness changes."""
    return [
        file.id
        for one in updates
        for file in one.files
        if file.stored is not None
        and (file.is_to_be_read or file.has_vanished(one.newest_page) or file.old_live != file.history.live)
    ]


def _log_changes(connection: Connection, logged: Iterable[ChangeRow]) -> None:
    rows = [change._asdict() for change in logged]
    log_changes(connection, [row for row in rows if row["cause"] != UNEXPLAINED])
    unexplained = log_changes(connection, [row for row in rows if row["cause"] == UNEXPLAINED])
    add_counts(connection, {UNEXPLAINED_CHANGES: unexplained})


def _log_explained(connection: Connection, folded: Iterable[FoldedProject], updates: Iterable[ProjectUpdate]) -> None:
    """Replace the cause of logged unexplained changes for which there is now an event.

    Listed changes are replaced once the events up to their serials are stored, or a page shows that they did not
    happen. One that no event explains is unexplained from then on.

    It checks all files that were folded, even if their intervals do not change: an older event can explain a change at
    its present serial. A change that remains unexplained here is settled by the next checkpoint, and later folds do not
    return to it.
    """
    causes: dict[int, tuple[int, int, dict[int, str]]] = {}
    for one, project in zip(folded, updates, strict=True):
        settled = -1 if one.inputs.checkpoint is None else one.inputs.checkpoint.serial
        for file in project.files:
            if file.stored is not None:
                found = {change.serial: change.cause for change in file.history.changes}
                causes[file.id] = settled, one.inputs.events_through, found
    if not causes:
        return
    sent = sent_values(connection, changes.c.distribution_id, sorted(causes))
    rows = connection.execute(
        select(changes).select_from(sent).join(changes, changes.c.distribution_id == sent.c.value)
    )
    explained, were_unexplained = {}, 0
    for row in rows:
        settled, through, found = causes[row.distribution_id]
        cause = found.get(row.serial, CORRECTED)
        is_decided = row.serial <= through or cause == CORRECTED
        is_known = row.cause == UNEXPLAINED or (row.cause == LISTED and is_decided)
        if is_known and row.serial > settled and cause != row.cause:
            explained[row.id] = ChangeRow(row.distribution_id, row.serial, cause, row.logged_serial)
            were_unexplained += row.cause == UNEXPLAINED
    for ids in at_a_time(sorted(explained)):
        connection.execute(delete(changes).where(changes.c.id.in_(ids)))
    add_counts(connection, {UNEXPLAINED_CHANGES: -were_unexplained})
    _log_changes(connection, explained.values())


def _release_ids(connection: Connection, updates: Iterable[ProjectUpdate]) -> dict[tuple[int, str], int]:
    """Return the ids of the files' releases, by project id and version. New releases are inserted."""
    found: dict[tuple[int, str], int] = {}
    wanted: set[tuple[int, str]] = set()
    for one in updates:
        for file in one.files:
            if file.stored is not None and file.stored.version == file.history.version:
                found[one.project.id, file.history.version] = file.stored.release_id
            wanted.add((one.project.id, file.history.version))
    missing = sorted(wanted - found.keys())
    insert_missing(connection, releases, [{"project_id": id_, "version": version} for id_, version in missing])
    if missing:
        sent, equal = sent_rows(connection, (releases.c.project_id, releases.c.version), missing)
        columns = (releases.c.project_id, releases.c.version, releases.c.id)
        rows = connection.execute(select(*columns).select_from(sent).join(releases, equal))
        found.update(((project_id, text), release_id) for project_id, text, release_id in rows)
    return found


def _enter_files(
    connection: Connection, updates: Iterable[ProjectUpdate], release_ids: Mapping[tuple[int, str], int]
) -> None:
    """Insert the files that have no row yet, and set their ids."""
    new: dict[tuple[int, str], tuple[ProjectUpdate, FileUpdate]] = {
        (one.project.id, file.name): (one, file) for one in updates for file in one.files if file.stored is None
    }
    if not new:
        return
    rows = [
        {
            "project_id": project_id,
            "release_id": release_ids[project_id, file.history.version],
            "filename": name,
            "kind": one.names.parts(name).kind,
            "page_serial": file.page_serial,
            "generation": file.generation,
        }
        | (file.shown or PageFacts())._asdict()
        for (project_id, name), (one, file) in new.items()
    ]
    columns = (distributions.c.id, distributions.c.project_id, distributions.c.filename)
    for id_, project_id, filename in connection.execute(insert(distributions).returning(*columns), rows):
        new[project_id, filename][1].id = id_
    outcomes = [
        {"distribution_id": file.id, "outcome": _first_outcome(one, file), "error_text": file.skipped}
        for one, file in new.values()
    ]
    connection.execute(insert(distribution_data), outcomes)


def _first_outcome(update: ProjectUpdate, file: FileUpdate) -> ReadOutcome:
    if file.has_vanished(update.newest_page):
        return ReadOutcome.VANISHED
    return ReadOutcome.PENDING if file.skipped is None else ReadOutcome.SKIPPED


def _update_files(
    connection: Connection, updates: Iterable[ProjectUpdate], release_ids: Mapping[tuple[int, str], int]
) -> None:
    """Update the rows of known files to match their pages, releases and outcomes."""
    known = [(one, file, file.stored) for one in updates for file in one.files if file.stored is not None]
    keep_past_generations(connection, {file.id: file.corrected_at or 0 for _, file, _ in known if file.is_replaced})
    with_new_facts = [
        {"of_id": file.id, "page_serial": file.page_serial, "generation": file.generation} | file.shown._asdict()
        for _, file, stored in known
        if file.shown is not None and (file.has_new_facts or file.generation != stored.generation)
    ]
    with_newer_page = [
        {"of_id": file.id, "page_serial": file.page_serial}
        for _, file, stored in known
        if file.page_serial != stored.page_serial
        and not (file.has_new_facts or file.generation != stored.generation or file.is_on_newest)
    ]
    moved = [
        {"of_id": file.id, "release_id": release_ids[one.project.id, file.history.version]}
        for one, file, stored in known
        if file.history.version != stored.version
    ]
    _update(connection, distributions, with_new_facts)
    _update(connection, distributions, with_newer_page)
    _update(connection, distributions, moved)
    to_be_read = [file.id for _, file, _ in known if file.is_to_be_read and file.skipped is None]
    vanished = [file.id for one, file, _ in known if file.has_vanished(one.newest_page)]
    for outcome, ids in ((ReadOutcome.PENDING, to_be_read), (ReadOutcome.VANISHED, vanished)):
        found = {"outcome": outcome, "error_kind": None, "error_text": None}
        _update(connection, distribution_data, [{"of_id": id_} | found for id_ in ids])
    skipped = {file.id: file.skipped for _, file, _ in known if file.is_to_be_read and file.skipped is not None}
    skip(connection, skipped)


def _update(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Update each row with the id `of_id` to the other values. All `rows` have the same keys."""
    if not rows:
        return
    [key] = table.primary_key
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0] if name != "of_id"}
    connection.execute(
        update(table).where(key == bindparam("of_id")).values(values),
        [
            {name if name == "of_id" else f"new_{name}": value for name, value in row.items()}
            for row in sorted(rows, key=lambda row: row["of_id"])
        ],
    )


def _replace_intervals(
    connection: Connection,
    table: Table,
    old: Mapping[int, Sequence[Interval]],
    new: Mapping[int, Sequence[Interval]],
) -> None:
    """Replace the intervals `old` with `new`, both by distribution id. Only rows that differ are written."""
    starts = {(id_, interval.start) for id_, intervals in new.items() for interval in intervals}
    gone = [
        {"gone_id": id_, "gone_start": interval.start}
        for id_, intervals in old.items()
        for interval in intervals
        if (id_, interval.start) not in starts
    ]
    if gone:
        matches = (table.c.distribution_id == bindparam("gone_id"), table.c.start == bindparam("gone_start"))
        connection.execute(delete(table).where(*matches), gone)
    rows = [
        {"distribution_id": id_, "start": interval.start, "end": interval.end}
        for id_, intervals in new.items()
        for interval in intervals
        if interval not in old.get(id_, ())
    ]
    upsert(connection, table, rows, key=("distribution_id", "start"), update=("end",))
