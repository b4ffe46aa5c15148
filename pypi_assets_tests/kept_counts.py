"""Check that the stored counts equal the counts of the rows."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import count_differences


def require_right_counts(catalog: Catalog) -> None:
    with catalog.read() as connection:
        assert count_differences(connection) == {}
