"""What kinds of dumps there are, and what is known of their files: all that who only reads dumps needs to import."""

from dataclasses import dataclass
from enum import StrEnum


class DumpKind(StrEnum):
    FULL = "full"
    INCREMENTAL = "incremental"
    COMPACTED = "compacted"


@dataclass(frozen=True, slots=True)
class DumpFile:
    """One file of a dump; `size` is in bytes, compressed."""

    shard: int
    name: str
    rows: int
    size: int
    sha256: str
