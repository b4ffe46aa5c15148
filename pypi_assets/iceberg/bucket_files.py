"""Sort rows into the buckets of a table, and read and write the data files of buckets.

A bucket has the rows of all projects with the same hash, in at most one data file. Rows that are sorted into buckets
wait in unnamed temporary files, so memory is bounded however many rows there are.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedRandom
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet
from pyiceberg.io.pyarrow import write_file
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import WriteTask
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import StringType

from pypi_assets.iceberg.table_catalog import TablesError
from pypi_assets.storage.store import Storage

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

ROWS_OF_A_GROUP = 32_768
MOST_GROUPS = 256
"""Each group has an open file."""
FILES_AT_ONCE = 8
_ROWS_SORTED_AT_ONCE = 16_384
_ORDER = ("normalized", "version", "filename")
_BUCKET = "bucket"
_NO_BUCKET = -1
BucketRows = tuple[int, pa.Table]


def bucket_count(table: "Table") -> int:
    """Return the number of buckets of a table. All tables of projects have as many as `files`."""
    transforms = [one.transform for one in table.spec().fields]
    if len(transforms) != 1 or not isinstance(transforms[0], BucketTransform):
        raise TablesError(f"another program made the table {'.'.join(table.name())}: set PYPI_ASSETS_TABLES_NAMESPACE")
    return transforms[0].num_buckets


def bucket_function(buckets: int) -> Callable[[str], int]:
    """Return the function that Iceberg defines from the normalized name of a project to its bucket."""
    transform = BucketTransform(num_buckets=buckets).transform(StringType())
    return lambda name: transform(name) or 0


class SortedIntoBuckets:
    """Rows of `files` in any order, to be read bucket by bucket. Use it in a `with` block, which deletes its files.

    The rows of a group are in memory together while its buckets are read.
    """

    def __init__(self, storage: Storage, buckets: int, groups: int) -> None:
        self._bucket_of = bucket_function(buckets)
        self._edges = np.linspace(0, buckets, groups + 1).astype(int)
        self._stack = ExitStack()
        self._files: list[BufferedRandom] = [self._stack.enter_context(storage.unnamed_file()) for _ in range(groups)]
        self._writers: list[ipc.RecordBatchStreamWriter | None] = [None] * groups
        self._waiting: list[pa.RecordBatch] = []
        self.rows = 0

    def __enter__(self) -> "SortedIntoBuckets":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
        """Add rows, and yield the number of all rows so far, from time to time."""
        waiting = 0
        for batch in batches:
            self._waiting.append(batch)
            waiting += batch.num_rows
            self.rows += batch.num_rows
            if waiting >= _ROWS_SORTED_AT_ONCE:
                self._flush()
                waiting = 0
            yield self.rows
        self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = self._with_buckets(pa.Table.from_batches(self._waiting)).sort_by(_BUCKET)
        self._waiting = []
        ends = np.searchsorted(rows[_BUCKET].to_numpy(), self._edges)
        for group, (start, end) in enumerate(pairwise(ends)):
            if end > start:
                self._writer(group, rows.schema).write_table(rows.slice(start, end - start))

    def _writer(self, group: int, schema: pa.Schema) -> ipc.RecordBatchStreamWriter:
        if (writer := self._writers[group]) is None:
            options = ipc.IpcWriteOptions(compression="lz4")
            writer = self._writers[group] = ipc.new_stream(self._files[group], schema, options=options)
        return writer

    def _with_buckets(self, rows: pa.Table) -> pa.Table:
        names = rows["normalized"].combine_chunks().dictionary_encode()
        numbers = pa.array([self._bucket_of(name) for name in names.dictionary.to_pylist()], pa.int32())
        return rows.append_column(_BUCKET, numbers.take(names.indices))

    def by_bucket(self) -> Iterator[BucketRows]:
        """Yield each bucket that has rows, with its rows. It can be called once."""
        for writer, file in zip(self._writers, self._files, strict=True):
            if writer is None:
                continue
            writer.close()
            file.seek(0)
            rows = ipc.open_stream(file).read_all().sort_by(_BUCKET)
            numbers, starts = np.unique(rows[_BUCKET].to_numpy(), return_index=True)
            rows = rows.drop_columns(_BUCKET)
            for number, start, end in zip(numbers, starts, [*starts[1:], rows.num_rows], strict=True):
                yield int(number), rows.slice(start, end - start)


def replaced_rows(old: pa.Table, is_kept: pa.ChunkedArray, new: pa.Table) -> pa.Table:
    """Return the kept rows of `old` and all rows of `new`, in the order of a data file.

    This is the order by project, then by version as text and filename if the rows have them.
    """
    kept = pc.indices_nonzero(is_kept).to_numpy().astype(np.int64)
    positions = pa.array(np.concatenate([kept, np.arange(old.num_rows, old.num_rows + new.num_rows)]))
    rows = pa.concat_tables([old, new])
    names = [name for name in _ORDER if name in rows.column_names]
    order = pc.sort_indices(rows.select(names).take(positions), [(name, "ascending") for name in names])
    return rows.take(positions.take(order))


def are_other_files(rows: pa.Table, names: Collection[tuple[str, str]]) -> pa.ChunkedArray:
    """Return for each row whether it is of another file than these, which are (normalized name, filename)."""
    keys = pc.binary_join_element_wise(rows["normalized"], rows["filename"], "\n")
    return pc.invert(pc.is_in(keys, pa.array([f"{project}\n{filename}" for project, filename in names], pa.string())))


def are_of_projects(rows: pa.Table, projects: Collection[str]) -> pa.ChunkedArray:
    """Return for each row whether it is of one of these projects."""
    return pc.is_in(rows["normalized"], pa.array(sorted(projects), pa.string()))


def read_data_files(
    table: "Table", files: Iterable["DataFile"], schema: pa.Schema, names: Sequence[str] = ()
) -> pa.Table:
    """Return the rows of data files with the columns `names` of `schema`, or all. Missing columns are null."""
    wanted = schema if not names else pa.schema([schema.field(name) for name in names])
    parts = [wanted.empty_table()]
    for file in files:
        with table.io.new_input(file.file_path).open() as source:
            stored = parquet.ParquetFile(source)
            names_there = stored.schema_arrow.names
            rows = stored.read([name for name in wanted.names if name in names_there])
        for field in wanted:
            if field.name not in rows.column_names:
                rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        parts.append(rows.select(wanted.names).cast(_nullable(wanted)).cast(wanted))
    return pa.concat_tables(parts)


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def write_buckets(table: "Table", rows: Iterable[BucketRows]) -> Iterator["DataFile"]:
    """Write a data file for each bucket, some at a time in threads, and yield them. Buckets without rows get none.

    The files are not part of the table until a snapshot names them.
    """
    spec, schema, write_id = table.spec(), table.schema(), uuid.uuid4()
    numbers = count()

    def task(bucket: int, found: pa.Table) -> WriteTask:
        key = None
        if bucket != _NO_BUCKET:
            key = PartitionKey([PartitionFieldValue(spec.fields[0], bucket)], spec, schema)
        shown = schema.select(*found.column_names)
        return WriteTask(write_id, next(numbers), shown, found.combine_chunks().to_batches(), partition_key=key)

    tasks = (task(bucket, found) for bucket, found in rows if found.num_rows)
    while together := list(islice(tasks, FILES_AT_ONCE)):
        yield from write_file(table.io, table.metadata, iter(together))


def write_without_buckets(table: "Table", rows: Iterable[pa.Table]) -> Iterator["DataFile"]:
    """Write a data file of a table without buckets for each of `rows`, and yield them."""
    return write_buckets(table, ((_NO_BUCKET, one) for one in rows))
