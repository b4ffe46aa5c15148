"""Sorted runs of records on disk: what does not fit in memory is written sorted, in blocks by ranges of keys.

All runs are cut at the same bounds, so that a range can be read, sorted and done with before the next.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec
import zstandard

from pypi_assets.leveldbs.format.content_hash import hash_sum
from pypi_assets.leveldbs.format.records import Records

_COMPRESSION_LEVEL = 1
_RECORD_BYTES = 160
"""What a record takes in memory in addition to its key and its value: two objects, and its place in a dictionary."""
_JSON_BYTES = 1024  # what orjson takes for any text, before it cuts it to size
_Content = tuple[list[bytes], list[bytes]]
_decoder = msgspec.msgpack.Decoder(_Content)


class Block(NamedTuple):
    """A part of a run: the number of its range, where it is, how long, and about how much memory its records take."""

    range: int
    offset: int
    size: int
    memory: int


@dataclass(frozen=True, slots=True)
class Runs:
    """The file of one writer. `hash_sum` is of all its records, `counts` are theirs by the first letter of the key."""

    path: Path
    blocks: Sequence[Block]
    counts: Mapping[str, int]
    hash_sum: int


class RunWriter:
    """Takes records, no key twice, and writes a run each time that they take `run_bytes` of memory.

    `bounds` ascend; each is the first key of a range. Raises OSError where the file can't be written.
    """

    def __init__(self, path: Path, bounds: Sequence[bytes], run_bytes: int) -> None:
        self._path, self._bounds, self._run_bytes = path, bounds, run_bytes
        self._file = path.open("xb")
        self._compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        self._records: Records = {}
        self._memory = 0
        self._blocks: list[Block] = []
        self._counts: Counter[int] = Counter()
        self._hash_sum = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()

    def add(self, records: Records) -> None:
        # A short JSON text holds the place of a long one until it is copied.
        self._records |= {one: b"%b" % value if len(value) < _JSON_BYTES else value for one, value in records.items()}
        self._hash_sum += hash_sum(records.items())
        self._memory += memory_of(records)
        if self._memory >= self._run_bytes:
            self._write_run()

    def finish(self) -> Runs:
        """Writes what is left, and returns all that was written."""
        self._write_run()
        self._file.flush()
        counts = {chr(letter): count for letter, count in self._counts.items()}
        return Runs(self._path, self._blocks, counts, self._hash_sum)

    def _write_run(self) -> None:
        records, self._records, self._memory = self._records, {}, 0
        keys = sorted(records)
        self._counts.update(map(itemgetter(0), keys))
        start = 0
        for number in range(len(self._bounds) + 1):
            end = bisect_left(keys, self._bounds[number], start) if number < len(self._bounds) else len(keys)
            if end > start:
                block = keys[start:end]
                content = msgspec.msgpack.encode((block, [records[one] for one in block]))
                compressed = self._compressor.compress(content)
                memory = len(content) + _RECORD_BYTES * len(block)
                self._blocks.append(Block(number, self._file.tell(), len(compressed), memory))
                self._file.write(compressed)
            start = end


def memory_of(records: Records) -> int:
    """About how many bytes of memory `records` take."""
    return sum(map(len, records)) + sum(map(len, records.values())) + _RECORD_BYTES * len(records)


def cut(records: Records, ranges: int) -> list[bytes]:
    """The bounds of `ranges` ranges, or fewer, in each of which are about as many bytes of `records`."""
    bounds: list[bytes] = []
    share = max(1, memory_of(records) // ranges)
    size = 0
    for record_key in sorted(records):
        if size >= share * (len(bounds) + 1):
            bounds.append(record_key)
        size += len(record_key) + len(records[record_key]) + _RECORD_BYTES
    return bounds


def merged(runs: Iterable[Runs], memory_bytes: int) -> Iterator[Records]:
    """All records in ascending order of their keys, as many at a time as take about `memory_bytes`, a range at least.

    A key that is in several runs comes once.
    """
    found = sorted(((block, one.path) for one in runs for block in one.blocks), key=lambda entry: entry[0].range)
    together: list[tuple[Block, Path]] = []
    memory = 0
    for number, (block, path) in enumerate(found):
        if memory >= memory_bytes and block.range != found[number - 1][0].range:
            yield _read(together)
            together, memory = [], 0
        together.append((block, path))
        memory += block.memory
    if together:
        yield _read(together)


def _read(blocks: Iterable[tuple[Block, Path]]) -> Records:
    decompressor = zstandard.ZstdDecompressor()
    records: Records = {}
    for block, path in blocks:
        with path.open("rb") as file:
            file.seek(block.offset)
            keys, values = _decoder.decode(decompressor.decompress(file.read(block.size)))
        records.update(zip(keys, values, strict=True))
    return {record_key: records[record_key] for record_key in sorted(records)}
