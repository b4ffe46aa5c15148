"""Exports as tests read them, with each file checked against its manifest."""

import hashlib
import io
from datetime import datetime

import pyarrow.parquet

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import directories_with_manifest, read_manifest, shard_of
from pypi_assets.parquet import export_manifest, parquet_writer
from pypi_assets.parquet.export_manifest import EXPORTS, KEY_COLUMNS, PARQUET_COLUMNS, Export, file_path
from pypi_assets.storage.store import Storage
from pypi_assets_tests.dump_rows import in_order


def committed_exports(storage: Storage) -> list[str]:
    """Return the directories of all exports with a manifest, the newest last."""
    return export_manifest.in_order(directories_with_manifest(storage, EXPORTS))


def rows_of(storage: Storage, export: Export) -> list[Row]:
    """Return the live rows in order, and check each file against the manifest, and each layer's count."""
    shards = read_manifest(storage, export.cover[0]).shards
    live: dict[tuple[object, object], Row] = {}
    for layer in export.layers:
        schema = parquet_writer.CHANGES_SCHEMA if layer.number else parquet_writer.SCHEMA
        changed = set()
        for position, file in enumerate(layer.files):
            groups = _checked_groups(storage, file, schema)
            rows = [row for group in groups for row in group]
            end = [*(later.shard for later in layer.files[1:]), export.buckets][position]
            assert {shard_of(str(row["normalized"]), export.buckets) for row in rows} <= set(range(file.shard, end))
            is_whole = layer.number > 0 or export.buckets == shards
            for part in [rows] if is_whole else groups:
                assert part == in_order(part)
            for row in rows:
                key = row["normalized"], row["filename"]
                assert key not in changed
                changed.add(key)
                if layer.number:
                    assert row.pop("layer") == layer.number
                    if row.pop("tombstone"):
                        assert {name for name, value in row.items() if value is not None} == set(KEY_COLUMNS)
                        live.pop(key, None)
                        continue
                live[key] = row
        assert layer.live == len(live)
    assert export.rows == len(live)
    return in_order(list(live.values()))


def _checked_groups(storage: Storage, file: DumpFile, schema: pyarrow.Schema) -> list[list[Row]]:
    content = storage.get(file_path(file.name))
    assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
    parquet = pyarrow.parquet.ParquetFile(io.BytesIO(content))
    assert parquet.schema_arrow.equals(schema, check_metadata=True)
    groups = [parquet.read_row_group(group).to_pylist() for group in range(parquet.num_row_groups)]
    assert sum(map(len, groups)) == file.rows
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        order = [parquet.schema.column(one.column_index).name for one in group.sorting_columns]
        assert order == list(KEY_COLUMNS)
        assert group.column(list(PARQUET_COLUMNS).index("normalized")).has_column_index
    return groups


def exported(row: Row) -> Row:
    """Return a dump row as Parquet stores it."""
    uploaded_at = datetime.fromisoformat(str(row["uploaded_at"])) if row["uploaded_at"] else None
    return {name: row[name] for name in PARQUET_COLUMNS} | {"uploaded_at": uploaded_at}
