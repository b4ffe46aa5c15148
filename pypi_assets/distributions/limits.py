"""How much one distribution may cost: bytes, members, expansion and processor time."""

import time
from collections.abc import Collection
from dataclasses import dataclass

MIB = 1024**2
READER_MEMORY_BYTES = 1024 * MIB
"""What a process that reads distributions may take above the interpreter, as the system enforces it. Honest files need
a tenth of it.
"""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What reading one file may cost. The defaults let every honest distribution through, and keep the reader's memory
    under 150 MB (benchmarks/read_memory.py).

    `max_metadata_bytes` bounds one small file (METADATA, pyproject.toml ...) with a description, `max_wanted_bytes` all
    of them together, and `max_kept_bytes` what is parsed and stored of them, without descriptions; it is a few dozen KB
    for real distributions, and parsing takes up to 32 times as much memory. `max_directory_bytes` bounds a zip's
    central directory and a tar's member names, `max_name_length` (in characters) one name. The ratio of inflated to
    compressed bytes is judged once `ratio_free_bytes` are inflated, since small files of zeros are honest.
    `max_spooled_bytes` bounds a zip that comes as a stream, which is kept in memory. `seconds` are processor time, so
    that a slow network or a busy machine does not condemn a file.
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
    """A limit is exceeded; the text names it."""


_TIMED_BYTES = 64 * 1024
"""Inflating these takes less time than a look at the clock is worth."""
MAX_SCRIPTS = 40
MAX_SCRIPT_BYTES = 64 * 1024
MAX_ALL_SCRIPTS_BYTES = 256 * 1024
"""Of the files that setup.py may use: what is beyond is left out, and the rest is read."""
MAX_SOURCES_BYTES = 256 * 1024
"""Of a SOURCES.txt, which names files that are known: a larger one is left out."""


class Budget:
    """Counts what one read has cost so far; each method raises LimitExceededError once its limit is exceeded."""

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
        """Counts all of `names` at once, which is quicker."""
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
        """Counts `inflated` more bytes; `compressed_total` is how many compressed bytes all of them came from."""
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
        """Counts a small file that is about to be read; `name` and `size` (in bytes) are the archive's claims."""
        if size > self.limits.max_metadata_bytes:
            raise LimitExceededError(f"{name!a:.200} is larger than {self.limits.max_metadata_bytes} bytes")
        self._wanted += size
        if self._wanted > self.limits.max_wanted_bytes:
            raise LimitExceededError(
                f"the metadata files are larger than {self.limits.max_wanted_bytes} bytes together"
            )

    def has_room_for_script(self, size: int) -> bool:
        """Whether one more of the files that setup.py may use is kept; it is then counted. The others are left out,
        and no limit is exceeded by them."""
        is_kept = (
            size <= MAX_SCRIPT_BYTES
            and self._scripts < MAX_SCRIPTS
            and self._script_bytes + size <= MAX_ALL_SCRIPTS_BYTES
        )
        self._scripts += is_kept
        self._script_bytes += size if is_kept else 0
        return is_kept

    def count_kept(self, size: int) -> None:
        """Counts `size` bytes of a small file that are kept."""
        self._kept += size
        if self._kept > self.limits.max_kept_bytes:
            raise LimitExceededError(f"more than {self.limits.max_kept_bytes} bytes of metadata without descriptions")
