"""Counts that are kept are compared with the rows."""

from sqlalchemy import insert

from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import count_again, count_differences
from pypi_assets.catalog.tables import changes
from pypi_assets_tests.catalog.claimed_queues import Reads


def test_every_count_is_compared_with_its_rows(catalog: Catalog) -> None:
    reads = Reads(catalog, 2)
    with catalog.write() as connection:
        assert count_again(connection) == {"reads in the queue": 2}
        assert count_differences(connection) == {}
        row = {"distribution_id": reads.items[0], "serial": 3, "logged_serial": 3}
        connection.execute(insert(changes), [row | {"cause": cause} for cause in ("unexplained", "listed")])
        add_counts(connection, {"reads in the queue": 1, "live: data": 4})
        assert count_differences(connection) == {
            "live: data": -4,
            "reads in the queue": -1,
            "unexplained changes": 1,
        }
