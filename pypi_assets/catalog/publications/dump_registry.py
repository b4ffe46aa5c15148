"""The catalog's registry of dumps: open and committed dumps, allocated names, and queries for their rows.

A dump is committed once its manifest is in the storage; the rows here only index the manifests.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, insert, or_, select, update

from pypi_assets.catalog.coordination.leases import oldest_lease
from pypi_assets.catalog.database import Catalog, CatalogError, at_a_time
from pypi_assets.catalog.ledger.range_ledger import (
    RangeState,
    complete_serial,
    inexact_spans,
    lock_state,
    read_state,
    require_range,
    seal,
    sealed_end,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import (
    COLUMNS,
    FULL_DUMP_SHARDS,
    DumpFile,
    DumpKind,
    Leaves,
    all_leaves,
)
from pypi_assets.catalog.publications.dump_rows import rows_at, shard_at, stream_rows
from pypi_assets.catalog.tables import catalog_state, changes, distributions, dump_files, dumps, full_crawls

FILE_NAME = "python_distribution_data{shard:04d}{suffix}{ending}"


class DumpState(StrEnum):
    OPEN = "open"
    COMMITTING = "committing"
    COMMITTED = "committed"
    DROPPED = "dropped"


class DumpError(CatalogError):
    """A dump cannot be opened or committed. The message has the reason."""


class DumpDroppedError(DumpError):
    """A dump was dropped before it was committed, and never will be committed."""


@dataclass(frozen=True, slots=True)
class Dump:
    """One dump. Of two dumps, the one with the greater `sequence` began to read later.

    `inputs` are the directories of the dumps that a compaction joined, and `joined` are their leaves. `columns` are the
    names of its rows' columns, in order. Times are unix seconds.
    """

    id: int
    kind: DumpKind
    serials: SerialRange
    directory: str
    sequence: int
    shards: int
    state: DumpState
    inputs: tuple[str, ...] = ()
    opened_at: float = 0.0
    committed_at: float | None = None
    columns: tuple[str, ...] = tuple(COLUMNS)
    joined: Leaves | None = None

    @property
    def is_late(self) -> bool:
        """Check whether the dump has only late changes to the serials up to its end, in addition to earlier dumps."""
        return self.kind != DumpKind.FULL and self.serials.start == self.serials.end

    @property
    def leaves(self) -> Leaves:
        """Return the dumps written from the catalog that this dump contains: itself, or those that it joined."""
        return self.joined or Leaves.of((self.directory,))


def open_full_dump(catalog: Catalog, shards: int = 256, since: float = 0.0) -> Dump:
    """Join the open full dump with this number of shards, or open one at the complete serial and seal its serials.

    A dump is not joined if it was opened before `since` (unix seconds), if a later full dump was committed, or if it
    has other columns than today's, because an older version of the code has left it open. Raises DumpError if the
    catalog is not exact yet at its complete serial.
    """
    if shards not in FULL_DUMP_SHARDS:
        raise DumpError(f"a full dump cannot have {shards} shards; use {', '.join(map(str, FULL_DUMP_SHARDS))}")

    def join_or_open(connection: Connection) -> Dump:
        serial = require_exact(connection)
        joined = _open_full_dump(connection, shards)
        if joined is not None and joined.opened_at >= since:
            return joined
        return _open(connection, catalog.clock(), DumpKind.FULL, SerialRange(0, serial), shards)

    return catalog.transact(join_or_open)


def find_open_full_dump(catalog: Catalog, shards: int) -> Dump | None:
    """Return the open full dump with this number of shards that `open_full_dump` would join."""
    with catalog.read() as connection:
        return _open_full_dump(connection, shards)


def _open_full_dump(connection: Connection, shards: int) -> Dump | None:
    full = _selected(connection, _is_known() & (dumps.c.kind == DumpKind.FULL))
    overtaken = max((dump.sequence for dump in full if dump.state == DumpState.COMMITTED), default=0)
    found = [
        dump
        for dump in full
        if dump.state == DumpState.OPEN and dump.shards == shards and dump.columns == tuple(COLUMNS)
    ]
    return found[-1] if found and found[-1].sequence > overtaken else None


def require_exact(connection: Connection) -> int:
    """Return the complete serial if a full dump can be opened at it, and lock the state until the transaction ends.

    Raises the errors of `exact_serial`.
    """
    lock_state(connection, exclusive=True)
    return exact_serial(connection)


def exact_serial(connection: Connection) -> int:
    """Return the complete serial if a full dump could be opened at it. It locks nothing.

    Raises DumpError if nothing is complete or the catalog is not exact yet at its complete serial, and CatalogError if
    no full crawl was opened.
    """
    state = read_state(connection)
    serial = complete_serial(connection)
    has_crawl = select(full_crawls.c.id).where(full_crawls.c.completed_at.is_not(None)).limit(1)
    if serial == 0 and connection.scalar(has_crawl) is None:
        limit = connection.scalar(select(full_crawls.c.limited_to).where(full_crawls.c.open == 1))
        if limit is not None:
            raise DumpError(
                f"the full crawl is partial, a trial of {limit} projects, so there is nothing complete to dump: run"
                " `pypi-assets crawl full` to continue to the whole index"
            )
        raise DumpError(
            "nothing is complete yet: finish a full crawl first (pypi-assets crawl full), or a scope (pypi-assets scope"
            " run)"
        )
    if serial < state["exact_from"]:
        raise DumpError(
            f"the full crawl saw pages as new as serial {state['exact_from']}, but ranges are complete only up to"
            f" {serial}: follow the changelog first (pypi-assets crawl incremental)"
        )
    if spans := inexact_spans(connection, around=serial):
        raise DumpError(
            f"the catalog is complete up to serial {serial}, but pages as new as serial {spans[-1].end} were seen while"
            " no events are known: follow the index further first (pypi-assets crawl incremental)"
        )
    return serial


def open_range_dump(catalog: Catalog, serials: SerialRange) -> Dump:
    """Open a new dump of a complete range of the ledger, and seal the range. Raises DumpError or RangeError."""

    def open_new(connection: Connection) -> Dump:
        lock_state(connection, exclusive=True)
        if require_range(connection, serials).state != RangeState.COMPLETE:
            raise DumpError(f"range {serials} is not complete: crawl it first (pypi-assets crawl incremental)")
        overtaken = dumps.c.start == dumps.c.end, dumps.c.kind != DumpKind.FULL, dumps.c.state == DumpState.OPEN
        _drop(connection, connection.scalars(select(dumps.c.id).where(*overtaken, dumps.c.end < serials.end)).all())
        return _open(connection, catalog.clock(), DumpKind.INCREMENTAL, serials, 1)

    return catalog.transact(open_new)


def has_late_changes(connection: Connection, last: Dump) -> bool:
    """Check whether there are late changes that neither the `last` dump of the cover nor a later dump contains."""
    end = last.serials.end
    if sealed_end(connection) != end:
        return False  # the dump of a later range has them, or will have them
    late = select(changes.c.id).where(_is_late(end), changes.c.dump_sequence > last.sequence)
    return connection.scalar(late.limit(1)) is not None


def open_late_dump(catalog: Catalog, last: Dump) -> Dump | None:
    """Open a dump of the late changes since the `last` dump of the cover was opened; return None if there are none."""

    def open_new(connection: Connection) -> Dump | None:
        lock_state(connection, exclusive=True)
        if not has_late_changes(connection, last):
            return None
        serials = SerialRange(last.serials.end, last.serials.end)
        return _open(connection, catalog.clock(), DumpKind.INCREMENTAL, serials, 1)

    return catalog.transact(open_new)


def open_compaction(catalog: Catalog, joined: Sequence[Dump]) -> Dump:
    """Open a new dump of the rows of the `joined` dumps, which are consecutive ranges with equal columns.

    Its sequence is the lowest of theirs.
    """
    serials = SerialRange(joined[0].serials.start, joined[-1].serials.end)

    def open_new(connection: Connection) -> Dump:
        lock_state(connection, exclusive=True)
        return _open(connection, catalog.clock(), DumpKind.COMPACTED, serials, 1, joined)

    return catalog.transact(open_new)


def _open(
    connection: Connection,
    now: float,
    kind: DumpKind,
    serials: SerialRange,
    shards: int,
    joined: Sequence[Dump] = (),
) -> Dump:
    directory = _new_directory(connection, serials)
    sequence = min(dump.sequence for dump in joined) if joined else _next_sequence(connection)
    leaves = all_leaves(dump.leaves for dump in joined) if joined else None
    seal(connection, serials)
    row = connection.execute(
        insert(dumps)
        .values(
            kind=kind,
            start=serials.start,
            end=serials.end,
            directory=directory,
            sequence=sequence,
            shards=shards,
            state=DumpState.OPEN,
            inputs=json.dumps([dump.directory for dump in joined]),
            opened_at=now,
            columns=json.dumps(joined[0].columns if joined else list(COLUMNS)),
            leaf_count=leaves and leaves.count,
            leaf_digest=leaves and leaves.digest,
        )
        .returning(dumps)
    ).one()
    return _dump(row)


def _new_directory(connection: Connection, serials: SerialRange) -> str:
    """Return a directory name that no dump ever had: `100-200`, then `100-200.2` and so on.

    If rows of dumps of these serials may have been deleted, the number is one that no dump can have had.
    """
    if serials.end <= (connection.scalar(select(catalog_state.c.dumps_forgotten_through)) or 0):
        return f"{serials.key}.{(connection.scalar(select(func.max(dumps.c.id))) or 0) + 1}"
    allocated = connection.scalar(
        select(func.count()).where(dumps.c.start == serials.start, dumps.c.end == serials.end)
    )
    return f"{serials.key}.{allocated + 1}" if allocated else serials.key


def _next_sequence(connection: Connection) -> int:
    following = connection.execute(
        update(catalog_state)
        .values(next_dump_sequence=catalog_state.c.next_dump_sequence + 1)
        .returning(catalog_state.c.next_dump_sequence)
    )
    return int(following.scalar_one()) - 1


def allocate_file_name(catalog: Catalog, dump: Dump, shard: int) -> str:
    """Allocate a filename within the dump that is never allocated twice."""

    def allocate(connection: Connection) -> str:
        lock_state(connection, exclusive=True)
        allocated = connection.scalar(
            select(func.count()).where(dump_files.c.dump_id == dump.id, dump_files.c.shard == shard)
        )
        name = FILE_NAME.format(
            shard=shard, suffix=f".{allocated + 1}" if allocated else "", ending=catalog.dump_ending
        )
        connection.execute(insert(dump_files).values(dump_id=dump.id, shard=shard, name=name))
        return name

    return catalog.transact(allocate)


def record_file(catalog: Catalog, dump: Dump, file: DumpFile) -> None:
    """Record that `file` is complete in the storage."""
    written = (
        update(dump_files)
        .where(dump_files.c.dump_id == dump.id, dump_files.c.name == file.name)
        .values(rows=file.rows, size=file.size, sha256=file.sha256)
    )
    catalog.transact(lambda connection: connection.execute(written))


def recorded_files(catalog: Catalog, dump: Dump) -> list[DumpFile]:
    """Return the files written so far, by shard. If a shard has several files, the newest name counts."""
    with catalog.read() as connection:
        return _recorded_files(connection, dump)


def _recorded_files(connection: Connection, dump: Dump) -> list[DumpFile]:
    rows = connection.execute(
        select(dump_files)
        .where(dump_files.c.dump_id == dump.id, dump_files.c.sha256.is_not(None))
        .order_by(dump_files.c.id)
    )
    newest = {row.shard: DumpFile(row.shard, row.name, row.rows, row.size, row.sha256) for row in rows}
    return [newest[shard] for shard in sorted(newest)]


def require_not_dropped(catalog: Catalog, dump: Dump) -> None:
    """Raise DumpDroppedError if the dump was dropped."""
    with catalog.read() as connection:
        if _state(connection, dump) == DumpState.DROPPED:
            raise _dropped(dump)


def begin_commit(
    catalog: Catalog, dump: Dump, is_valid: Callable[[Sequence[Dump]], bool] | None = None
) -> list[DumpFile]:
    """Fix the files of the dump and return them. Further calls return the same files.

    `is_valid` is called with all dumps that are not dropped. If it returns False, the dump is dropped, unless it is
    already committed. Raises DumpError if a shard is missing, and DumpDroppedError.
    """

    def freeze(connection: Connection) -> tuple[str | None, list[DumpFile]]:
        lock_state(connection, exclusive=True)
        state = _state(connection, dump)
        if is_valid and state in {DumpState.OPEN, DumpState.COMMITTING} and not is_valid(read_known_dumps(connection)):
            state = DumpState.DROPPED
            _drop(connection, [dump.id])
        if state == DumpState.OPEN:
            files = _recorded_files(connection, dump)
            if len(files) != dump.shards:
                missing = sorted(set(range(dump.shards)) - {file.shard for file in files})
                raise DumpError(
                    f"dump {dump.directory} cannot be committed: {len(missing)} shards missing, such as {missing[:5]}"
                )
            connection.execute(update(dumps).where(dumps.c.id == dump.id).values(state=DumpState.COMMITTING))
            connection.execute(
                update(dump_files)
                .where(dump_files.c.dump_id == dump.id, dump_files.c.name.in_([file.name for file in files]))
                .values(frozen=True)
            )
        rows = connection.execute(
            select(dump_files).where(dump_files.c.dump_id == dump.id, dump_files.c.frozen).order_by(dump_files.c.shard)
        )
        return state, [DumpFile(row.shard, row.name, row.rows, row.size, row.sha256) for row in rows]

    state, files = catalog.transact(freeze)
    if state == DumpState.DROPPED:
        raise _dropped(dump)
    return files


def mark_committed(catalog: Catalog, dump: Dump) -> None:
    """Record that the dump's manifest was written. Raises DumpDroppedError."""

    def mark(connection: Connection) -> str | None:
        lock_state(connection, exclusive=True)  # otherwise a process that has just seen it uncommitted could drop it
        connection.execute(
            update(dumps)
            .where(dumps.c.id == dump.id, dumps.c.state == DumpState.COMMITTING)
            .values(state=DumpState.COMMITTED, committed_at=catalog.clock())
        )
        return _state(connection, dump)

    if catalog.transact(mark) == DumpState.DROPPED:
        raise _dropped(dump)


