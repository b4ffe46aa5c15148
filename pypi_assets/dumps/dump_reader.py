"""Read committed dumps, row by row, and check each file against its manifest.

`first_rows` reads only the beginning of a file, however large it is, to show its content to a person.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

import orjson

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_format import DumpDamagedError, HashingReader, Row, beginning, read_rows
from pypi_assets.dumps.dump_manifest import file_path, read_manifest
from pypi_assets.storage.store import ObjectNotFoundError, Storage

if TYPE_CHECKING:
    import pandas as pd
from itertools import islice, takewhile


def iter_rows(
    storage: Storage, directory: str, file: DumpFile, decode: Callable[[bytes], object] = orjson.loads
) -> Iterator[Row]:
    """Yield the rows of one file, in order. `decode` converts each line to a row.

    Raises DumpDamagedError at the first error. It is also raised at the end if the file's size, SHA-256 or number of
    rows differ from the manifest; then discard everything that was made from the rows.
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
            hashed.read()  # bytes after the end of the compressed data
    except ObjectNotFoundError as error:  # before it was opened, or afterwards
        raise DumpDamagedError(f"{uri} is missing, though its manifest names it") from error
    if (hashed.size, hashed.sha256, count) != (file.size, file.sha256, file.rows):
        raise DumpDamagedError(
            f"{uri} is not the file that its manifest names: {hashed.size} bytes with sha256 {hashed.sha256} and"
            f" {count} rows, instead of {file.size}, {file.sha256} and {file.rows}"
        )


def iter_dump(storage: Storage, directory: str, decode: Callable[[bytes], object] = orjson.loads) -> Iterator[Row]:
    """Yield the rows of all files of a committed dump, shard by shard, like `iter_rows`. Raises DumpDamagedError."""
    for file in read_manifest(storage, directory).files:
        yield from iter_rows(storage, directory, file, decode)


def read_rows_frame(storage: Storage, directory: str, columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """Return a committed dump as a data frame, with all or some columns. The whole dump is held in memory."""
    import pandas as pd  # takes longer to import than everything else

    rows = iter_dump(storage, directory)
    if columns is None:
        return pd.DataFrame.from_records(list(rows))
    return pd.DataFrame([[row.get(column) for column in columns] for row in rows], columns=list(columns))


READ_BYTES = 144 * 1024
"""More than one block of zstd, which has up to 128 KiB and is decompressed as a whole."""
_INFLATED_BYTES = 1024 * 1024


def first_rows(storage: Storage, directory: str, file: DumpFile, count: int = 10) -> list[Row]:
    """Return at most `count` rows: those within the first 144 KiB of the file and the first MiB of its decompressed
    text.

    Does not check the whole file; use `iter_rows` for this. Raises DumpDamagedError if the file is missing or its
    beginning cannot be read.
    """
    path = file_path(directory, file.name)
    try:
        start = storage.get_range(path, 0, min(file.size, READ_BYTES))
        text = beginning(start, storage.uri(path), _INFLATED_BYTES)
        whole = text.split(b"\n")[1:-1]  # after the line with the bracket; the last line can be incomplete
        rows = takewhile(lambda line: line != b"]", whole)
        return [orjson.loads(line.removesuffix(b",")) for line in islice(rows, count)]
    except ObjectNotFoundError as error:
        raise DumpDamagedError(f"{storage.uri(path)} is missing, though its manifest names it") from error
    except orjson.JSONDecodeError as error:
        raise DumpDamagedError(f"the beginning of {storage.uri(path)} cannot be read: {error}") from error
