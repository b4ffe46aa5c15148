"""Exports as tests read them, each file checked against its manifest."""

import hashlib
import io
from datetime import datetime

import pyarrow.parquet

from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_paths import shard_of
from pypi_assets.parquet import parquet_writer
from pypi_assets.parquet.export_manifest import (
    Export,
)
from pypi_assets.parquet.export_paths import file_path
from pypi_assets.parquet.parquet_columns import PARQUET_COLUMNS
from pypi_assets.storage.store import Storage
from pypi_assets_tests.dump_rows import in_order


def rows_of(storage: Storage, export: Export) -> list[Row]:
    """All rows, file by file as they stand; each file is what the manifest promises."""
    rows: list[Row] = []
    for file in export.files:
        content = storage.get(file_path(export.directory, file.name))
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
        table = pyarrow.parquet.read_table(io.BytesIO(content))
        assert table.schema.equals(parquet_writer.SCHEMA, check_metadata=True)
        found = table.to_pylist()
        assert len(found) == file.rows
        assert found == in_order(found)
        assert {shard_of(row["normalized"], len(export.files)) for row in found} <= {file.shard}
        rows += found
    assert len(rows) == export.rows
    return rows


def exported(row: Row) -> Row:
    """The row of a dump as Parquet has it."""
    uploaded_at = datetime.fromisoformat(str(row["uploaded_at"])) if row["uploaded_at"] else None
    return {name: row[name] for name in PARQUET_COLUMNS} | {"uploaded_at": uploaded_at}