def drop_unused_dumps(
    catalog: Catalog, since: float, unused: Callable[[Sequence[Dump], float], Sequence[Dump]], *, dry_run: bool = False
) -> list[Dump]:
    """Drop the dumps that `unused` returns, and return them. With `dry_run`, nothing is dropped.

    `unused` gets all dumps that are not dropped, and a time: readers may still read dumps that were in use since then.
    The time is `since`, or when the oldest valid lease was taken, if that is earlier. The files remain until they are
    deleted.
    """

    def find(connection: Connection) -> list[Dump]:
        return list(unused(read_known_dumps(connection), min(since, oldest_lease(connection, catalog.clock()))))

    def drop(connection: Connection) -> list[Dump]:
        lock_state(connection, exclusive=True)
        found = find(connection)
        _drop(connection, [dump.id for dump in found])
        return found

    if dry_run:
        with catalog.read() as connection:
            return find(connection)
    return catalog.transact(drop)


def drop_open_compactions(catalog: Catalog) -> None:
    """Drop open compactions. The caller must hold the lease, and so be the only process that writes compactions."""

    def drop(connection: Connection) -> None:
        lock_state(connection, exclusive=True)
        still_open = (dumps.c.kind == DumpKind.COMPACTED) & (dumps.c.state == DumpState.OPEN)
        _drop(connection, connection.scalars(select(dumps.c.id).where(still_open)).all())

    catalog.transact(drop)


