"""Totals: what is known and what was done, from the greatest ids."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import about_known, work_done
from pypi_assets_tests.catalog.claimed_queues import Reads
from pypi_assets_tests.catalog.ended_visits import enter, visit


def test_totals_grow_with_what_is_known_and_done(catalog: Catalog):
    with catalog.read() as connection:
        assert (about_known(connection), work_done(connection)) == (0, (0, 0))
    reads = Reads(catalog, 3)
    reads.claim("one", 1.0, 2)
    reads.finish("one", reads.items[:2], 1.0, None)
    with catalog.write() as connection:
        visit(connection, enter(connection, 2), "page", 1.0)
        assert (about_known(connection), work_done(connection)) == (3 + 3, (2, 2))
