"""How far the named consumers of the journal lag behind what the catalog knows."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.publications.journal_deliveries import all_consumers
from pypi_assets.catalog.tables import events, journal_letters

UNSEEN_S = 30 * 86_400.0
"""After which a consumer that was not seen holds nothing back."""


@dataclass(frozen=True, slots=True)
class ConsumerLag:
    """A consumer, and what it lacks: the serials up to the complete serial, and the seconds since the first event of
    these (0: it lacks nothing; None: no event of them is known). Of a webhook, the `waiting` and `dead` letters.
    """

    name: str
    serial: int
    cursor: str
    created_at: float
    seen_at: float
    lag_serials: int
    lag_seconds: float | None
    waiting: int
    dead: int

    def is_living(self, now: float) -> bool:
        """Whether what it has not read is kept for it."""
        return self.seen_at >= now - UNSEEN_S


def consumer_lags(connection: Connection, now: float) -> list[ConsumerLag]:
    """The lag of each consumer, by name. It takes three statements for each."""
    consumers = list(all_consumers(connection))
    if not consumers:
        return []
    complete = complete_serial(connection)
    return [
        ConsumerLag(
            name=one.name,
            serial=one.serial,
            cursor=one.cursor,
            created_at=one.created_at,
            seen_at=one.seen_at,
            lag_serials=max(complete - one.serial, 0),
            lag_seconds=_seconds(connection, one.serial, complete, now),
            waiting=_letters(connection, one.name, is_dead=False),
            dead=_letters(connection, one.name, is_dead=True),
        )
        for one in consumers
    ]


def _letters(connection: Connection, consumer: str, *, is_dead: bool) -> int:
    of = journal_letters.c
    query = select(func.count()).select_from(journal_letters).where(of.consumer == consumer, of.is_dead.is_(is_dead))
    return int(connection.scalar(query) or 0)


def _seconds(connection: Connection, serial: int, complete: int, now: float) -> float | None:
    if serial >= complete:
        return 0.0
    of = events.c
    lacking = select(of.timestamp).where(of.serial > serial, of.serial <= complete).order_by(of.serial).limit(1)
    began = connection.scalar(lacking)
    return None if began is None else max(now - float(began), 0.0)