def _drop(connection: Connection, ids: Sequence[int]) -> None:
    """Drop these dumps. Their rows are kept, so that their names are not allocated again."""
    for chunk in at_a_time(ids):
        connection.execute(update(dumps).where(dumps.c.id.in_(chunk)).values(state=DumpState.DROPPED, inputs="[]"))


def _state(connection: Connection, dump: Dump) -> str:
    """Return the state of the dump. A dump without a row was dropped long ago."""
    return connection.scalar(select(dumps.c.state).where(dumps.c.id == dump.id)) or DumpState.DROPPED


def _dropped(dump: Dump) -> DumpDroppedError:
    return DumpDroppedError(
        f"dump {dump.directory} was superseded or abandoned before it was committed: write it again"
    )


def committing_dumps(catalog: Catalog) -> list[Dump]:
    """Return the dumps whose files are fixed, and whose manifest may or may not be written."""
    return _in_state(catalog, DumpState.COMMITTING)


def committed_dumps(catalog: Catalog) -> list[Dump]:
    """Return all committed dumps, in order of their sequence."""
    with catalog.read() as connection:
        return read_committed_dumps(connection)


def read_committed_dumps(connection: Connection) -> list[Dump]:
    """Return the committed dumps in an open transaction."""
    return _selected(connection, dumps.c.state == DumpState.COMMITTED)


