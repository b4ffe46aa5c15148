"""The comparison with the catalog finds missing, additional and changed rows."""

import pyarrow as pa
import pytest

from pypi_assets.iceberg.bucket_files import write_buckets
from pypi_assets.iceberg.snapshots import DUMPS, SOURCE, SnapshotTime, commit, data_files, property_of, serial_of
from pypi_assets.iceberg.table_audit import count_rows, scan_bucket
from pypi_assets.iceberg.table_catalog import OpenTables, TablesError, opened_tables
from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.iceberg.tables import OPTIONS, updated
from pypi_assets_tests.small_catalog import SmallCatalog


def rewrite(tables: OpenTables, name: str, rows: pa.Table) -> None:
    """Replace all rows of a table with one bucket, in a snapshot of the same serial."""
    table = tables.get(name)
    current = table.current_snapshot()
    properties = {key: value for key in (DUMPS, SOURCE) if (value := property_of(current, key)) is not None}
    before = [file for files in data_files(table, current).values() for file in files]
    added = list(write_buckets(table, [(0, rows)]))
    commit(table, SnapshotTime(serial_of(current) or 0, None), properties, added=added, deleted=before)


def test_tables_equal_the_catalog(small: SmallCatalog, storage: Storage) -> None:
    updated(small.catalog, storage)
    add_range(small, storage, 100)
    updated(small.catalog, storage)
    with opened_tables(small.catalog, storage, OPTIONS) as tables:
        files, events = count_rows(small.catalog, tables)
        scanned = scan_bucket(small.catalog, tables)
    assert (files.serial, files.rows, files.expected) == (150, 4, 4)
    assert (events.rows, events.expected) == (0, 0)
    assert (scanned.bucket, scanned.serial, scanned.rows, scanned.projects, scanned.differences) == (0, 150, 4, 3, [])


@pytest.mark.parametrize(
    ("name", "change", "differing"),
    [
        ("files", lambda rows: rows.slice(1), True),
        (
            "files",
            lambda rows: rows.set_column(rows.column_names.index("yanked"), "yanked", pa.array([True] * 3)),
            True,
        ),
        ("files", lambda rows: rows, False),
        ("modules", lambda rows: rows.slice(1), True),
    ],
)
def test_changed_rows_are_found(
    small: SmallCatalog, storage: Storage, name: str, change: object, differing: bool
) -> None:
    updated(small.catalog, storage)
    with opened_tables(small.catalog, storage, OPTIONS) as tables:
        rewrite(tables, name, change(tables.get(name).scan().to_arrow()))  # type: ignore[operator]
        assert bool(scan_bucket(small.catalog, tables).differences) == differing
        (files, _) = count_rows(small.catalog, tables)
        assert (files.rows == files.expected) == (name != "files" or files.rows == 3)


def test_audit_without_tables_names_the_remedy(small: SmallCatalog, storage: Storage) -> None:
    with opened_tables(small.catalog, storage, OPTIONS) as tables, pytest.raises(TablesError, match="dump tables"):
        count_rows(small.catalog, tables)
