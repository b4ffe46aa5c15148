"""The index's events as it sent them, and the serial up to which they are stored without a gap."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, Select, and_, bindparam, case, exists, func, or_, select, update

from pypi_assets.catalog.database import Catalog, CatalogError, at_a_time, insert_missing
from pypi_assets.catalog.ledger.range_ledger import lock_state, read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.followed import is_followed
from pypi_assets.catalog.observed.projects import (
    Selection,
    ShownName,
    enter_projects,
    log_renamed,
    project_ids,
    rename_projects,
)
from pypi_assets.catalog.observed.visit_statistics import note_changes, note_seen
from pypi_assets.catalog.tables import catalog_state, checkpoints, events, projects
from pypi_assets.index.actions import NO_FILE_CHANGE, Action, file_change
from pypi_assets.index.models import ChangelogEvent

_SPANS_AT_A_TIME = 200  # SQLite limits the depth of a condition


@dataclass(frozen=True, slots=True)
class RangeEvents:
    """Counts of the events of a range. `unknown` counts events whose action this version of the code does not know."""

    events: int
    unknown: int
    changed_projects: int


def events_through(connection: Connection) -> int:
    """Return the serial up to which all events since the first full crawl are stored."""
    return int(read_state(connection)["events_through"])


def events_since(connection: Connection) -> int:
    """Return the serial above which all events of every followed project are stored."""
    return int(read_state(connection)["events_since"])


def stored_events(
    connection: Connection, after: int, through: int, at_a_time: int
) -> Iterator[Sequence[tuple[int, str, str, str | None, int, str]]]:
    """Yield the stored events with `after` < serial <= `through`, by serial, up to `at_a_time` together.

    Each is the serial, the name in the event, the project's normalized name, the version, the time in unix seconds, and
    the action.
    """
    c = events.c
    query = (
        select(c.serial, c.name, projects.c.normalized, c.version, c.timestamp, c.action)
        .join(projects, projects.c.id == c.project_id)
        .where(c.serial > after, c.serial <= through)
        .order_by(c.serial)
    )
    for rows in connection.execution_options(yield_per=at_a_time).execute(query).partitions():
        yield [tuple(row) for row in rows]


def stored_event_count(connection: Connection, through: int) -> int:
    """Return the number of stored events up to the serial `through`."""
    return int(connection.scalar(select(func.count()).where(events.c.serial <= through)) or 0)


def store_events(connection: Connection, page: Sequence[ChangelogEvent], after: int, through: int) -> None:
    """Store one page of the changelog: all events with `after` < serial <= `through`.

    Events that are already stored do not change. Projects take the names that newer events display. Raises CatalogError
    if `after` would leave a gap.
    """
    wanted = _followed(page, through, Selection())
    ids = _entered(connection, wanted)
    renamed = rename_projects(connection, (ShownName(event.name, event.serial) for event, _ in wanted), are_events=True)
    state = lock_state(connection, exclusive=True)
    if after > state["events_through"]:
        raise CatalogError(
            f"events are stored up to serial {state['events_through']}, so a page after {after} leaves a gap"
        )
    log_renamed(connection, renamed)
    _insert_events(connection, wanted, ids)
    if through > state["events_through"]:
        connection.execute(update(catalog_state).values(events_through=through))


def store_earlier_events(
    catalog: Catalog, earlier: Sequence[ChangelogEvent], after: int, until: int, selection: Selection
) -> None:
    """Store all events with `after` < serial <= `until`, directly below the events that are already stored.

    Once all events above serial 0 are stored, the history of each project is known from its beginning. With a
    selection, only events of its projects are stored. Raises CatalogError if `until` would leave a gap.
    """

    wanted = _followed((event for event in earlier if event.serial > after), until, selection)

    def store(connection: Connection) -> None:
        ids = _entered(connection, wanted)
        state = lock_state(connection, exclusive=True)
        since = state["events_since"]
        if until < since:
            raise CatalogError(f"events are stored above serial {since}, so a page up to {until} leaves a gap")
        _insert_events(connection, wanted, ids)
        if after < since:
            of_all = {"all_events_since": since} if selection.names and state["all_events_since"] is None else {}
            connection.execute(update(catalog_state).values(events_since=after, **of_all))

    catalog.transact(store)


class _Followed(NamedTuple):
    """An event of a followed project, and the project's normalized name."""

    event: ChangelogEvent
    project: str


def _followed(page: Iterable[ChangelogEvent], through: int, selection: Selection) -> list[_Followed]:
    normalized: dict[str, str] = {}
    found = []
    for event in page:
        if (name := normalized.get(event.name)) is None:
            name = normalized[event.name] = canonicalize_name(event.name)
        if event.serial <= through and name in selection:
            found.append(_Followed(event, name))
    return found