def files_of_dumps(catalog: Catalog) -> dict[str, set[str] | None]:
    """Return the filenames that each dump has or may get, by its directory; None if the dump was dropped."""
    recorded = dump_files.c.sha256.is_not(None) & (dump_files.c.frozen | (dumps.c.state == DumpState.OPEN))
    query = select(dumps.c.directory, dumps.c.state, dump_files.c.name).select_from(
        dumps.outerjoin(dump_files, and_(dump_files.c.dump_id == dumps.c.id, recorded))
    )
    found: dict[str, set[str] | None] = {}
    with catalog.read() as connection:
        for directory, state, name in connection.execute(query):
            names = found.setdefault(directory, None if state == DumpState.DROPPED else set())
            if names is not None and name is not None:
                names.add(name)
    return found


def known_dumps(catalog: Catalog) -> list[Dump]:
    """Return all dumps that are not dropped, in order of their sequence."""
    with catalog.read() as connection:
        return read_known_dumps(connection)


def read_known_dumps(connection: Connection) -> list[Dump]:
    """Return the dumps that are not dropped, in an open transaction."""
    return _selected(connection, _is_known())


def dumps_that_hold(catalog: Catalog, serials: SerialRange) -> list[Dump]:
    """Return the committed range dumps that contain all of `serials`, the one that began to read last first.

    The query scans all committed dumps: those of the cover, and those superseded since the last clean-up.
    """
    holds = (dumps.c.start <= serials.start) & (dumps.c.end >= serials.end) & (dumps.c.kind != DumpKind.FULL)
    with catalog.read() as connection:
        return _selected(connection, holds & (dumps.c.state == DumpState.COMMITTED))[::-1]


