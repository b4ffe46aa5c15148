"""The kinds of dumps, and the facts about their files: all that readers of dumps need to import."""

from dataclasses import dataclass
from enum import StrEnum

FULL_DUMP_SHARDS = (1, 16, 256)
"""How many files a full dump can have."""
MOST_SHARDS = max(FULL_DUMP_SHARDS)
"""How many it has by default, and the partitions of its asset."""


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
