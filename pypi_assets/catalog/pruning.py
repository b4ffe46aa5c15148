"""Delete old rows of logs, and rows that nothing refers to any longer.

A sweep reads the rows of one table in order of their ids, in many short transactions, and deletes some of them. It
stops after a number of rows, and the next sweep continues from there. So neither the work of a run nor the time for
which a transaction locks rows depends on the age of the catalog.

Facts derived from visits are stored elsewhere: file states come from sightings, which are never deleted, and each
project has its statistics. Tables that are never pruned (events, changes, intervals, sightings) do not belong here;
docs/operations.md lists all tables.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Column, Connection, Row, Table, delete, exists, func, select, update

from pypi_assets.catalog.database import Catalog, upsert
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.publications.dump_registry import DumpState
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.tables import (
    audits,
    catalog_state,
    distribution_data,
    dump_files,
    dumps,
    full_crawls,
    leveldb_builds,
    leveldb_versions,
    metadata,
    module_roots,
    name_lists,
    pruning_positions,
    read_attempts,
    requested_visits,
    required_names,
    shared_details,
    visit_statuses,
    visits,
)

ROWS_AT_A_TIME = 1_000
MOST_ROWS = 500_000
"""The number of rows that one sweep reads: many times the rows that the largest index adds to a table in a day."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The description of how to sweep one table.

    `table` has the key `id`, and each of its rows is read with `columns`. `chosen` gets rows in order of their ids, and
    returns the ids to delete. With `locks`, it is called again once those rows are locked: other transactions that
    refer to a row lock it too, and rows that they have locked are skipped. `owned` are columns of other tables that
    refer to `table`: their rows are deleted with the rows that they refer to. A sweep ends at the last row, or when no
    row of a transaction `is_old`; the next sweep then starts at the first row.
    """

    table: Table
    chosen: Callable[[Connection, Sequence[Row[Any]]], Sequence[int]]
    columns: tuple[Column[Any], ...] = ()
    owned: tuple[Column[Any], ...] = ()
    is_old: Callable[[Row[Any]], bool] = lambda _row: True
    locks: bool = False

    @property
    def name(self) -> str:
        return str(self.table.name)


@dataclass(frozen=True, slots=True)
class _Step:
    """The result of one transaction: the numbers of rows that it read and deleted.

    The next transaction begins after the id `position`; if it is None, the sweep has ended.
    """

    seen: int
    deleted: int
    position: int | None


def sweep(catalog: Catalog, sweeping: Sweep, *, most: int = MOST_ROWS, dry_run: bool = False) -> int:
    """Delete the `chosen` rows among the next `most` rows (approximately), and return the number of deleted rows.

    A `dry_run` deletes nothing, and does not move the position at which the next sweep begins.
    """
    with catalog.read() as connection:
        position: int | None = _position(connection, sweeping)
    deleted = seen = 0
    while position is not None and seen < most:
        after = position
        if dry_run:
            with catalog.read() as connection:
                step = _step(connection, sweeping, after, dry_run=True)
        else:
            step = catalog.transact(partial(_step, sweeping=sweeping, after=after))
        deleted, seen, position = deleted + step.deleted, seen + step.seen, step.position
    return deleted


def _position(connection: Connection, sweeping: Sweep) -> int:
    of_table = pruning_positions.c.table_name == sweeping.name
    return int(connection.scalar(select(pruning_positions.c.position).where(of_table)) or 0)


def _step(connection: Connection, sweeping: Sweep, after: int, *, dry_run: bool = False) -> _Step:
    """Read the next rows, delete the chosen ones, and store the position."""
    table = sweeping.table
    query = select(table.c.id, *sweeping.columns).where(table.c.id > after).order_by(table.c.id)
    rows = connection.execute(query.limit(ROWS_AT_A_TIME)).all()
    is_last = len(rows) < ROWS_AT_A_TIME or not any(sweeping.is_old(row) for row in rows)
    position = None if is_last else int(rows[-1].id)
    chosen = list(sweeping.chosen(connection, rows)) if rows else []
    if not dry_run:
        if chosen and sweeping.locks:
            chosen = _still_chosen(connection, sweeping, rows, chosen)
        if chosen:
            for column in sweeping.owned:
                connection.execute(delete(column.table).where(column.in_(chosen)))
            connection.execute(delete(table).where(table.c.id.in_(chosen)))
        row = {"table_name": sweeping.name, "position": position or 0}
        upsert(connection, pruning_positions, [row], key=("table_name",), update=("position",))
    return _Step(len(rows), len(chosen), position)


def _still_chosen(
    connection: Connection, sweeping: Sweep, rows: Sequence[Row[Any]], chosen: Sequence[int]
) -> list[int]:
    """Return the `chosen` rows that could be locked and are still unreferenced."""
    id_ = sweeping.table.c.id
    locked = set(connection.scalars(select(id_).where(id_.in_(chosen)).with_for_update(skip_locked=True)))
    return list(sweeping.chosen(connection, [row for row in rows if row.id in locked]))


FIRST_VISITS_KEPT = 1_000
"""The first visits are never deleted: the pages that they saw decide which hosts files may come from."""
_UNREAD = (ReadOutcome.PENDING, ReadOutcome.ERROR, ReadOutcome.EXHAUSTED)


def old_visits(before: float) -> Sweep:
    """Return the sweep of visits that began before `before` (unix seconds), except the newest visit of each project.

    The newest visit has the project's last outcome and visit number, from which new visits are numbered. The visits of
    an open full crawl or audit are not deleted either, since they are needed to complete it.
    """
    later = visits.alias("later")
    is_newest = ~exists().where(later.c.project_id == visits.c.project_id, later.c.visit > visits.c.visit)

    def chosen(connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        workloads = [
            f"{kind}:{id_}"
            for kind, table in (("crawl", full_crawls), ("audit", audits))
            for id_ in connection.scalars(select(table.c.id).where(table.c.open.is_not(None)))
        ]
        ids = [row.id for row in rows if row.started_at < before and row.id > FIRST_VISITS_KEPT]
        return connection.scalars(
            select(visits.c.id).where(visits.c.id.in_(ids), ~is_newest, visits.c.workload.not_in(workloads))
        ).all()

    return Sweep(
        visits,
        chosen,
        columns=(visits.c.started_at,),
        owned=(visit_statuses.c.visit_id,),
        is_old=lambda row: row.started_at < before,
    )


def old_requests(before: float) -> Sweep:
    """Return the sweep of requests for visits that ended before `before` (unix seconds)."""

    def chosen(_connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        return [row.id for row in rows if row.ended_at is not None and row.ended_at < before]

    return Sweep(requested_visits, chosen, columns=(requested_visits.c.ended_at,))


def old_attempts(before: float) -> Sweep:
    """Return the sweep of attempts to read that began before `before` (unix seconds), unless their files are unread.

    Failures of unread files are listed with their number of attempts. If a worker died during an attempt, the time of
    the attempt is unknown: it is deleted together with the attempt before it, or with the one after it if no earlier
    attempt is among the rows. The newest attempt of all is not deleted, since ids continue from it.
    """

    def chosen(connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        ids = []
        is_old = next((row.started_at < before for row in rows if row.started_at is not None), False)
        for row in rows:
            is_old = is_old if row.started_at is None else row.started_at < before
            if is_old:
                ids.append(row.id)
        is_unread = exists().where(
            distribution_data.c.distribution_id == read_attempts.c.distribution_id,
            distribution_data.c.outcome.in_(_UNREAD),
        )
        newest = select(func.max(read_attempts.c.id)).scalar_subquery()
        return connection.scalars(
            select(read_attempts.c.id).where(read_attempts.c.id.in_(ids), read_attempts.c.id < newest, ~is_unread)
        ).all()

    return Sweep(
        read_attempts,
        chosen,
        columns=(read_attempts.c.started_at,),
        is_old=lambda row: row.started_at is not None and row.started_at < before,
    )


def unused_lists() -> Sweep:
    """Return the sweep of lists of names that no file refers to, with the rows that index them by name."""
    return _unused(name_lists, module_roots.c.list_id, required_names.c.list_id)


def unused_details() -> Sweep:
    return _unused(shared_details)


def referring_columns(table: Table) -> list[Column[Any]]:
    """Return the columns of all tables that refer to the id of `table`."""
    return [
        key.parent
        for other in metadata.sorted_tables
        for key in sorted(other.foreign_keys, key=lambda key: str(key.parent.name))
        if key.column is table.c.id
    ]


def _unused(table: Table, *owned: Column[Any]) -> Sweep:
    """Return the sweep of rows of `table` that no column refers to except `owned`."""
    owners = {column.table for column in owned}
    referring = [column for column in referring_columns(table) if column.table not in owners]
    is_unused = [~exists().where(column == table.c.id) for column in referring]

    def chosen(connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        ids = [row.id for row in rows]
        return connection.scalars(select(table.c.id).where(table.c.id.in_(ids), *is_unused)).all()

    return Sweep(table, chosen, owned=owned, locks=True)


NAMES_AT_A_TIME = 1_000


def forget_dumps(catalog: Catalog, before: float, there: Collection[str]) -> int:
    """Delete the rows of dropped dumps that were opened before `before` (unix seconds), and return their number.

    A row is not deleted while its directory still exists, as listed in `there`. The newest dump is not deleted either,
    since new names continue from it.
    """

    def forget(connection: Connection, after: int) -> tuple[int, int | None]:
        lock_state(connection, exclusive=True)
        newest = select(func.max(dumps.c.id)).scalar_subquery()
        is_old = (dumps.c.state == DumpState.DROPPED, dumps.c.opened_at < before, dumps.c.id < newest)
        columns = select(dumps.c.id, dumps.c.directory, dumps.c.end)
        query = columns.where(*is_old, dumps.c.id > after).order_by(dumps.c.id).limit(NAMES_AT_A_TIME)
        found = connection.execute(query).all()
        gone = [row for row in found if row.directory not in there]
        if gone:
            ids, end = [row.id for row in gone], max(row.end for row in gone)
            connection.execute(delete(dump_files).where(dump_files.c.dump_id.in_(ids)))
            connection.execute(delete(dumps).where(dumps.c.id.in_(ids)))
            through = catalog_state.c.dumps_forgotten_through
            connection.execute(update(catalog_state).where(through < end).values(dumps_forgotten_through=end))
        return len(gone), found[-1].id if len(found) == NAMES_AT_A_TIME else None

    return _repeated(catalog, forget)


def forget_versions(catalog: Catalog, before: float, there: Collection[tuple[str, str]]) -> int:
    """Delete the rows of versions allocated before `before` (unix seconds) and of their builds; return the number.

    A version is not deleted while a directory of one of its builds exists, as listed in `there` by (dataset,
    directory). The newest version is not deleted either, since version numbers continue from it.
    """

    def forget(connection: Connection, after: int) -> tuple[int, int | None]:
        lock_state(connection, exclusive=True)  # otherwise a build of one of the versions could begin
        version, builds = leveldb_versions.c.version, leveldb_builds.c
        newest = select(func.max(version)).scalar_subquery()
        is_old = (leveldb_versions.c.requested_at < before, version < newest, version > after)
        found = connection.scalars(select(version).where(*is_old).order_by(version).limit(NAMES_AT_A_TIME)).all()
        named = select(builds.version, builds.dataset, builds.directory).where(builds.version.in_(found))
        kept = {row.version for row in connection.execute(named) if (row.dataset, row.directory) in there}
        gone = sorted({*found} - kept)
        connection.execute(delete(leveldb_builds).where(builds.version.in_(gone)))
        connection.execute(delete(leveldb_versions).where(version.in_(gone)))
        return len(gone), found[-1] if len(found) == NAMES_AT_A_TIME else None

    return _repeated(catalog, forget)


def _repeated(catalog: Catalog, forget: Callable[..., tuple[int, int | None]]) -> int:
    """Call `forget` in successive transactions until it returns no position to continue from. Return the total."""
    forgotten, after = 0, 0
    while True:
        count, last = catalog.transact(partial(forget, after=after))
        forgotten += count
        if last is None:
            return forgotten
        after = last
