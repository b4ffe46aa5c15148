"""Names of Parquet exports, each allocated once."""

from pathlib import Path

from pypi_assets.catalog.publications.allocated_names import allocate_export
from pypi_assets_tests.small_catalog import small_catalog


def test_each_attempt_has_a_name_of_its_own(tmp_path: Path, database_url: str) -> None:
    catalog = small_catalog(tmp_path, database_url).catalog
    assert [allocate_export(catalog, serial) for serial in (1350, 1350, 1400, 1350)] == [
        "0-1350",
        "0-1350.2",
        "0-1400",
        "0-1350.3",
    ]
    catalog.close()
