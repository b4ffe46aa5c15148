"""The tables can be in a REST catalog, and tables of an earlier version of the code gain columns."""

from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.dumps.cover import cover
from pypi_assets.iceberg import table_catalog
from pypi_assets.iceberg.newest_tables import NEWEST_PATH, are_tables_due, read_newest
from pypi_assets.iceberg.snapshots import serial_of
from pypi_assets.iceberg.table_catalog import TableOptions, TablesError, opened_tables
from pypi_assets.iceberg.table_columns import FILES, TABLES
from pypi_assets.iceberg.updates import update_tables
from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.iceberg.rest_catalog import rest_catalog
from pypi_assets_tests.iceberg.tables import OPTIONS, rows_of, updated
from pypi_assets_tests.small_catalog import SmallCatalog


def test_tables_are_in_a_rest_catalog(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as (url, requests):
        options = TableOptions(url, "company")
        assert update_tables(small.catalog, storage, options).added == dict.fromkeys(TABLES, 1)
        add_range(small, storage, 100)
        newest = update_tables(small.catalog, storage, options).newest
        assert update_tables(small.catalog, storage, options).added == {}
        with opened_tables(small.catalog, storage, options) as tables:
            table = tables.get(FILES)
            assert [serial_of(snapshot) for snapshot in table.snapshots()] == [100, 150]
            assert table.scan().to_arrow().num_rows == 4
        assert "POST /v1/namespaces/company/tables/files" in requests
    assert newest.tables[FILES].metadata.startswith(f"{storage.url}/tables/company/files/")
    with opened_tables(small.catalog, storage, OPTIONS) as tables:
        assert tables.find(FILES) is None


def test_table_of_an_earlier_version_gains_columns(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = {name: column for name, column in TABLES[FILES].items() if name not in {"summary", "notes"}}
    with opened_tables(small.catalog, storage, OPTIONS) as tables:
        with monkeypatch.context() as patch:
            patch.setattr(table_catalog, "TABLES", {**TABLES, FILES: earlier})
            tables.create(FILES, 1)
        assert "notes" not in tables.get(FILES).schema().column_names
    updated(small.catalog, storage)
    assert {row["notes"] is None for row in rows_of(small.catalog, storage, FILES)} <= {True, False}
    add_range(small, storage, 100)
    updated(small.catalog, storage)
    assert len(rows_of(small.catalog, storage, FILES)) == 4
    with opened_tables(small.catalog, storage, OPTIONS) as tables:
        assert {field.name for field in tables.get(FILES).schema().fields} == set(TABLES[FILES])


def test_missing_table_is_named(small: SmallCatalog, storage: Storage) -> None:
    with opened_tables(small.catalog, storage, replace(OPTIONS, namespace="other")) as tables:
        assert tables.find(FILES) is None
        with pytest.raises(TablesError, match=r"other\.files"):
            tables.get(FILES)


def test_tables_are_due_once_the_dumps_are_newer(small: SmallCatalog, storage: Storage) -> None:
    assert not are_tables_due(storage, cover(small.catalog))
    updated(small.catalog, storage)
    assert not are_tables_due(storage, cover(small.catalog))
    add_range(small, storage, 100)
    assert are_tables_due(storage, cover(small.catalog))
    for content in (b"{", b"[]", b'{"format": 99}', b'{"format": 1}'):
        storage.put(NEWEST_PATH, content)
        assert read_newest(storage) is None
    updated(small.catalog, storage)
    assert not are_tables_due(storage, cover(small.catalog))
