"""The visits stream of the journal: each visit of a page when it ends, with its statuses and the files of the page.

A record has the difference from an earlier page of the project whose record comes before, so the files of a page are
written once. Readers get the files of each page by applying the differences in order.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select, tuple_

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.snapshots import Entries, SnapshotSummary, read_entries, summarize_snapshots
from pypi_assets.catalog.reports.journal_format import JournalStream, Record, VisitKind, new_record, numbered
from pypi_assets.catalog.tables import projects, visit_statuses, visits

STATUS_FIELDS = ("page_serial", "seen_through", "page_status", "text")
"""The fields of a status that are written unless they are null. The snapshot belongs to the one with `seen_through`."""
_AT_A_TIME = 200
_FILES_AT_ONCE = 50_000


class _LoggedVisit(NamedTuple):
    """A visit that is logged in a range."""

    logged_serial: int
    id: int
    project_id: int
    project: str
    normalized: str
    visit: int
    kind: str
    workload: str
    started_at: float
    rulesets: str | None


def visit_records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """Yield the visits that ended, as logged in a sealed range."""
    yield from numbered(JournalStream.VISITS, _records(connection, serials))


def _records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    for logged in _logged(connection, serials):
        statuses = _statuses(connection, logged)
        seen = {one.id: _snapshot_of(statuses[one.id]) for one in logged}
        bases = _bases(connection, [one for one in logged if seen[one.id] is not None])
        summaries = summarize_snapshots(connection, {*filter(None, seen.values()), *bases.values()})
        for part in _parts(logged, seen, bases, summaries):
            changed = {id_ for one in part if seen[one.id] != bases.get(one.id) for id_ in _pair(one, seen, bases)}
            entries = read_entries(connection, changed)
            for one in part:
                record = _record(one, statuses[one.id])
                if (snapshot_id := seen[one.id]) is not None:
                    record |= _page(snapshot_id, bases.get(one.id), summaries, entries)
                yield record


def _pair(one: _LoggedVisit, seen: Mapping[int, int | None], bases: Mapping[int, int]) -> set[int]:
    """Return the snapshots that a visit compares."""
    return {id_ for id_ in (seen[one.id], bases.get(one.id)) if id_ is not None}


def _parts(
    logged: Sequence[_LoggedVisit],
    seen: Mapping[int, int | None],
    bases: Mapping[int, int],
    summaries: Mapping[int, SnapshotSummary],
) -> Iterator[list[_LoggedVisit]]:
    """Divide visits into parts that compare a limited number of files, with at least one visit each."""
    part: list[_LoggedVisit] = []
    files = 0
    for one in logged:
        cost = sum(summaries[id_].files for id_ in _pair(one, seen, bases))
        if part and files + cost > _FILES_AT_ONCE:
            yield part
            part, files = [], 0
        part.append(one)
        files += cost
    if part:
        yield part


def _logged(connection: Connection, serials: SerialRange) -> Iterator[Sequence[_LoggedVisit]]:
    """Yield, in batches, the visits that are logged in a range, in order."""
    c = visit_statuses.c
    after, last = (serials.start, 2**62), serials.end
    while True:
        ids = (
            select(c.logged_serial, c.visit_id)
            .where(c.logged_serial.is_not(None), tuple_(c.logged_serial, c.visit_id) > after, c.logged_serial <= last)
            .distinct()
            .order_by(c.logged_serial, c.visit_id)
            .limit(_AT_A_TIME)
            .subquery()
        )
        query = (
            select(
                ids.c.logged_serial,
                visits.c.id,
                visits.c.project_id,
                projects.c.name,
                projects.c.normalized,
                *(visits.c[name] for name in ("visit", "kind", "workload", "started_at", "rulesets")),
            )
            .select_from(ids)
            .join(visits, visits.c.id == ids.c.visit_id)
            .join(projects, projects.c.id == visits.c.project_id)
            .order_by(ids.c.logged_serial, ids.c.visit_id)
        )
        found = [_LoggedVisit._make(row) for row in connection.execute(query)]
        if not found:
            return
        yield found
        after = (found[-1].logged_serial, found[-1].id)


def _statuses(connection: Connection, logged: Sequence[_LoggedVisit]) -> Mapping[int, list[Row[Any]]]:
    found: dict[int, list[Row[Any]]] = defaultdict(list)
    c = visit_statuses.c
    query = select(visit_statuses).where(c.visit_id.in_([one.id for one in logged])).order_by(c.id)
    for row in connection.execute(query):
        found[row.visit_id].append(row)
    return found


def _snapshot_of(statuses: Sequence[Row[Any]]) -> int | None:
    return next((row.snapshot_id for row in reversed(statuses) if row.snapshot_id is not None), None)


def _bases(connection: Connection, logged: Sequence[_LoggedVisit]) -> dict[int, int]:
    """Return, by visit id, the snapshot of the newest earlier visit of the same project whose record comes before."""
    own, earlier = visit_statuses.alias("own"), visit_statuses.alias("earlier")
    of_project, its = visits.alias("of_project"), visits.alias("its")
    base = (
        select(earlier.c.snapshot_id)
        .join(of_project, of_project.c.id == earlier.c.visit_id)
        .where(
            of_project.c.project_id == its.c.project_id,
            of_project.c.visit < its.c.visit,
            earlier.c.snapshot_id.is_not(None),
            earlier.c.logged_serial <= own.c.logged_serial,
        )
        .order_by(of_project.c.visit.desc())
        .limit(1)
        .correlate(own, its)
        .scalar_subquery()
    )
    query = (
        select(own.c.visit_id, base)
        .join(its, its.c.id == own.c.visit_id)
        .where(own.c.visit_id.in_([one.id for one in logged]), own.c.snapshot_id.is_not(None))
    )
    return {visit_id: snapshot_id for visit_id, snapshot_id in connection.execute(query) if snapshot_id is not None}


def _record(logged: _LoggedVisit, statuses: Sequence[Row[Any]]) -> Record:
    last, seen = statuses[-1], next((row for row in reversed(statuses) if row.snapshot_id is not None), None)
    serial = logged.logged_serial
    if seen is not None:
        serial = seen.seen_through if seen.page_serial is None else seen.page_serial
    kind = VisitKind(f"visit {last.status.replace('_', ' ')}")
    record = new_record(logged.logged_serial, serial, kind.value, int(last.at))
    record |= {"project": logged.project, "normalized": logged.normalized, "visit": logged.visit}
    record |= {"workload": logged.workload, "visit_kind": logged.kind, "started_at": logged.started_at}
    record["rulesets"] = logged.rulesets
    record["statuses"] = [_status(row) for row in statuses]
    return record | {"snapshot": None, "files": None, "base": None, "gone": [], "changed": []}


def _status(row: Row[Any]) -> Record:
    shown = {name: value for name in STATUS_FIELDS if (value := getattr(row, name)) is not None}
    return {"at": row.at, "status": row.status, **shown}


def _page(
    snapshot_id: int, base_id: int | None, summaries: Mapping[int, SnapshotSummary], entries: Mapping[int, Entries]
) -> Record:
    """Return the fields about the page that a visit saw, as the difference from the page `base_id`."""
    shown = summaries[snapshot_id]
    page: Record = {"snapshot": shown.sha256, "files": shown.files}
    if base_id == snapshot_id:
        return page | {"base": shown.sha256}
    own, base = entries[snapshot_id], {} if base_id is None else entries[base_id]
    return page | {
        "base": None if base_id is None else summaries[base_id].sha256,
        "gone": sorted(base.keys() - own.keys()),
        "changed": [[name, *entry] for name, entry in sorted(own.items()) if base.get(name) != entry],
    }