def _insert_events(connection: Connection, wanted: Sequence[_Followed], ids: Mapping[str, int]) -> None:
    named_at: dict[int, float] = {}
    changed_at: dict[int, list[float]] = {}
    kinds = [file_change(event).action for event, _ in wanted]
    for (event, project), kind in zip(wanted, kinds, strict=True):
        project_id = ids[project]
        named_at[project_id] = max(event.timestamp, named_at.get(project_id, 0.0))
        if kind not in NO_FILE_CHANGE:
            changed_at.setdefault(project_id, []).append(event.timestamp)
    note_seen(connection, named_at)
    note_changes(connection, changed_at)
    insert_missing(
        connection,
        events,
        [
            {
                "serial": event.serial,
                "project_id": ids[project],
                "name": event.name,
                "version": event.version,
                "timestamp": event.timestamp,
                "action": event.action,
                "kind": kind,
            }
            for (event, project), kind in zip(wanted, kinds, strict=True)
        ],
    )


def _entered(connection: Connection, wanted: Iterable[_Followed]) -> dict[str, int]:
    """Return the ids of the projects in `wanted`, by normalized name.

    New projects are inserted, with the name that their last event displays; their events are known since the first one.
    """
    first: dict[str, ChangelogEvent] = {}
    last: dict[str, ChangelogEvent] = {}
    for event, project in wanted:
        first.setdefault(project, event)
        last[project] = event
    ids = project_ids(connection, sorted(first))
    new = sorted(first.keys() - ids.keys())
    enter_projects(connection, ((last[name].name, first[name].serial - 1, last[name].serial) for name in new))
    return ids | project_ids(connection, new)


def events_understood_now(connection: Connection) -> list[ChangelogEvent]:
    """Return, in order of serial, the events whose action was unknown when they were stored, but is known by this code.

    Reads all events with an unknown action.
    """
    columns = [events.c[field.name] for field in fields(ChangelogEvent)]
    unknown = select(*columns).where(events.c.kind == Action.UNKNOWN).order_by(events.c.serial)
    found = (ChangelogEvent(*row) for row in connection.execute(unknown))
    return [event for event in found if file_change(event).action != Action.UNKNOWN]


def classify_again(connection: Connection, understood: Sequence[ChangelogEvent]) -> None:
    """Store the kind of these events, as this version of the code understands their actions."""
    if understood:
        connection.execute(
            update(events).where(events.c.serial == bindparam("of_serial")).values(kind=bindparam("new_kind")),
            [{"of_serial": event.serial, "new_kind": file_change(event).action} for event in understood],
        )


def last_event(connection: Connection) -> ChangelogEvent | None:
    """Return the stored event with the greatest serial; None if there is none."""
    greatest = select(func.max(events.c.serial)).scalar_subquery()
    row = connection.execute(select(events).where(events.c.serial == greatest)).first()
    return None if row is None else ChangelogEvent(row.name, row.version, row.timestamp, row.action, row.serial)


def first_event_time(connection: Connection, after: int) -> int | None:
    """Return the time of the first stored event above the serial `after`, in unix seconds; None if there is none."""
    query = select(events.c.timestamp).where(events.c.serial > after).order_by(events.c.serial).limit(1)
    return connection.scalar(query)


def events_by_project(connection: Connection, project_ids: Iterable[int]) -> dict[int, list[ChangelogEvent]]:
    """Return all stored events of each of the projects, in order of serial."""
    return _events_of(connection, project_ids, select(*_EVENT_COLUMNS))


def events_beyond_checkpoints(connection: Connection, project_ids: Iterable[int]) -> dict[int, list[ChangelogEvent]]:
    """Return the events of each project above the serial of its checkpoint, in order. Each must have a checkpoint."""
    beyond = (events.c.project_id == checkpoints.c.project_id) & (events.c.serial > checkpoints.c.serial)
    return _events_of(connection, project_ids, select(*_EVENT_COLUMNS).join_from(checkpoints, events, beyond))


_EVENT_COLUMNS = (events.c.project_id, *(events.c[field.name] for field in fields(ChangelogEvent)))


def _events_of(
    connection: Connection, project_ids: Iterable[int], query: Select[Any]
) -> dict[int, list[ChangelogEvent]]:
    found: dict[int, list[ChangelogEvent]] = {project_id: [] for project_id in project_ids}
    for ids in at_a_time(found):
        for project_id, *values in connection.execute(
            query.where(events.c.project_id.in_(ids)).order_by(events.c.serial)
        ):
            found[project_id].append(ChangelogEvent(*values))
    return found


