"""Announcements of the journal that concern more than one file: a changed past, a reprocess, and takedowns."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import Connection, case, select
from sqlalchemy.dialects import postgresql, sqlite

from pypi_assets.catalog.ledger.range_ledger import sealed_end_column
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.tables import catalog_state, journal_notices


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
    """Log an announcement after the last sealed serial, or at `of_serial` if that is later. Announcements of one kind
    at one serial become one, with the least `of_serial`.

    The caller has the state's shared lock, so that no range is sealed meanwhile.
    """
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    sealed = sealed_end_column()
    logged = case((sealed < of_serial, of_serial), else_=sealed + 1)
    sequence = select(catalog_state.c.next_dump_sequence).scalar_subquery()
    new = insert(journal_notices).values(logged_serial=logged, kind=kind, of_serial=of_serial, dump_sequence=sequence)
    of = journal_notices.c.of_serial
    least = case((of < new.excluded.of_serial, of), else_=new.excluded.of_serial)
    changed = {"of_serial": least, "dump_sequence": new.excluded.dump_sequence}
    connection.execute(new.on_conflict_do_update(index_elements=["logged_serial", "kind"], set_=changed))


def is_reprocessed_since(connection: Connection, serial: int, sequence: int) -> bool:
    """Check whether records were reprocessed after the full dump of this serial and sequence."""
    of = journal_notices.c
    since = of.logged_serial > serial, of.dump_sequence > sequence
    query = select(of.kind).where(of.kind == NoticeKind.REPROCESSED, *since)
    return connection.scalar(query.limit(1)) is not None


def notices_in(connection: Connection, serials: SerialRange) -> Iterator[Notice]:
    """Yield the announcements of a range, in order of serial and kind."""
    of = journal_notices.c
    within = (of.logged_serial > serials.start, of.logged_serial <= serials.end)
    query = select(of.logged_serial, of.kind, of.of_serial).where(*within).order_by(of.logged_serial, of.kind)
    for logged, kind, of_serial in connection.execute(query):
        yield Notice(logged, NoticeKind(kind), of_serial)
