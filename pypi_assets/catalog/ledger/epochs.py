"""Epochs of serials, by which a reader knows whether an answer at a serial has changed, and announcements of changes.

Two answers at a serial are equal if the serial had the same epoch. The answer at a serial can improve later: a file is
read late or reprocessed, a page corrects a derived change, a yank reason or a name changes. Each such change gives a
new epoch to its serial and to all later serials.

Epochs are a staircase: each step begins at a serial and has a greater epoch than the steps before it. A change at a
serial replaces all later steps by one, so the steps are few.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from sqlalchemy import Connection, case, delete, func, select, text
from sqlalchemy.dialects import postgresql, sqlite

from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.ledger.range_ledger import complete_serial, lock_state, sealed_end_column
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.tables import catalog_state, distributions, epochs, journal_notices, live_intervals


class NoticeKind(StrEnum):
    """The kind of an announcement."""

    EPOCH_CHANGED = "epoch changed"
    REPROCESSED = "reprocessed"
    TAKEN_DOWN = "records taken down"


class Notice(NamedTuple):
    """An announcement: `of_serial` is the least serial whose answers it concerns."""

    logged_serial: int
    kind: NoticeKind
    of_serial: int


def announce(connection: Connection, kind: NoticeKind, of_serial: int) -> None:
    """Log an announcement after the last sealed serial, or at `of_serial` if that is later.

    Announcements of one kind at one serial become one, with the least `of_serial`. The caller has the state's shared
    lock, so that no range is sealed meanwhile.
    """
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    sealed = sealed_end_column()
    logged = case((sealed < of_serial, of_serial), else_=sealed + 1)
    sequence = select(catalog_state.c.next_dump_sequence).scalar_subquery()
    new = insert(journal_notices).values(logged_serial=logged, kind=kind, of_serial=of_serial, dump_sequence=sequence)
    known = journal_notices.c.of_serial
    least = case((known < new.excluded.of_serial, known), else_=new.excluded.of_serial)
    changed = {"of_serial": least, "dump_sequence": new.excluded.dump_sequence}
    connection.execute(new.on_conflict_do_update(index_elements=["logged_serial", "kind"], set_=changed))


def is_reprocessed_since(connection: Connection, serial: int, sequence: int) -> bool:
    """Check whether records were reprocessed after the full dump of this serial and sequence."""
    c = journal_notices.c
    since = c.logged_serial > serial, c.dump_sequence > sequence
    query = select(c.kind).where(c.kind == NoticeKind.REPROCESSED, *since)
    return connection.scalar(query.limit(1)) is not None


def notices_in(connection: Connection, serials: SerialRange) -> Iterator[Notice]:
    """Yield the announcements of a range, in order of serial and kind."""
    c = journal_notices.c
    within = (c.logged_serial > serials.start, c.logged_serial <= serials.end)
    query = select(c.logged_serial, c.kind, c.of_serial).where(*within).order_by(c.logged_serial, c.kind)
    for logged, kind, of_serial in connection.execute(query):
        yield Notice(logged, NoticeKind(kind), of_serial)


_LOCK = 0x65706F63  # an arbitrary constant that identifies the advisory lock


def epoch_of(connection: Connection, serial: int) -> int:
    """Return the epoch of `serial`: the serial itself, unless its answers changed after it was complete.

    A change makes the epoch greater than any earlier epoch and than all serials that were complete then.
    Read it in the transaction of the answer, or before it.

        epoch_of(connection, 1350)  # 1350; after a late read while 1400 was complete: 1401
    """
    step = select(epochs.c.epoch).where(epochs.c.serial <= serial).order_by(epochs.c.serial.desc()).limit(1)
    return max(serial, connection.scalar(step) or 0)


def newest_epoch(connection: Connection) -> int:
    """Return the greatest epoch of a changed past; 0 if no past answer has changed.

    While it stays the same, so do the answers at each serial that was complete when the epoch was first read. Read it
    in the transaction of the answer, or before it.
    """
    return connection.scalar(select(epochs.c.epoch).order_by(epochs.c.serial.desc()).limit(1)) or 0


def epochs_of(connection: Connection, serials: Collection[int]) -> dict[int, int]:
    """Return the epoch of each serial, with one query for the steps between the least and the greatest."""
    if not serials:
        return {}
    least, greatest = min(serials), max(serials)
    steps = select(epochs.c.serial, epochs.c.epoch).where(epochs.c.serial > least, epochs.c.serial <= greatest)
    rows = connection.execute(steps.order_by(epochs.c.serial)).all()
    edges = [least, *(row.serial for row in rows), greatest + 1]
    values = [epoch_of(connection, least), *(row.epoch for row in rows)]
    found: dict[int, int] = {}
    wanted = sorted(set(serials), reverse=True)
    for (_, end), epoch in zip(pairwise(edges), values, strict=True):
        while wanted and wanted[-1] < end:
            found[wanted[-1]] = max(wanted[-1], epoch)
            wanted.pop()
    return found


def note_change(connection: Connection, serial: int, complete: int | None = None) -> None:
    """Give a new epoch to `serial` and all later serials, since this transaction changes their answers.

    An incomplete serial needs no epoch, because no answer was given for it. The caller has locked the rows that it
    changes, and has the state's shared lock, so that no range is completed until this is committed. `complete` is the
    complete serial, read under that lock; if it is None, it is read here.
    """
    complete = complete_serial(connection) if complete is None else complete
    if serial > complete:
        return
    if connection.dialect.name != "sqlite":  # one change at a time, since a later epoch must be greater
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    last = select(epochs.c.epoch).order_by(epochs.c.serial.desc()).limit(1).scalar_subquery()
    greatest = case((last > complete, last), else_=complete)
    new = insert(epochs).values(serial=serial, epoch=greatest + 1)
    connection.execute(new.on_conflict_do_update(index_elements=["serial"], set_={"epoch": new.excluded.epoch}))
    connection.execute(delete(epochs).where(epochs.c.serial > serial))
    announce(connection, NoticeKind.EPOCH_CHANGED, serial)


def note_changed_files(connection: Connection, distribution_ids: Iterable[int]) -> int | None:
    """Give a new epoch to all serials from the first at which one of these files was live, since their data changes.

    Return that first serial, or None if no file was ever live. If there is one, the state has a shared lock until the
    transaction ends.
    """
    starts = [
        start
        for ids in at_a_time(sorted(distribution_ids))
        for start in connection.scalars(
            select(func.min(live_intervals.c.start)).where(live_intervals.c.distribution_id.in_(ids))
        )
        if start is not None
    ]
    if starts:
        lock_state(connection, exclusive=False)
        note_change(connection, min(starts))
    return min(starts, default=None)


def note_changed_projects(connection: Connection, project_ids: Iterable[int]) -> None:
    """Give a new epoch to all serials from the first live file of these projects.

    Call it in the transaction that changes data of the projects, such as a name.
    """
    for ids in at_a_time(sorted(project_ids)):
        of_projects = select(distributions.c.id).where(distributions.c.project_id.in_(ids))
        start = connection.scalar(
            select(func.min(live_intervals.c.start)).where(live_intervals.c.distribution_id.in_(of_projects))
        )
        if start is not None:
            lock_state(connection, exclusive=False)
            note_change(connection, start)
