"""Write the changes of ranges as one more layer of an export, and count the distributions that are live after it."""

import io
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import compute, parquet

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import shard_of
from pypi_assets.dumps.dump_writer import put_file
from pypi_assets.dumps.later_rows import LaterRows
from pypi_assets.parquet.buckets import bucket_count
from pypi_assets.parquet.export_manifest import CHANGES_NAME, ExportLayer, ParquetError, file_path
from pypi_assets.parquet.parquet_writer import CHANGES_SCHEMA, write_rows
from pypi_assets.storage.store import Storage

if TYPE_CHECKING:
    from typing_extensions import Buffer

Key = tuple[str, str]
"""The normalized project name and the filename of a distribution."""


def write_changes(
    storage: Storage,
    directory: str,
    number: int,
    later: LaterRows,
    buckets: int,
    report: Callable[[int], object],
) -> tuple[DumpFile, ...]:
    """Write the changes in `later` as files of layer `number`, and return them. `report` receives the rows written.

    A file has the changes of one or more buckets, sorted by project.
    """
    total = sum(len(later.changed(bucket)) for bucket in range(buckets))
    files = bucket_count(total, 0, buckets)
    bounds = range(0, buckets + 1, buckets // files)
    written: list[DumpFile] = []
    for start, end in pairwise(bounds):
        rows = _numbered(later.changes(range(start, end)), number)
        name = CHANGES_NAME.format(directory=directory, bucket=start)
        if total:
            write = partial(write_rows, rows=rows, schema=CHANGES_SCHEMA)
            written.append(replace(put_file(storage, file_path(name), start, write), name=name))
            report(sum(file.rows for file in written))
    return tuple(written)


def _numbered(rows: Iterator[Row], layer: int) -> Iterator[Row]:
    for row in rows:
        yield {**row, "layer": layer}


def live_after(
    storage: Storage, kept: Sequence[ExportLayer], later: LaterRows, buckets: int, report: Callable[[int], object]
) -> int:
    """Return the number of live distributions after the changes in `later`, which follow the `kept` layers.

    It reads the columns with keys of the row groups that can have a changed project. `report` is called in between.
    """
    changed = [later.changed(bucket) for bucket in range(buckets)]
    live = kept[-1].live + sum(later.count_by_shard().values())
    for layer in reversed(kept):
        for file in layer.files:
            keys = set().union(*changed) if layer.number else changed[file.shard]
            for key, is_live in _found(storage, file, keys):
                live -= is_live
                changed[shard_of(key[0], buckets)].discard(key)
            report(0)
    return live


def _found(storage: Storage, file: DumpFile, keys: set[Key]) -> Iterator[tuple[Key, bool]]:
    """Yield those of the `keys` that are in a file, and whether they are live there."""
    if not keys:
        return
    path = file_path(file.name)
    source = storage.local_path(path) or io.BufferedReader(_ObjectFile(storage, path, file.size))
    projects = sorted({project for project, _ in keys})
    wanted = pa.array(projects, pa.string())
    try:
        with parquet.ParquetFile(source) as opened:
            has_tombstones = "tombstone" in opened.schema_arrow.names
            place = opened.schema_arrow.names.index("normalized")  # no list column is before it
            for group in range(opened.num_row_groups):
                known = opened.metadata.row_group(group).column(place).statistics
                if known and bisect_left(projects, known.min) == bisect_right(projects, known.max):
                    continue
                names = opened.read_row_group(group, ["normalized"])
                matches = compute.is_in(names["normalized"], value_set=wanted)
                if not compute.any(matches).as_py():
                    continue
                columns = ["normalized", "filename", *(["tombstone"] if has_tombstones else [])]
                rows = opened.read_row_group(group, columns).filter(matches).to_pylist()
                for row in rows:
                    if (key := (row["normalized"], row["filename"])) in keys:
                        yield key, not row.get("tombstone")
    except (pa.ArrowException, OSError) as error:
        raise ParquetError(
            f"{storage.uri(path)} cannot be read: {error}; `pypi-assets dump parquet --force` writes all rows again"
        ) from error


class _ObjectFile(io.RawIOBase):
    """An object of a remote store as a file, of which only the parts that are read are requested."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size = storage, path, size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: "Buffer") -> int:
        view = memoryview(buffer)
        length = max(0, min(len(view), self._size - self._position))
        if length:
            view[:length] = self._storage.get_range(self._path, self._position, length)
            self._position += length
        return length
