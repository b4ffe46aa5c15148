"""What all LevelDBs here share: how keys are made, what is stored about a LevelDB inside it, and its content hash."""

import errno
import hashlib
import os
import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import plyvel

SEPARATOR = b"\0"
META_PREFIX = b"\0"
WRITE_BUFFER_BYTES = 64 * 1024**2
_HASH_MODULUS = 1 << 256
_LENGTH = struct.Struct(">Q")
_TABLE_BYTES = 4 * 1024**2  # twice the default, so that all stay open; a merge takes one, and all that it overlaps
_OPEN_TABLES = 1_000
_CACHE_BYTES = 32 * 1024**2
_BLOOM_BITS = 10
_LEVELS, _LEVEL_0_TABLES, _LEVEL_1_BYTES = 7, 4, 10 * 1024**2  # LevelDB's own, which are no options
_TABLE_OR_LEVEL = re.compile(rb"^(?:--- level ([0-9]) ---| [0-9]+:([0-9]+)\[)", re.MULTILINE)
_NO_KEY = b"\xff"  # which no UTF-8 has
_PAUSE_S = 0.01

Row = Mapping[str, Any]
Records = dict[bytes, bytes]


class LeveldbError(Exception):
    """A LevelDB cannot be built or read as asked; the text says what to do."""


class LeveldbDamagedError(LeveldbError):
    """A published LevelDB is not what was published: missing, cut, changed or unreadable files."""


class UnknownFormatError(LeveldbError):
    """A LevelDB in a format that this version of the code does not know."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What is stored inside a LevelDB about itself. `counts` are numbers of records by the first letter of the key;
    `content_hash` is the sum, modulo 2**256, of the hashes of all records but these, in hex.
    """

    dataset: str
    format: int
    serial: int
    counts: Mapping[str, int]
    content_hash: str


def key(*parts: str) -> bytes:
    """A key of parts that sort and are scanned one after the other. What would end a part early is replaced."""
    joined = "\0".join(parts)
    if joined.count("\0") != len(parts) - 1:
        joined = "\0".join(map(as_part, parts))
    return joined.encode()


def as_part(text: str) -> str:
    """`text` as it stands in keys."""
    return text.replace("\0", "\ufffd")


def prefix(*parts: str) -> bytes:
    """What all keys begin with whose first parts are `parts`."""
    return key(*parts) + SEPARATOR


class ContentHash:
    """A hash of a set of records that does not depend on their order, and that records can be taken out of."""

    def __init__(self, value: str = "0") -> None:
        self._value = int(value, 16)

    def add(self, record_key: bytes, value: bytes) -> None:
        self.add_sum(hash_sum([(record_key, value)]))

    def remove(self, record_key: bytes, value: bytes) -> None:
        self.add_sum(-hash_sum([(record_key, value)]))

    def add_sum(self, hash_sum: int) -> None:
        """Adds many records at once, by what `hash_sum` gives for them."""
        self._value = (self._value + hash_sum) % _HASH_MODULUS

    @property
    def hex(self) -> str:
        return f"{self._value:064x}"


def hash_sum(records: Iterable[tuple[bytes, bytes]]) -> int:
    """The sum of the hashes of `records`."""
    total = 0
    pack, sha256, to_int = _LENGTH.pack, hashlib.sha256, int.from_bytes  # looked up once: there are millions of records
    for record_key, value in records:
        sized = pack(len(record_key)) + record_key + pack(len(value)) + value
        total += to_int(sha256(sized).digest(), "big")
    return total


