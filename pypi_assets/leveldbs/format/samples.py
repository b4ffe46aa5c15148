"""A few records of a LevelDB, for people to see what is in it. Costs a seek for each kind of key, whatever its size."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from pypi_assets.leveldbs.format.keys import SEPARATOR
from pypi_assets.leveldbs.format.leveldb_binding import Database

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