def changed_projects(connection: Connection, serials: SerialRange) -> list[tuple[int, int, int]]:
    """Return (project id, shard, serial) for each followed project with an event in `serials` that changes files.

    The serial is that of the last such event.
    """
    rows = connection.execute(
        select(events.c.project_id, projects.c.shard, func.max(events.c.serial))
        .join(projects, projects.c.id == events.c.project_id)
        .where(
            events.c.serial > serials.start,
            events.c.serial <= serials.end,
            events.c.kind.not_in(sorted(NO_FILE_CHANGE)),
            is_followed(connection, projects.c.id),
        )
        .group_by(events.c.project_id, projects.c.shard)
        .order_by(events.c.project_id)
    )
    return [(project_id, shard, serial) for project_id, shard, serial in rows]


def range_ends(connection: Connection, serials: SerialRange, events_each: int) -> list[int]:
    """Return the serials at which to cut `serials` into parts of `events_each` events; the last part may have fewer.

    All events in `serials` must be stored. The result has the end of each part, in order, so the last item is the end
    of `serials`.
    """
    ends = []
    after: int | None = serials.start
    while after is not None:
        rest = select(events.c.serial).where(events.c.serial > after, events.c.serial < serials.end)
        after = connection.scalar(rest.order_by(events.c.serial).offset(events_each - 1).limit(1))
        ends.append(serials.end if after is None else after)
    return ends


def has_at_least(connection: Connection, serials: SerialRange, count: int) -> bool:
    """Check whether a range has at least `count` (1 or more) events."""
    inside = select(events.c.serial).where(events.c.serial > serials.start, events.c.serial <= serials.end)
    return connection.scalar(inside.order_by(events.c.serial).offset(count - 1).limit(1)) is not None


def count_events(connection: Connection, serials: SerialRange) -> RangeEvents:
    """Return how many events a range has, how many of them are unknown, and how many projects they change."""
    c = events.c
    changes_files = case((c.kind.not_in(sorted(NO_FILE_CHANGE)), c.project_id))
    unknown = case((c.kind == Action.UNKNOWN, 1))
    counts = select(func.count(), func.count(unknown), func.count(changes_files.distinct()))
    inside = counts.where(c.serial > serials.start, c.serial <= serials.end)
    return RangeEvents(*connection.execute(inside).one())


def explained_absences(connection: Connection, project_ids: Iterable[int]) -> dict[int, int]:
    """Return the projects whose 404 is explained, each with the serial of the event that explains it.

    A project has no page if it was removed, or was created and never uploaded to.
    """
    deciding = events.c.kind.in_([Action.CREATE_PROJECT, Action.REMOVE_PROJECT, Action.ADD_FILE])
    latest = (
        select(events.c.serial)
        .where(events.c.project_id == projects.c.id, deciding)
        .order_by(events.c.serial.desc())
        .limit(1)  # backwards, so that the cost does not depend on the number of a project's events
        .correlate(projects)
        .scalar_subquery()
    )
    query = select(projects.c.id, events.c.serial).join_from(projects, events, events.c.serial == latest)
    explained: dict[int, int] = {}
    for ids in at_a_time(project_ids):
        rows = connection.execute(query.where(projects.c.id.in_(ids), events.c.kind != Action.ADD_FILE))
        explained.update((project_id, serial) for project_id, serial in rows)
    return explained


def with_events(connection: Connection, project_ids: Iterable[int]) -> set[int]:
    """Return the subset of the projects that have at least one stored event."""
    query = select(projects.c.id).where(exists().where(events.c.project_id == projects.c.id))
    return {row.id for ids in at_a_time(project_ids) for row in connection.execute(query.where(projects.c.id.in_(ids)))}


def without_file_changes(connection: Connection, spans: Mapping[int, tuple[int, int]]) -> set[int]:
    """Return the subset of the projects whose files no event in their span changes.

    `spans` maps project ids to (after, until), the span of the serials with `after` < serial <= `until`. A project is
    skipped if an event in its span may not be stored.
    """
    if not spans:
        return set()
    state = read_state(connection)
    known = {
        project_id: (after, until)
        for project_id, (after, until) in spans.items()
        if state["events_since"] <= after and until <= state["events_through"]
    }
    changed: set[int] = set()
    c = events.c
    ordered = sorted(known)
    for ids in (ordered[start : start + _SPANS_AT_A_TIME] for start in range(0, len(ordered), _SPANS_AT_A_TIME)):
        in_span = [and_(c.project_id == id_, c.serial > known[id_][0], c.serial <= known[id_][1]) for id_ in ids]
        query = select(c.project_id).where(or_(*in_span), c.kind.not_in(sorted(NO_FILE_CHANGE)))
        changed.update(connection.scalars(query.distinct()))
    return known.keys() - changed
