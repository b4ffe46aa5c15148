"""The content hash: the same for the same set of records, in whatever order they were added and removed."""

import hashlib
import struct
from collections.abc import Iterable

_HASH_MODULUS = 1 << 256
_LENGTH = struct.Struct(">Q")


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
