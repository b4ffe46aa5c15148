"""How far the index is followed, from an empty catalog on."""

from sqlalchemy import update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC, complete_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.index_state import ListerState, save_lister_state
from pypi_assets.catalog.reports.catalog_status import Followed, read_followed
from pypi_assets.catalog.tables import full_crawls
from pypi_assets.index.models import ChangelogEvent

INDEX = "http://127.0.0.1/simple/"


def read(catalog: Catalog) -> Followed:
    with catalog.read() as connection:
        return read_followed(connection)


def test_nothing_is_known_of_an_empty_catalog(catalog: Catalog):
    assert read(catalog) == Followed(None, None, None, None, None, None)


def test_the_complete_serial_counts_once_a_full_crawl_is_complete(opened: Catalog):
    assert read(opened) == Followed(INDEX, None, None, None, None, None)
    with opened.write() as connection:
        connection.execute(update(full_crawls).values(completed_at=5.0, open=None))
        complete_range(connection, SerialRange(0, 10), 5.0)
        store_events(connection, [ChangelogEvent("Demo", None, 77, "docupdate", 12)], 10, 12)
    assert read(opened) == Followed(INDEX, 10, 77, None, None, None)


def test_listers_report_the_list_and_the_trouble_of_the_changelog(opened: Catalog):
    with opened.write() as connection:
        for lister, content in (
            (SIMPLE, {"serial": 12, "ended_at": 9.0}),
            (XMLRPC, {"failing_since": 5.0, "off_since": 6.0, "error": "gone"}),
        ):
            save_lister_state(connection, ListerState(lister, INDEX, {}), content, 9.0, lambda stored, _: stored)
    followed = read(opened)
    assert (followed.listed_serial, followed.listed_at, followed.is_changelog_off) == (12, 9.0, True)
