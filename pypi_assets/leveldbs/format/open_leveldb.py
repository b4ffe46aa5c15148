"""Opens LevelDBs, and makes LevelDB write and merge its tables when a build needs it."""

import errno
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import BinaryIO

from pypi_assets.leveldbs.format.leveldb_binding import Database, binding_errors, open_database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.format.records import SEPARATOR

WRITE_BUFFER_BYTES = 64 * 1024**2
_TABLE_BYTES = 4 * 1024**2  # twice the default, so that all stay open; a merge takes one table and all that overlap it
_OPEN_TABLES = 1_000
_CACHE_BYTES = 32 * 1024**2
_BLOOM_BITS = 10
_LEVELS, _LEVEL_0_TABLES, _LEVEL_1_BYTES = 7, 4, 10 * 1024**2  # LevelDB's own constants, which cannot be configured
_TABLE_OR_LEVEL = re.compile(rb"^(?:--- level ([0-9]) ---| [0-9]+:([0-9]+)\[)", re.MULTILINE)
_NO_KEY = b"\xff"  # not valid UTF-8, so no record has it
_PAUSE_S = 0.01


@contextmanager
def open_leveldb(
    path: Path,
    name: str,
    *,
    create: bool = False,
    write_buffer_bytes: int = WRITE_BUFFER_BYTES,
    cache_bytes: int = _CACHE_BYTES,
    open_tables: int = _OPEN_TABLES,
) -> Iterator[Database]:
    """Open the LevelDB in the folder `path`, which no other process may use. Errors use `name` for it.

    `cache_bytes` limits the cache of read blocks. The indexes and filters of `open_tables` tables stay in memory,
    including tables that were just written. Checks cover the indexes of tables, and the blocks that are merged into new
    tables, since merging would hide corruption for good.

    Raises LeveldbDamagedError if LevelDB finds corruption, when opening and later, and MissingBindingError.
    """
    with leveldb_errors_as_damage(name):
        db = open_database(
            path,
            create_if_missing=create,
            error_if_exists=create,
            write_buffer_size=write_buffer_bytes,
            max_file_size=_TABLE_BYTES,
            max_open_files=open_tables,
            lru_cache_size=cache_bytes,
            bloom_filter_bits=_BLOOM_BITS,
            paranoid_checks=True,
        )
        try:
            _check_end(db)
            yield db
        finally:
            db.close()


def _check_end(db: Database) -> None:
    """Raise an error of LevelDB if the last block of a table or of a level is corrupt.

    Iterators report corruption together with the next record. At the end, they just stop, as if there were no more
    records. So the blocks that can be the last ones are read when a LevelDB is opened.
    """
    with closing(db.raw_iterator(verify_checksums=True)) as last:
        last.seek_to_last()


def flush(db: Database) -> None:
    """Write the records in memory into a table.

    If no other table overlaps its keys, the table goes to a deep level, which is merged late.
    """
    db.compact_range(start=_NO_KEY, stop=_NO_KEY)


def flush_and_merge(db: Database, waiting: Callable[[], object]) -> None:
    """Flush, and wait until LevelDB has merged its tables.

    A merge that is running when a LevelDB is closed is discarded, and the next process to open it starts it again.
    `waiting` is called repeatedly. Raises LeveldbDamagedError, within `open_leveldb`, if merging finds corruption.
    """
    flush(db)
    while is_merge_due(db):
        db.write_batch().write()  # raises if a merge has failed
        waiting()
        time.sleep(_PAUSE_S)


def is_merge_due(db: Database) -> bool:
    """Check whether LevelDB would merge: level 0 has enough tables, or another level enough bytes."""
    tables = db.get_property(b"leveldb.sstables") or b""
    level, sizes = 0, [list[int]() for _ in range(_LEVELS)]
    for match in _TABLE_OR_LEVEL.finditer(tables):
        if match[1]:
            level = int(match[1])
        else:
            sizes[level].append(int(match[2]))
    full = (sum(sizes[level]) >= _LEVEL_1_BYTES * 10 ** (level - 1) for level in range(1, _LEVELS - 1))
    return len(sizes[0]) >= _LEVEL_0_TABLES or any(full)


@contextmanager
def leveldb_errors_as_damage(name: str) -> Iterator[None]:
    """Convert LevelDB's own errors into LeveldbDamagedError, or into LeveldbError if the disk is full."""
    try:
        yield
    except binding_errors() as error:
        text = b" ".join(part for part in error.args if isinstance(part, bytes)).decode(errors="replace")
        if os.strerror(errno.ENOSPC) in text:
            raise LeveldbError(f"{name} cannot be written, free space on the disk: {text}") from error
        raise LeveldbDamagedError(f"{name} cannot be read: {text}") from error


_SHOWN_BYTES = 400


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """The parts of a record's key, the beginning of its value as text, and the value's size in bytes."""

    key: tuple[str, ...]
    value: str
    size: int


def sample_records(db: Database, letters: Iterable[str], count: int = 5) -> list[SampleRecord]:
    """Return at most `count` records, alternating between the first records of the kinds of keys in `letters`."""
    kinds = [_first_records(db, letter, count) for letter in letters]
    in_turn = chain.from_iterable(zip_longest(*kinds))
    return list(islice((record for record in in_turn if record is not None), count))


def _first_records(db: Database, letter: str, count: int) -> list[SampleRecord]:
    with db.iterator(prefix=letter.encode() + SEPARATOR, verify_checksums=True) as records:
        return [_sample(key, value) for key, value in islice(records, count)]


def _sample(key: bytes, value: bytes) -> SampleRecord:
    parts = key.decode(errors="replace").split("\0")
    return SampleRecord(tuple(parts), value[:_SHOWN_BYTES].decode(errors="replace"), len(value))


FOOTER_BYTES = 48
_HANDLES_BYTES = 40
_MAGIC = bytes.fromhex("57fb808b247547db")
_BLOCK_TRAILER_BYTES = 5
_MOST_VARINT_BYTES = 10


def check_table(table: BinaryIO) -> None:
    """Raise ValueError if the footer of an open table names blocks outside the table."""
    size = table.seek(0, os.SEEK_END)
    if size < FOOTER_BYTES:
        raise ValueError(f"it has {size} bytes, but a table has at least {FOOTER_BYTES}")
    table.seek(size - FOOTER_BYTES)
    footer = table.read(FOOTER_BYTES)
    if footer[_HANDLES_BYTES:] != _MAGIC:
        raise ValueError("it does not end with the magic number of a table")
    place, end = 0, size - FOOTER_BYTES
    for block in ("metaindex", "index"):
        offset, place = _varint(footer, place)
        length, place = _varint(footer, place)
        if offset + length + _BLOCK_TRAILER_BYTES > end:
            raise ValueError(f"its {block} of {length} bytes at {offset} does not lie before its footer at {end}")


def _varint(footer: bytes, place: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    number = 0
    for count in range(_MOST_VARINT_BYTES):
        if place + count >= _HANDLES_BYTES:
            break
        byte = footer[place + count]
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number, place + count + 1
    raise ValueError("its footer has no valid number for a block's offset or size")
