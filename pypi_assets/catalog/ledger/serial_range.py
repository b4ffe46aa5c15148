"""Serial ranges: `A-B` contains the events with A < serial <= B."""

import re
from dataclasses import dataclass
from typing import Self

from pypi_assets.errors import ExpectedError

_KEY = re.compile(r"(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})")


class RangeError(ExpectedError, ValueError):
    """A text is not a valid key of a serial range, or its ends do not make a range."""


@dataclass(frozen=True, slots=True, order=True)
class SerialRange:
    """The serials above `start`, up to and including `end`.

    `0-B` is everything up to B, and `0-0` is an empty index. `B-B` contains no serial: it names late changes to the
    serials up to B. For example:

        1350 in SerialRange.parse("1200-1350")  # True; 1200 is not
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise RangeError(
                f"invalid serial range {self.start}-{self.end}: it must start at 0 or later, and not end before that"
            )

    @property
    def key(self) -> str:
        """Return the range's text `START-END`, for directories, partitions and workloads."""
        return f"{self.start}-{self.end}"

    def __str__(self) -> str:
        return self.key

    def __contains__(self, serial: int) -> bool:
        return self.start < serial <= self.end

    def holds(self, other: "SerialRange") -> bool:
        """Check whether this range contains all serials of `other`."""
        return self.start <= other.start and other.end <= self.end

    @classmethod
    def parse(cls, key: str) -> Self:
        """Return the range with this key, such as `1200-1350`. Raises RangeError."""
        match = _KEY.fullmatch(key)
        if not match:
            raise RangeError(f"{key!r} is not a serial range; expected START-END, such as 1200-1350")
        return cls(int(match[1]), int(match[2]))
