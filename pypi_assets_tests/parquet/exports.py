"""Exports as tests read them, with each file checked against its manifest."""

import hashlib
import io
from datetime import datetime

import pyarrow.parquet

from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import read_manifest, shard_of
from pypi_assets.parquet import parquet_writer
from pypi_assets.parquet.export_manifest import (
    PARQUET_COLUMNS,
    Export,
    file_path,
)
from pypi_assets.storage.store import Storage
from pypi_assets_tests.dump_rows import in_order


def rows_of(storage: Storage, export: Export) -> list[Row]:
    """Return all rows in file order, and check each file against the manifest."""
    rows: list[Row] = []
    shards = read_manifest(storage, export.cover[0]).shards
    for file, next_shard in zip(export.files, [*(file.shard for file in export.files[1:]), shards], strict=True):
        content = storage.get(file_path(export.directory, file.name))
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
        parquet = pyarrow.parquet.ParquetFile(io.BytesIO(content))
        assert parquet.schema_arrow.equals(parquet_writer.SCHEMA, check_metadata=True)
        groups = [parquet.read_row_group(group).to_pylist() for group in range(parquet.num_row_groups)]
        found = [row for group in groups for row in group]
        assert len(found) == file.rows
        for part in [found] if next_shard == file.shard + 1 else groups:
            assert part == in_order(part)
        assert {shard_of(row["normalized"], shards) for row in found} <= set(range(file.shard, next_shard))
        rows += found
    assert len(rows) == export.rows
    return rows


def exported(row: Row) -> Row:
    """Return a dump row as Parquet stores it."""
    uploaded_at = datetime.fromisoformat(str(row["uploaded_at"])) if row["uploaded_at"] else None
    return {name: row[name] for name in PARQUET_COLUMNS} | {"uploaded_at": uploaded_at}
