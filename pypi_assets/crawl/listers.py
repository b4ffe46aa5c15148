"""The protocol of a lister, and the loop that runs one: each page is committed with the lister's state, then the end.

So a stop at any moment loses no committed page, and of two runs at the same time neither sets the other back. The
listers are in `stored_events.py` and `simple_lister.py`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from pypi_assets.catalog.observed.index_state import Content, ListerState, read_lister_state, save_lister_state
from pypi_assets.crawl.crawler import Crawler

PageT = TypeVar("PageT")


class Lister(Protocol[PageT]):
    """Brings the changes of an index into the catalog, page by page.

    `commit` stores one page, and `finalize` what follows from all of them; each returns the lister's new state.
    Both can run again, so they change nothing but the catalog, and themselves only in ways that a second run repeats.
    `reconcile` merges the state that another run has stored meanwhile with the own one, or raises OvertakenError.
    """

    name: str

    def pages(self) -> Iterator[PageT]: ...

    def commit(self, connection: Connection, page: PageT) -> Content: ...

    def finalize(self, connection: Connection) -> Content | None: ...

    def reconcile(self, stored: Content, own: Content) -> Content: ...


def run_lister(crawler: Crawler, lister: Lister[PageT]) -> None:
    """Runs `lister` from its first page to its end."""
    catalog = crawler.catalog
    with catalog.read() as connection:
        state = read_lister_state(connection, lister.name, crawler.index.index_url)
    for page in lister.pages():
        state = catalog.transact(partial(_commit, crawler, lister, state, page))
    catalog.transact(partial(_finalize, crawler, lister, state))


def _commit(
    crawler: Crawler, lister: Lister[PageT], known: ListerState, page: PageT, connection: Connection
) -> ListerState:
    content = lister.commit(connection, page)
    return save_lister_state(connection, known, content, crawler.catalog.clock(), lister.reconcile)


def _finalize(crawler: Crawler, lister: Lister[PageT], known: ListerState, connection: Connection) -> None:
    end = lister.finalize(connection)
    if end is not None:
        save_lister_state(connection, known, end, crawler.catalog.clock(), lister.reconcile)