def _is_known() -> ColumnElement[bool]:
    return dumps.c.state.in_([DumpState.OPEN, DumpState.COMMITTING, DumpState.COMMITTED])


def _in_state(catalog: Catalog, state: DumpState) -> list[Dump]:
    with catalog.read() as connection:
        return _selected(connection, dumps.c.state == state)


def _selected(connection: Connection, condition: ColumnElement[bool]) -> list[Dump]:
    rows = connection.execute(select(dumps).where(condition).order_by(dumps.c.sequence, dumps.c.id))
    return [_dump(row) for row in rows]


def full_dump_rows(catalog: Catalog, dump: Dump, shard: int) -> Iterator[dict[str, object]]:
    """Yield the rows of one shard of a full dump: the files live at its end, by project, version and filename."""
    end = dump.serials.end
    yield from stream_rows(catalog, shard_at(catalog, end, dump.shards, shard), end)


def range_dump_rows(catalog: Catalog, dump: Dump) -> Iterator[dict[str, object]]:
    """Yield a row for each distribution changed in the dump's range: a tombstone if it is not live at the end."""
    yield from _rows_of(catalog, dump, _changed(dump.serials))


def late_dump_rows(catalog: Catalog, dump: Dump, last: Dump) -> Iterator[dict[str, object]]:
    """Yield rows like `range_dump_rows` for each distribution with late changes since the `last` dump was opened."""
    late = select(changes.c.distribution_id).where(_is_late(dump.serials.end), changes.c.dump_sequence > last.sequence)
    yield from _rows_of(catalog, dump, late.distinct())


def _rows_of(catalog: Catalog, dump: Dump, changed: Select[tuple[int]]) -> Iterator[dict[str, object]]:
    end = dump.serials.end
    yield from stream_rows(catalog, rows_at(catalog, end).where(distributions.c.id.in_(changed)), end)


def count_changed(connection: Connection, serials: SerialRange) -> tuple[int, int]:
    """Return how many distributions changed in `serials`, without and with late changes.

    The dump of the range has a row for each of these changes that was known when it was opened.
    """
    counts = (select(func.count()).select_from(one.subquery()) for one in (_on_time(serials), _changed(serials)))
    least, most = (int(connection.scalar(count) or 0) for count in counts)
    return least, most


def _changed(serials: SerialRange) -> Select[tuple[int]]:
    """Return the distributions that changed in `serials`.

    Late changes are included, since a dump that is written again also has the late changes since the first one.
    """
    return select(changes.c.distribution_id).where(or_(_is_within(serials), _is_late(serials.end))).distinct()


def _on_time(serials: SerialRange) -> Select[tuple[int]]:
    return select(changes.c.distribution_id).where(_is_within(serials)).distinct()


def _is_within(serials: SerialRange) -> ColumnElement[bool]:
    return and_(changes.c.logged_serial > serials.start, changes.c.logged_serial <= serials.end)


def _is_late(end: int) -> ColumnElement[bool]:
    """Return the condition that a change up to the serial `end` was logged after a dump had sealed that serial."""
    return and_(changes.c.logged_serial == end + 1, changes.c.serial <= end)


def _dump(row: Row[Any]) -> Dump:
    return Dump(
        id=row.id,
        kind=DumpKind(row.kind),
        serials=SerialRange(row.start, row.end),
        directory=row.directory,
        sequence=row.sequence,
        shards=row.shards,
        state=DumpState(row.state),
        inputs=_texts(row.inputs) if len(row.inputs) > len("[]") else (),
        opened_at=row.opened_at,
        committed_at=row.committed_at,
        columns=_column_names(row.columns),
        joined=None if row.leaf_digest is None else Leaves(row.leaf_count, row.leaf_digest),
    )


def _texts(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored))


_column_names = lru_cache(maxsize=64)(_texts)
"""Nearly all dumps have the same columns."""
