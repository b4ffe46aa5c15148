"""The dumps that a publication was made from, in a form whose size does not depend on their number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import NO_LEAVES, Leaves, all_leaves
from pypi_assets.catalog.publications.dump_registry import Dump

_RANGES = re.compile(r"([0-9]+-[0-9]+):([0-9]+):([0-9a-f]{64})")
_SUFFIX = re.compile(r"\.[0-9]+$")


@dataclass(frozen=True, slots=True)
class HeldDumps:
    """The full dump in the directory `full`, and the ranges that follow it up to `end`, with all their `leaves`.

    Without ranges, `end` is 0.
    """

    full: str
    end: int = 0
    leaves: Leaves = NO_LEAVES

    @classmethod
    def of(cls, cover: Sequence[Dump]) -> "HeldDumps":
        """Return the dumps of a publication that has all dumps of `cover`."""
        full, *ranges = cover
        return cls(full.directory, ranges[-1].serials.end if ranges else 0, all_leaves(dump.leaves for dump in ranges))

    def following(self, cover: Sequence[Dump]) -> tuple[Dump, ...] | None:
        """Return the dumps of `cover` after these, or None if it does not begin with these.

        A compaction counts as the dumps that it joined. A dump that replaces another dump of the same range is a
        difference.
        """
        if not cover or cover[0].directory != self.full:
            return None
        counts = accumulate((dump.leaves.count for dump in cover[1:]), initial=0)
        begin = sum(count < self.leaves.count for count in counts) + 1
        return tuple(cover[begin:]) if HeldDumps.of(cover[:begin]) == self else None

    def encode(self) -> list[str]:
        """Return the field `held` of a manifest: the full dump, and one text for all ranges."""
        if not self.leaves.count:
            return [self.full]
        start = _end_of(self.full)
        return [self.full, f"{SerialRange(start, self.end).key}:{self.leaves.count}:{self.leaves.digest}"]

    @classmethod
    def decode(cls, texts: Sequence[str]) -> "HeldDumps":
        """Return the dumps in the field `held` of a manifest. Raises ValueError and RangeError if it is not valid."""
        full, *ranges = texts
        if not ranges:
            return cls(full)
        match = _RANGES.fullmatch("\n".join(ranges))
        if match is None:
            raise ValueError(f"not the dumps of a publication: {texts!r:.200}")
        return cls(full, SerialRange.parse(match[1]).end, Leaves(int(match[2]), match[3]))


def _end_of(directory: str) -> int:
    """Return the end of the range at the beginning of a dump directory's name."""
    return SerialRange.parse(_SUFFIX.sub("", directory)).end
