"""Reads committed dumps, row by row, and checks each file against its manifest.

`first_rows` reads the beginning of a file alone, however large it is, for people to see what is in it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

import orjson

from pypi_assets.catalog.publications.dump_facts import DumpFile
from pypi_assets.dumps.dump_format import DumpDamagedError, HashingReader, Row, read_rows
from pypi_assets.dumps.dump_manifest import file_path, read_manifest
from pypi_assets.storage.store import ObjectNotFoundError, Storage

if TYPE_CHECKING:
    import pandas as pd
import zlib
from itertools import islice, takewhile


def iter_rows(
    storage: Storage, directory: str, file: DumpFile, decode: Callable[[bytes], object] = orjson.loads
) -> Iterator[Row]:
    """Yields the rows of one file, in order, as `decode` makes them of its lines.

    Raises DumpDamagedError as soon as something is wrong, and at the end if the file's size, sha256 or number of rows
    are not those that the manifest promises: what has been made of the rows is to be thrown away then.
    """
    path = file_path(directory, file.name)
    uri = storage.uri(path)
    try:
        with storage.open(path) as stream:
            hashed = HashingReader(stream)
            count = 0
            for row in read_rows(cast("BinaryIO", hashed), uri, decode):
                count += 1
                yield row
            hashed.read()  # what decompression has left over
    except ObjectNotFoundError as error:  # before it was opened, or after
        raise DumpDamagedError(f"{uri} is missing, though its manifest names it") from error
    if (hashed.size, hashed.sha256, count) != (file.size, file.sha256, file.rows):
        raise DumpDamagedError(
            f"{uri} is not the file that its manifest names: {hashed.size} bytes with sha256 {hashed.sha256} and"
            f" {count} rows, instead of {file.size}, {file.sha256} and {file.rows}"
        )


def iter_dump(storage: Storage, directory: str, decode: Callable[[bytes], object] = orjson.loads) -> Iterator[Row]:
    """Yields the rows of all files of a committed dump, shard by shard, as `iter_rows`. Raises DumpDamagedError."""
    for file in read_manifest(storage, directory).files:
        yield from iter_rows(storage, directory, file, decode)


def read_rows_frame(storage: Storage, directory: str, columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """A committed dump as a table, with all columns or some; unlike the rest, it is held in memory whole."""
    import pandas as pd  # takes longer to load than all the rest

    rows = iter_dump(storage, directory)
    if columns is None:
        return pd.DataFrame.from_records(list(rows))
    return pd.DataFrame([[row.get(column) for column in columns] for row in rows], columns=list(columns))


READ_BYTES = 64 * 1024
_INFLATED_BYTES = 1024 * 1024
_GZIP = 31


def first_rows(storage: Storage, directory: str, file: DumpFile, count: int = 10) -> list[Row]:
    """At most `count` rows, in order: those that end within the first 64 KiB of the file and the first MiB of its text.

    Whether the file is whole is not checked (`iter_rows` does that). Raises DumpDamagedError where it is missing or its
    beginning cannot be read.
    """
    path = file_path(directory, file.name)
    try:
        start = storage.get_range(path, 0, min(file.size, READ_BYTES))
        text = zlib.decompressobj(_GZIP).decompress(start, _INFLATED_BYTES)
        whole = text.split(b"\n")[1:-1]  # after the line of the bracket; the last line can be a part of a row
        rows = takewhile(lambda line: line != b"]", whole)
        return [orjson.loads(line.removesuffix(b",")) for line in islice(rows, count)]
    except ObjectNotFoundError as error:
        raise DumpDamagedError(f"{storage.uri(path)} is missing, though its manifest names it") from error
    except (zlib.error, orjson.JSONDecodeError) as error:
        raise DumpDamagedError(f"the beginning of {storage.uri(path)} cannot be read: {error}") from error
