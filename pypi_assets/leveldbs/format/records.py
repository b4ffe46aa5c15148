"""Defines records: keys, values, a LevelDB's record about itself, and the hash of its content.

The hash depends only on the set of records, and not on the order in which they were added and removed.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError

SEPARATOR = b"\0"


def key(*parts: str) -> bytes:
    """Return a key of parts that are sorted and scanned in this order.

    NUL characters, which would end a part, are replaced.
    """
    joined = "\0".join(parts)
    if joined.count("\0") != len(parts) - 1:
        joined = "\0".join(map(as_part, parts))
    return joined.encode()


def as_part(text: str) -> str:
    """Return `text` as it appears in keys."""
    return text.replace("\0", "\ufffd")


def prefix(*parts: str) -> bytes:
    """Return the beginning of all keys whose first parts are `parts`."""
    return key(*parts) + SEPARATOR


Row = Mapping[str, Any]
"""A row of a dump: values by column."""
Records = dict[bytes, bytes]
"""Values by key."""


def scan(db: Database, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield all records whose key begins with `start`, in order, with verified checksums."""
    with db.iterator(prefix=start, verify_checksums=True) as records:
        yield from records


def scan_after(db: Database, start: bytes, after: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records whose key begins with `start` and comes after `after`, which need not exist."""
    with db.iterator(start=max(start, after), include_start=after < start, verify_checksums=True) as records:
        for record_key, value in records:
            if not record_key.startswith(start):
                return
            yield record_key, value


def first_records(db: Database, start: bytes, most: int) -> list[tuple[bytes, bytes]]:
    """Return the first `most` records whose key begins with `start`.

    This is the fastest way to read one or two records.
    """
    found: list[tuple[bytes, bytes]] = []
    records = db.raw_iterator(verify_checksums=True)
    try:
        records.seek(start)
        while len(found) < most and records.valid() and (record_key := records.key()).startswith(start):
            found.append((record_key, records.value()))
            records.next()
    finally:
        records.close()
    return found


def records_of(db: Database, start: bytes) -> list[tuple[bytes, bytes]]:
    """Return all records whose key begins with `start`. For few records, this is faster than `scan`."""
    with db.iterator(prefix=start, verify_checksums=True) as records:
        return list(records)


META_PREFIX = b"\0"


@dataclass(frozen=True, slots=True)
class Meta:
    """A LevelDB's record about itself.

    `counts` are the numbers of records by the first letter of the key. `content_hash` is the sum, modulo 2**256, of the
    hashes of all records except this one, in hexadecimal digits.
    """

    dataset: str
    format: int
    serial: int
    counts: Mapping[str, int]
    content_hash: str


def read_meta(db: Database, name: str, *, dataset: str, known_format: int) -> Meta:
    """Return the LevelDB's record about itself. Raises UnknownFormatError, or LeveldbDamagedError if it is missing."""
    found = {record_key.removeprefix(META_PREFIX).decode(): value for record_key, value in scan(db, META_PREFIX)}
    try:
        values = {field: orjson.loads(value) for field, value in found.items()}
        if values["dataset"] != dataset or values["format"] != known_format:
            raise UnknownFormatError(
                f"{name} is {values['dataset']} in format {values['format']}, but this pypi-assets reads"
                f" {dataset} in format {known_format}: {_remedy(values['format'], known_format)}"
            )
        return Meta(dataset, known_format, values["serial"], values["counts"], values["content_hash"])
    except (KeyError, TypeError, orjson.JSONDecodeError) as error:
        raise LeveldbDamagedError(f"{name} has no readable record about itself: {error!r}") from error


def read_content_hash(db: Database) -> str | None:
    """Return the content hash in the LevelDB's record about itself, or None if it has no such record."""
    value = db.get(META_PREFIX + b"content_hash", verify_checksums=True)
    return None if value is None else str(orjson.loads(value))


def _remedy(found: object, known: int) -> str:
    if isinstance(found, int) and found < known:
        return "an older pypi-assets built it; `pypi-assets leveldb update` builds a version that can be read"
    return "a newer pypi-assets built it; upgrade this one"


def write_meta(db: Database, meta: Meta) -> None:
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


_HASH_MODULUS = 1 << 256
_LENGTH = struct.Struct(">Q")


class ContentHash:
    """A hash of a set of records that does not depend on their order. Records can be added and removed."""

    def __init__(self, value: str = "0") -> None:
        self._value = int(value, 16)

    def add(self, record_key: bytes, value: bytes) -> None:
        self.add_sum(hash_sum([(record_key, value)]))

    def remove(self, record_key: bytes, value: bytes) -> None:
        self.add_sum(-hash_sum([(record_key, value)]))

    def add_sum(self, hash_sum: int) -> None:
        """Add the result of `hash_sum` for many records."""
        self._value = (self._value + hash_sum) % _HASH_MODULUS

    @property
    def hex(self) -> str:
        return f"{self._value:064x}"


def hash_sum(records: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the sum of the hashes of `records`."""
    total = 0
    # looked up once, since there are millions of records
    pack, sha256, to_int = _LENGTH.pack, hashlib.sha256, int.from_bytes
    for record_key, value in records:
        sized = pack(len(record_key)) + record_key + pack(len(value)) + value
        total += to_int(sha256(sized).digest(), "big")
    return total
