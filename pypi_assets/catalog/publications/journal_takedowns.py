"""What was taken down from the journal: by project, release or file, or one record by its place.

The catalog keeps what it describes, so each segment that is written leaves it out by these rows. What the published
segments have of it does not belong here.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.notices import NoticeKind, announce
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.tables import journal_takedowns


@dataclass(frozen=True, slots=True)
class Takedown:
    """A takedown: of a `project` (normalized), of its `version` or `filename` where these are given; or of the one
    record at `serial` and `ordinal` of `stream`. Times are unix seconds; `done_at` is None until no published segment
    has it.
    """

    id: int
    added_at: float
    reason: str
    project: str | None = None
    version: str | None = None
    filename: str | None = None
    stream: str | None = None
    serial: int | None = None
    ordinal: int | None = None
    hides_name: bool = False
    done_at: float | None = None


def add_takedown(catalog: Catalog, wanted: Takedown) -> Takedown:
    """Stores a takedown, whose id and time are set here. What is recorded as written later leaves it out."""

    def work(connection: Connection) -> Takedown:
        lock_state(connection, exclusive=True)  # see `newest_takedown`
        row = {name: getattr(wanted, name) for name in Takedown.__dataclass_fields__ if name != "id"}
        row |= {"added_at": catalog.clock(), "done_at": None}
        new = insert(journal_takedowns).values(row).returning(journal_takedowns.c.id)
        return Takedown(**row, id=connection.execute(new).scalar_one())

    return catalog.transact(work)


def all_takedowns(connection: Connection) -> list[Takedown]:
    """All takedowns, the oldest first."""
    return [Takedown(*row) for row in connection.execute(select(journal_takedowns).order_by(journal_takedowns.c.id))]


def newest_takedown(connection: Connection) -> int:
    """The id of the newest takedown; 0 where there is none. Under the state's shared lock none is added meanwhile."""
    return int(connection.scalar(select(func.max(journal_takedowns.c.id))) or 0)


def finish_takedowns(catalog: Catalog, done: int, least_serial: int | None) -> None:
    """Records that no published segment has what the takedowns up to the id `done` name, and announces it where records
    were replaced, of which `least_serial` is the first."""

    def work(connection: Connection) -> None:
        lock_state(connection, exclusive=False)
        if least_serial is not None:
            announce(connection, NoticeKind.TAKEN_DOWN, least_serial)
        of = journal_takedowns.c
        finished = update(journal_takedowns).where(of.id <= done, of.done_at.is_(None))
        connection.execute(finished.values(done_at=catalog.clock()))

    catalog.transact(work)


def lift_takedown(catalog: Catalog, id_: int) -> bool:
    """Removes a takedown, so that what is written from now on is complete; returns whether there was one."""
    gone = delete(journal_takedowns).where(journal_takedowns.c.id == id_)
    return catalog.transact(lambda connection: connection.execute(gone).rowcount) == 1
