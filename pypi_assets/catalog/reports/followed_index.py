"""How far the catalog follows its index: the complete serial, and what it knows to lie beyond it."""

from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.events import first_event_time
from pypi_assets.catalog.observed.file_origins import known_file_origin
from pypi_assets.catalog.observed.index_state import ChangelogTrouble, changelog_trouble, last_listed
from pypi_assets.catalog.observed.observations import first_observed_at, observed_serial
from pypi_assets.catalog.work.full_crawls import followed_index, has_baseline


@dataclass(frozen=True, slots=True)
class Followed:
    """How far the index is followed. None: not known yet.

    `next_event_at` is the time of the first stored event beyond the complete serial (unix seconds). `listed_serial` is
    the serial of the list of projects that was compared last, and `listed_at` when that was. `file_origin` is that of
    the files that the first pages agreed on, empty where that is the index itself alone. Of an index without serials,
    `observed_serial` is the last one of its counter, and `next_observed_at` when the first event beyond the complete
    serial was seen.
    """

    index_url: str | None
    complete_serial: int | None
    next_event_at: float | None
    changelog_trouble: ChangelogTrouble | None
    listed_serial: int | None
    listed_at: float | None
    file_origin: str | None = None
    observed_serial: int | None = None
    next_observed_at: float | None = None

    @property
    def is_changelog_off(self) -> bool:
        return self.changelog_trouble is not None and self.changelog_trouble.is_off


def read_followed(connection: Connection) -> Followed:
    """How far the index is followed; quick on any catalog."""
    index_url = followed_index(connection)
    complete = complete_serial(connection) if has_baseline(connection) else None
    listed_serial, listed_at = (None, None) if index_url is None else last_listed(connection, index_url)
    return Followed(
        index_url=index_url,
        complete_serial=complete,
        next_event_at=None if complete is None else first_event_time(connection, complete),
        changelog_trouble=None if index_url is None else changelog_trouble(connection, index_url),
        listed_serial=listed_serial,
        listed_at=listed_at,
        file_origin=known_file_origin(connection),
        observed_serial=None if index_url is None else observed_serial(connection, index_url),
        next_observed_at=None if complete is None else first_observed_at(connection, complete),
    )
