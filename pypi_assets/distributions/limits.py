"""Limit the cost of reading one distribution: bytes, members, expansion and processor time."""

import time
from collections.abc import Collection
from dataclasses import dataclass

MIB = 1024**2
READER_MEMORY_BYTES = 1024 * MIB
"""The memory that a reader process may take in addition to the interpreter. The system enforces it.

Ordinary files need a tenth of it.
"""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The limits for reading one file.

    The defaults accept every ordinary distribution and keep a reader's memory under 150 MB (benchmarks/read_memory.py).

    `max_metadata_bytes` limits one small file such as METADATA or pyproject.toml, including its description, and
    `max_wanted_bytes` all of them together. `max_kept_bytes` limits the part that is parsed and stored, without
    descriptions. It is a few dozen KB for real distributions, and parsing takes up to 32 times as much memory.
    `max_directory_bytes` limits a zip's central directory and a tar's member names, and `max_name_length` the
    characters of one name. The ratio of inflated to compressed bytes is checked only after `ratio_free_bytes` are
    inflated, since small files of zeros are harmless. `max_spooled_bytes` limits a zip that comes as a stream and is
    kept in memory. `seconds` is processor time, so that a file is not rejected because of a slow network or a busy
    machine.
    """

    max_file_bytes: int = 2048 * MIB
    max_metadata_bytes: int = 8 * MIB
    max_wanted_bytes: int = 16 * MIB
    max_kept_bytes: int = 2 * MIB
    max_directory_bytes: int = 12 * MIB
    max_members: int = 200_000
    max_name_length: int = 4096
    max_inflated_bytes: int = 8192 * MIB
    max_spooled_bytes: int = 256 * MIB
    max_expansion_ratio: float = 200.0
    ratio_free_bytes: int = 256 * MIB
    seconds: float = 60.0


class LimitExceededError(Exception):
    """A limit is exceeded. The message names it."""


_TIMED_BYTES = 64 * 1024
"""Inflating fewer bytes than this takes so little time that checking the clock is not worthwhile."""
MAX_SCRIPTS = 40
MAX_SCRIPT_BYTES = 64 * 1024
MAX_ALL_SCRIPTS_BYTES = 256 * 1024
"""Limits for files that setup.py may use. Files beyond them are skipped, and the others are read."""
MAX_SOURCES_BYTES = 256 * 1024
"""A larger SOURCES.txt is skipped. It mostly names files that are already known."""


class Budget:
    """Counts the cost of one read so far. Each method raises LimitExceededError when its limit is exceeded."""

    def __init__(self, limits: ReadLimits) -> None:
        self.limits = limits
        self._started = time.thread_time()
        self.longest_name = 0
        self._members = 0
        self._name_chars = 0
        self._inflated = 0
        self._timed_at = _TIMED_BYTES
        self._wanted = 0
        self._kept = 0
        self._scripts = 0
        self._script_bytes = 0

    def check_file_size(self, size: int) -> None:
        if size > self.limits.max_file_bytes:
            raise LimitExceededError(f"the file is larger than {self.limits.max_file_bytes} bytes")

    def check_spooled(self, size: int) -> None:
        if size > self.limits.max_spooled_bytes:
            raise LimitExceededError(f"a zip of unknown size is larger than {self.limits.max_spooled_bytes} bytes")

    def check_time(self) -> None:
        if time.thread_time() - self._started > self.limits.seconds:
            raise LimitExceededError(f"reading takes more than {self.limits.seconds:g} seconds")

    def count_member(self, name: str) -> None:
        length = len(name)
        self._members += 1
        self._name_chars += length
        limits = self.limits
        if (
            length > self.longest_name
            or self._name_chars > limits.max_directory_bytes
            or self._members > limits.max_members
        ):
            self._count_names(0, 0, length)

    def count_members(self, names: Collection[str]) -> None:
        """Count all of `names` at once, which is faster."""
        lengths = list(map(len, names))
        self._count_names(len(lengths), sum(lengths), max(lengths, default=0))

    def _count_names(self, members: int, chars: int, longest: int) -> None:
        self._members += members
        self._name_chars += chars
        self.longest_name = max(self.longest_name, longest)
        if longest > self.limits.max_name_length:
            raise LimitExceededError(f"a member's name is longer than {self.limits.max_name_length} characters")
        if self._name_chars > self.limits.max_directory_bytes:
            raise LimitExceededError(f"the members' names are longer than {self.limits.max_directory_bytes} together")
        if self._members > self.limits.max_members:
            raise LimitExceededError(f"more than {self.limits.max_members} members")

    def count_inflated(self, inflated: int, compressed_total: int | None = None) -> None:
        """Count `inflated` more bytes. `compressed_total` is the number of compressed bytes that led to all of them."""
        self._inflated += inflated
        if self._inflated >= self._timed_at:
            self._timed_at = self._inflated + _TIMED_BYTES
            self.check_time()
        if self._inflated > self.limits.max_inflated_bytes:
            raise LimitExceededError(f"more than {self.limits.max_inflated_bytes} bytes inflated")
        if (
            compressed_total is not None
            and self._inflated > self.limits.ratio_free_bytes
            and self._inflated > compressed_total * self.limits.max_expansion_ratio
        ):
            raise LimitExceededError(f"inflates to more than {self.limits.max_expansion_ratio:g} times its size")

    def count_wanted(self, name: str, size: int) -> None:
        """Count a small file that is about to be read. `name` and `size` in bytes are claims of the archive."""
        if size > self.limits.max_metadata_bytes:
            raise LimitExceededError(f"{name!a:.200} is larger than {self.limits.max_metadata_bytes} bytes")
        self._wanted += size
        if self._wanted > self.limits.max_wanted_bytes:
            raise LimitExceededError(
                f"the metadata files are larger than {self.limits.max_wanted_bytes} bytes together"
            )

    def has_room_for_script(self, size: int) -> bool:
        """Return whether one more file that setup.py may use fits, and count it if so. Other files are just skipped."""
        is_kept = (
            size <= MAX_SCRIPT_BYTES
            and self._scripts < MAX_SCRIPTS
            and self._script_bytes + size <= MAX_ALL_SCRIPTS_BYTES
        )
        self._scripts += is_kept
        self._script_bytes += size if is_kept else 0
        return is_kept

    def count_kept(self, size: int) -> None:
        """Count `size` bytes of a small file that are stored."""
        self._kept += size
        if self._kept > self.limits.max_kept_bytes:
            raise LimitExceededError(f"more than {self.limits.max_kept_bytes} bytes of metadata without descriptions")
