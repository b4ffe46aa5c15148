"""The format of a dump file: a compressed JSON array with one row per line, which can be read as a stream."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec
import orjson
import zstandard
from isal import igzip, igzip_lib

from pypi_assets.catalog.publications.dump_columns import COLUMNS, TOMBSTONE_COLUMNS, DumpFormat, format_of
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.errors import ExpectedError

if TYPE_CHECKING:
    from typing_extensions import Buffer

GZIP_LEVEL = 2
"""Takes a third of the time of level 3, for about a tenth more bytes."""
ZSTD_LEVEL = 3
"""Takes less time than gzip. Rows of a project repeat each other, so higher levels save little."""
MAX_WINDOW_BYTES = 8 * 1024**2
"""Files of other sources that would need more memory are rejected. Level 3 needs 2 MiB."""
_PROGRESS_ROWS = 10_000
_BUFFER_BYTES = 1024**2
_GZIP_BITS = 31
_DAMAGE: tuple[type[Exception], ...] = (
    gzip.BadGzipFile,
    EOFError,
    orjson.JSONDecodeError,
    msgspec.DecodeError,
    RecursionError,
    UnicodeDecodeError,
    cast("type[Exception]", igzip_lib.IsalError),
    zstandard.ZstdError,
)

Row = dict[str, object]


class DumpDamagedError(ExpectedError):
    """A dump's file or manifest is missing or corrupt. The message names it and the error."""


class RowError(ValueError):
    """A row that cannot be written: it has wrong columns, or is out of order."""


def write_rows(
    target: BinaryIO,
    rows: Iterable[Row],
    progress: Callable[[int], None] | None = None,
    columns: Sequence[str] = tuple(COLUMNS),
    form: DumpFormat = DumpFormat.GZIP,
) -> int:
    """Write `rows` into the open file `target`, and return their number. The same rows give the same bytes.

    Each row must have exactly the dump's `columns`, and a tombstone only the first five. Rows must ascend by project,
    version and filename; otherwise RowError is raised. `progress` receives the number of rows from time to time.
    """
    full, tombstone = tuple(columns), tuple(TOMBSTONE_COLUMNS)
    count = 0
    last: tuple[object, ...] = ("", "", "")
    with io.BufferedWriter(_compressor(target, form), _BUFFER_BYTES) as out:
        out.write(b"[\n")
        for row in rows:
            if tuple(row) != (tombstone if row["tombstone"] else full):
                raise RowError(f"row of {row['filename']} has the wrong columns: {', '.join(row)}")
            key = (row["normalized"], row["version"], row["filename"])
            if key <= last:
                raise RowError(f"row {key} does not come after {last}")
            last = key
            out.write((b",\n" if count else b"") + to_utf8_json(row))
            count += 1
            if progress and count % _PROGRESS_ROWS == 0:
                progress(count)
        out.write(b"\n]\n" if count else b"]\n")
    if progress:
        progress(count)
    return count


def read_rows(stream: BinaryIO, name: str, decode: Callable[[bytes], object] = orjson.loads) -> Iterator[Row]:
    """Yield the rows of a dump file, holding one row in memory. Errors call the file `name`, whose end has the format.

    `decode` converts a line to a row, and may omit columns.

    Raises DumpDamagedError at the first content that `write_rows` does not write. A zstd file without the last bytes of
    its checksum is not detected here, but by its size in the manifest.
    """
    count = 0
    try:
        with io.BufferedReader(_decompressor(stream, format_of(name)), _BUFFER_BYTES) as lines:
            if lines.readline() != b"[\n":
                raise DumpDamagedError(f"{name} does not begin with a line that is [")
            for line in lines:
                if line == b"]\n":
                    if lines.read(1):
                        raise DumpDamagedError(f"{name} continues after the end of its array")
                    return
                row = decode(line.removesuffix(b"\n").removesuffix(b","))
                if not isinstance(row, dict):
                    raise DumpDamagedError(f"{name}: row {count + 1} is not an object")
                count += 1
                yield row
    except _DAMAGE as error:
        raise DumpDamagedError(f"{name} is corrupt after row {count}: {error}") from error
    raise DumpDamagedError(f"{name} ends after row {count} without the end of its array")


def as_dumped(row: Row) -> Row:
    """Return the row in the form in which a dump returns it."""
    dumped: Row = orjson.loads(to_utf8_json(row))
    return dumped


def _compressor(target: BinaryIO, form: DumpFormat) -> io.RawIOBase:
    if form is DumpFormat.GZIP:
        return _gzip(target, "wb", compresslevel=GZIP_LEVEL, mtime=0)
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
    return cast("io.RawIOBase", compressor.stream_writer(target, closefd=False))


def _decompressor(stream: BinaryIO, form: DumpFormat) -> io.RawIOBase:
    if form is DumpFormat.GZIP:
        return _gzip(stream, "rb")
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    return cast("io.RawIOBase", decompressor.stream_reader(stream, read_across_frames=True, closefd=False))


def beginning(start: bytes, name: str, most: int) -> bytes:
    """Return up to `most` decompressed bytes of a dump file called `name` that begins with `start`.

    Raises DumpDamagedError.
    """
    try:
        if format_of(name) is DumpFormat.GZIP:
            return zlib.decompressobj(_GZIP_BITS).decompress(start, most)
        return _decompressor(io.BytesIO(start), DumpFormat.ZSTD).read(most) or b""
    except (zlib.error, zstandard.ZstdError) as error:
        raise DumpDamagedError(f"the beginning of {name} cannot be read: {error}") from error


def _gzip(stream: BinaryIO, mode: str, **options: int) -> io.RawIOBase:
    opened = igzip.IGzipFile(filename="", mode=mode, fileobj=stream, **options)  # type: ignore[no-untyped-call]
    return cast("io.RawIOBase", opened)


class HashingReader(io.RawIOBase):
    """A reader that passes a stream on, and keeps the size and the SHA-256 of the bytes that were read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._sha256 = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        view = memoryview(buffer)
        chunk = self._stream.read(len(view))
        view[: len(chunk)] = chunk
        self._sha256.update(chunk)
        self.size += len(chunk)
        return len(chunk)
