"""Records: keys and values as they are in a LevelDB, and rows of dumps, from which they are made."""

from collections.abc import Iterator, Mapping
from typing import Any

from pypi_assets.leveldbs.format.leveldb_binding import Database

Row = Mapping[str, Any]
"""A row of a dump, by column."""
Records = dict[bytes, bytes]
"""Values by key."""


def scan(db: Database, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    """All records whose key begins with `start`, in order, with their checksums verified."""
    with db.iterator(prefix=start, verify_checksums=True) as records:
        yield from records


def scan_after(db: Database, start: bytes, after: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Those of them whose key comes after `after`, which need not be there."""
    with db.iterator(start=max(start, after), include_start=after < start, verify_checksums=True) as records:
        for record_key, value in records:
            if not record_key.startswith(start):
                return
            yield record_key, value


def first_records(db: Database, start: bytes, most: int) -> list[tuple[bytes, bytes]]:
    """The first `most` of them at once, which is the fastest where one or two are expected."""
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
    """The same at once, which is faster where they are few."""
    with db.iterator(prefix=start, verify_checksums=True) as records:
        return list(records)
