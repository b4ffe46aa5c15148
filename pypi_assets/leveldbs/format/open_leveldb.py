"""Opens LevelDBs, and has LevelDB write and merge its tables when a build wants that."""

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
_TABLE_BYTES = 4 * 1024**2  # twice the default, so that all stay open; a merge takes one, and all that it overlaps
_OPEN_TABLES = 1_000
_CACHE_BYTES = 32 * 1024**2
_BLOOM_BITS = 10
_LEVELS, _LEVEL_0_TABLES, _LEVEL_1_BYTES = 7, 4, 10 * 1024**2  # LevelDB's own, which are no options
_TABLE_OR_LEVEL = re.compile(rb"^(?:--- level ([0-9]) ---| [0-9]+:([0-9]+)\[)", re.MULTILINE)
_NO_KEY = b"\xff"  # which no UTF-8 has
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
    """Opens the LevelDB in the folder `path`, which no other process uses. `name` is what errors call it, `cache_bytes`
    is how much of what was read is kept at most. Of `open_tables` the indexes and filters are kept, those that were
    just written among them. The indexes of tables are checked too, and what is merged into new tables, where damage
    would be hidden for good.

    Raises LeveldbDamagedError where LevelDB finds damage, on opening and later, and MissingBindingError.
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
    """Raises an error of LevelDB where the last block of a table or of a level is damaged.

    Iterators report damage with the record after it. Where none follows they just end, as if there were no
    more records, so the blocks that can be the last ones are read when a LevelDB is opened.
    """
    with closing(db.raw_iterator(verify_checksums=True)) as last:
        last.seek_to_last()


def flush(db: Database) -> None:
    """Writes what is in memory into a table: a deep one, merged late, where no other has keys among its own."""
    db.compact_range(start=_NO_KEY, stop=_NO_KEY)


def flush_and_merge(db: Database, waiting: Callable[[], object]) -> None:
    """Flushes, and lets LevelDB merge tables until it is done.

    What is being merged when a LevelDB is closed is thrown away, and whoever opens it next begins it again. `waiting`
    is called again and again. Raises LeveldbDamagedError, in `open_leveldb`, where merging finds damage.
    """
    flush(db)
    while is_merge_due(db):
        db.write_batch().write()  # raises where merging has failed
        waiting()
        time.sleep(_PAUSE_S)


def is_merge_due(db: Database) -> bool:
    """Whether level 0 has as many tables, or another level as many bytes, as LevelDB begins to merge at."""
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
    """Turns LevelDB's own errors into LeveldbDamagedError, or LeveldbError where the disk is full."""
    try:
        yield
    except binding_errors() as error:
        text = b" ".join(part for part in error.args if isinstance(part, bytes)).decode(errors="replace")
        if os.strerror(errno.ENOSPC) in text:
            raise LeveldbError(f"{name} cannot be written, make room on the disk: {text}") from error
        raise LeveldbDamagedError(f"{name} cannot be read: {text}") from error


_SHOWN_BYTES = 400


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """The parts of a record's key, the beginning of its value as text, and the value's size in bytes."""

    key: tuple[str, ...]
    value: str
    size: int


def sample_records(db: Database, letters: Iterable[str], count: int = 5) -> list[SampleRecord]:
    """At most `count` records, in turn of each kind of key: the first ones of each of the first `letters`."""
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
    """Raise ValueError if the footer of an open table names blocks that do not lie within it."""
    size = table.seek(0, os.SEEK_END)
    if size < FOOTER_BYTES:
        raise ValueError(f"it has {size} bytes, and a table at least {FOOTER_BYTES}")
    table.seek(size - FOOTER_BYTES)
    footer = table.read(FOOTER_BYTES)
    if footer[_HANDLES_BYTES:] != _MAGIC:
        raise ValueError("it does not end as a table does")
    place, end = 0, size - FOOTER_BYTES
    for block in ("metaindex", "index"):
        offset, place = _varint(footer, place)
        length, place = _varint(footer, place)
        if offset + length + _BLOCK_TRAILER_BYTES > end:
            raise ValueError(f"its {block} of {length} bytes at {offset} does not lie before its footer at {end}")


def _varint(footer: bytes, place: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    number = 0
    for count in range(_MOST_VARINT_BYTES):
        if place + count >= _HANDLES_BYTES:
            break
        byte = footer[place + count]
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number, place + count + 1
    raise ValueError("its footer has no number where a place belongs")
