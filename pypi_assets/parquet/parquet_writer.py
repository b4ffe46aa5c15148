"""Write rows of dumps as one Parquet file, in constant memory. Only this module needs pyarrow, which is an extra."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import BinaryIO, cast

import pyarrow as pa
from pyarrow import parquet

from pypi_assets.dumps.dump_format import Row
from pypi_assets.parquet.export_manifest import (
    BOOLEAN,
    CHANGE_COLUMNS,
    INTEGER,
    KEY_COLUMNS,
    PARQUET_COLUMNS,
    STRING,
    STRINGS,
    TIMESTAMP,
)

ROW_GROUP_ROWS = 65_536
ROW_GROUP_BYTES = 32 * 1024**2
_ORDER = [(name, "ascending") for name in KEY_COLUMNS]
_BATCH_ROWS = 2_000
_BATCH_ITEMS = 50_000
_DICTIONARY_BYTES = 4 * 1024**2
_TYPES = {
    STRING: pa.string(),
    INTEGER: pa.int64(),
    BOOLEAN: pa.bool_(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    STRINGS: pa.list_(pa.field("element", pa.string(), nullable=False)),
}
_LISTS = tuple(name for name, column in PARQUET_COLUMNS.items() if column.type == STRINGS)
_TIMES = frozenset(name for name, column in PARQUET_COLUMNS.items() if column.type == TIMESTAMP)
SCHEMA = pa.schema(
    [
        pa.field(name, _TYPES[column.type], column.nullable, {"description": column.meaning})
        for name, column in PARQUET_COLUMNS.items()
    ]
)
"""The columns of live distributions."""
CHANGES_SCHEMA = pa.schema(
    [
        *(field.with_nullable(field.nullable or field.name not in KEY_COLUMNS) for field in SCHEMA),
        *(pa.field(name, _TYPES[type_], False, {"description": meaning}) for name, type_, meaning in CHANGE_COLUMNS),
    ]
)
"""The columns of changed and deleted distributions. A deleted one has only its keys."""


def write_rows(
    target: BinaryIO,
    rows: Iterable[Row],
    progress: Callable[[int], None] | None = None,
    *,
    are_sorted: bool = True,
    schema: pa.Schema = SCHEMA,
) -> int:
    """Write `rows` into the open file `target`, and return their number. The same rows give the same bytes.

    At most one row group is held in memory: 65,536 rows or about 32 MiB. If the rows are not `are_sorted`, the rows of
    each row group are sorted here. `progress` receives the number of rows written, from time to time.
    """
    count = 0
    with parquet.ParquetWriter(
        target,
        schema,
        compression="zstd",
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        write_page_index=True,
        sorting_columns=parquet.SortingColumn.from_ordering(schema, _ORDER),
    ) as writer:
        for group in _row_groups(_batches(rows, schema)):
            table = pa.Table.from_batches(group)
            writer.write_table(table if are_sorted else table.sort_by(_ORDER), row_group_size=ROW_GROUP_ROWS)
            count += sum(batch.num_rows for batch in group)
            if progress:
                progress(count)
    return count


def record_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Yield live rows as Arrow data with the columns of `SCHEMA`, some rows at a time."""
    return _batches(rows)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if group and (rows + batch.num_rows > ROW_GROUP_ROWS or size + batch.nbytes > ROW_GROUP_BYTES):
            yield group
            group, rows, size = [], 0, 0
        group.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if group:
        yield group


def _batches(rows: Iterable[Row], schema: pa.Schema = SCHEMA) -> Iterator[pa.RecordBatch]:
    """Yield some rows at a time, fewer if their lists are long, because Python objects take most of the memory."""
    batch: list[Row] = []
    items = 0
    for row in rows:
        batch.append(row)
        items += sum(len(cast("list[str] | None", row.get(name)) or ()) for name in _LISTS)
        if len(batch) >= _BATCH_ROWS or items >= _BATCH_ITEMS:
            yield _batch(batch, schema)
            batch, items = [], 0
    if batch:
        yield _batch(batch, schema)


def _batch(rows: list[Row], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        if field.name in _TIMES:
            values = [value and datetime.fromisoformat(str(value)) for value in values]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
