"""Our own crawler follows the service as an index: its catalog and its dumps equal those of the origin."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.publications.dump_rows import rows_at, stream_rows
from pypi_assets.catalog.tables import events
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.journal.replayed import histories
from pypi_assets_tests.journal.written import write_journal
from pypi_assets_tests.served_index import ServedIndex, live
from pypi_assets_tests.service.published import Client, Published, client_of

_OWN = {
    "xmlrpc": frozenset({"url", "core_metadata_sha256"}),
    "simple": frozenset({"url", "core_metadata_sha256", "live_since"}),
}
"""The columns that differ, by lister.

The service has its own addresses, and renders metadata, which the follower does not take for those of the file. A list
has no events, so a file counts from the serial at which it was first seen.
"""


@contextmanager
def follower(folder: Path) -> Iterator[Catalog]:
    catalog = open_catalog(sqlite_database(folder / "follower.sqlite"))
    try:
        yield catalog
    finally:
        catalog.close()


def crawler(client: Client, folder: Path, catalog: Catalog, lister: str) -> Crawler:
    served = ServedIndex(folder / "served")
    served.url = f"{client.url}simple/"
    return served.crawler(catalog, lister=lister)


def rows(catalog: Catalog, serial: int, lister: str) -> list[dict[str, Any]]:
    """Return the rows of a full dump at a serial, without the columns that differ."""
    dumped = [as_dumped(row) for row in stream_rows(catalog, rows_at(catalog, serial), serial)]
    found = [row for row in dumped if not row["tombstone"]]
    return [{name: value for name, value in row.items() if name not in _OWN[lister]} for row in found]


def stored_events(catalog: Catalog) -> list[tuple[Any, ...]]:
    c = events.c
    with catalog.read() as connection:
        query = select(c.serial, c.name, c.version, c.timestamp, c.action).order_by(c.serial)
        return [tuple(row) for row in connection.execute(query)]


def change(published: Published) -> None:
    history = published.index.history
    published.add("wheel", "demo", "3.0", requires_dist=["PyYAML"])
    published.add("sdist", "fresh", "0.1")
    history.unyank("demo", "2.0", at=published.at())
    history.yank("PyYAML", "6.0", "broken <6>", at=published.at())
    history.remove_project("yaml-copy", at=published.at())
    history.quarantine("Other.App", at=published.at())
    history.remove_release("demo", "2.1", at=published.at())


@pytest.mark.nightly
@pytest.mark.parametrize("lister", ["xmlrpc", "simple"])
def test_catalog_of_a_follower_equals_the_origin(changing: Published, tmp_path: Path, lister: str) -> None:
    write_journal(changing)
    with follower(tmp_path) as catalog, changing.service() as service, client_of(service) as client:
        own = crawler(client, tmp_path, catalog, lister)
        crawl_full(own, with_history=lister == "xmlrpc")
        assert rows(catalog, service.serial, lister) == rows(changing.catalog, service.serial, lister)
        change(changing)
        changing.publish()
        write_journal(changing)
        service.follow()
        crawl_incremental(own)
        serial = changing.index.serial
        assert rows(catalog, serial, lister) == rows(changing.catalog, serial, lister)
        assert live(catalog) == live(changing.catalog) == changing.index.shown()
        if lister == "xmlrpc":
            assert stored_events(catalog) == stored_events(changing.catalog)
            assert histories(catalog) == histories(changing.catalog)
            for past in range(serial + 1):
                assert live(catalog, past) == live(changing.catalog, past), past
