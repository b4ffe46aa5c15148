"""The leaves of dumps: the dumps that were written from the catalog, however often they were joined since.

Two sequences of dumps that cover the same serials hold the same if their leaves are equal. Leaves are compared by their
count and by a digest, so what is stored of them does not grow with their count.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True)
class Leaves:
    """A set of leaves: their `count`, and the sum of the sha256 of their directories, in 64 hexadecimal digits.

    A sum does not depend on how the leaves were joined. Their order is that of their serials, which never overlap.

        Leaves.of(["100-110"]) + Leaves.of(["110-120"]) == Leaves.of(["100-110", "110-120"])
    """

    count: int = 0
    digest: str = "0" * 64

    @classmethod
    def of(cls, directories: Iterable[str]) -> "Leaves":
        """Those with these directories."""
        names = list(directories)
        return cls(len(names), _hex(sum(int(hashlib.sha256(name.encode()).hexdigest(), 16) for name in names)))

    def __add__(self, other: "Leaves") -> "Leaves":
        return Leaves(self.count + other.count, _hex(int(self.digest, 16) + int(other.digest, 16)))


NO_LEAVES = Leaves()


def all_leaves(parts: Iterable[Leaves]) -> Leaves:
    """The leaves of all `parts` together."""
    count = total = 0
    for part in parts:
        count, total = count + part.count, total + int(part.digest, 16)
    return Leaves(count, _hex(total))


def _hex(total: int) -> str:
    return f"{total % _MODULUS:064x}"