@contextmanager
def open_leveldb(
    path: Path,
    name: str,
    *,
    create: bool = False,
    write_buffer_bytes: int = WRITE_BUFFER_BYTES,
    cache_bytes: int = _CACHE_BYTES,
    paranoid: bool = False,
) -> Iterator[plyvel.DB]:
    """Opens the LevelDB in the folder `path`, which must be nobody else's. `name` is what errors call it, `cache_bytes`
    is how much of what was read is kept at most. With `paranoid`, what is merged into new tables is checked too, where
    damage would be hidden for good.

    Raises LeveldbDamagedError where LevelDB finds damage, on opening and later.
    """
    with plyvel_errors_as_damage(name):
        db = plyvel.DB(
            str(path),
            create_if_missing=create,
            error_if_exists=create,
            write_buffer_size=write_buffer_bytes,
            max_file_size=_TABLE_BYTES,
            max_open_files=_OPEN_TABLES,
            lru_cache_size=cache_bytes,
            bloom_filter_bits=_BLOOM_BITS,
            paranoid_checks=paranoid,
        )
        try:
            yield db
        finally:
            db.close()


def flush(db: plyvel.DB) -> None:
    """Writes what is in memory into a table: a deep one, merged late, where no other has keys among its own."""
    db.compact_range(start=_NO_KEY, stop=_NO_KEY)


def settle(db: plyvel.DB, waiting: Callable[[], object]) -> None:
    """Flushes, and lets LevelDB merge tables until it is done.

    What is being merged when a LevelDB is closed is thrown away, and whoever opens it next begins it again. `waiting`
    is called again and again. Raises LeveldbDamagedError, in `open_leveldb`, where merging finds damage.
    """
    flush(db)
    while is_merge_due(db):
        db.write_batch().write()  # raises where merging has failed
        waiting()
        time.sleep(_PAUSE_S)


def is_merge_due(db: plyvel.DB) -> bool:
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
def plyvel_errors_as_damage(name: str) -> Iterator[None]:
    """Turns LevelDB's own errors into LeveldbDamagedError, or LeveldbError where the disk is full."""
    try:
        yield
    except plyvel.Error as error:
        text = b" ".join(part for part in error.args if isinstance(part, bytes)).decode(errors="replace")
        if os.strerror(errno.ENOSPC) in text:
            raise LeveldbError(f"{name} cannot be written, make room on the disk: {text}") from error
        raise LeveldbDamagedError(f"{name} cannot be read: {text}") from error


def scan(db: plyvel.DB, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    """All records whose key begins with `start`, in order, with their checksums verified."""
    with db.iterator(prefix=start, verify_checksums=True) as records:
        yield from records


def records_of(db: plyvel.DB, start: bytes) -> list[tuple[bytes, bytes]]:
    """The same at once, which is faster where they are few."""
    with db.iterator(prefix=start, verify_checksums=True) as records:
        return list(records)


def read_meta(db: plyvel.DB, name: str, *, dataset: str, known_format: int) -> Meta:
    """What the LevelDB says of itself. Raises UnknownFormatError, and LeveldbDamagedError where it says nothing."""
    found = {record_key.removeprefix(META_PREFIX).decode(): value for record_key, value in scan(db, META_PREFIX)}
    try:
        values = {field: orjson.loads(value) for field, value in found.items()}
        if values["dataset"] != dataset or values["format"] != known_format:
            raise UnknownFormatError(
                f"{name} is {values['dataset']} in format {values['format']}, but this version of pypi-assets reads"
                f" {dataset} in format {known_format}: upgrade it, or build anew with `pypi-assets leveldb update`"
            )
        return Meta(dataset, known_format, values["serial"], values["counts"], values["content_hash"])
    except (KeyError, TypeError, orjson.JSONDecodeError) as error:
        raise LeveldbDamagedError(f"{name} says nothing readable about itself: {error!r}") from error


def write_meta(db: plyvel.DB, meta: Meta) -> None:
    values = {
        "dataset": meta.dataset,
        "format": meta.format,
        "serial": meta.serial,
        "counts": meta.counts,
        "content_hash": meta.content_hash,
    }
    with db.write_batch() as batch:
        for field, value in values.items():
            batch.put(META_PREFIX + field.encode(), orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
