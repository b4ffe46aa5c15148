"""Sorted runs of records on disk: records that do not fit into memory are sorted and written in blocks by key range.

All runs are cut at the same bounds, so a range can be read, sorted and processed before the next. The number of blocks
is the number of runs times the number of ranges, and a block takes 32 bytes of memory.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import Self

import msgspec
import zstandard

from pypi_assets.leveldbs.format.records import Records, hash_sum

_COMPRESSION_LEVEL = 1
_RECORD_BYTES = 160
"""The memory of a record beyond its key and value: two objects, and an entry in a dictionary."""
_JSON_BYTES = 1024  # orjson allocates this much for any text before it shrinks it
_Content = tuple[list[bytes], list[bytes]]
_decoder = msgspec.msgpack.Decoder(_Content)


_BLOCK = Struct("=4Q")
"""The index entry of a block, which is a part of a run. The index is at the end of the file.

An entry has the number of the block's range, its offset and length, and the approximate memory of its records.
"""
_READ_BLOCKS = 4_096


@dataclass(frozen=True, slots=True)
class Runs:
    """The file of one writer, and the offset of its index.

    `hash_sum` covers all its records, and `counts` are the numbers of records by the first letter of the key.
    """

    path: Path
    index_offset: int
    counts: Mapping[str, int]
    hash_sum: int


class RunWriter:
    """Collects records without duplicate keys, and writes a run each time that they take `run_bytes` of memory.

    `bounds` ascend; each is the first key of a range. `memory` is the memory of the collected records. Raises OSError
    if the file cannot be written.
    """

    def __init__(self, path: Path, bounds: Sequence[bytes], run_bytes: int) -> None:
        self._path, self._bounds, self._run_bytes = path, bounds, run_bytes
        self._file = path.open("xb")
        self._compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        self._records: Records = {}
        self.memory = 0
        self._index = bytearray()
        self._counts: Counter[int] = Counter()
        self._hash_sum = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()

    def add(self, records: Records) -> None:
        # A short JSON text occupies the memory of a long one until it is copied.
        self._records |= {key: b"%b" % value if len(value) < _JSON_BYTES else value for key, value in records.items()}
        self._hash_sum += hash_sum(records.items())
        self.memory += memory_of(records)
        if self.memory >= self._run_bytes:
            self.write_run()

    def finish(self) -> Runs:
        """Write the remaining records and the index, and return the runs."""
        self.write_run()
        index_offset = self._file.tell()
        self._file.write(self._index)
        self._file.flush()
        counts = {chr(letter): count for letter, count in self._counts.items()}
        return Runs(self._path, index_offset, counts, self._hash_sum)

    def write_run(self) -> None:
        """Write the collected records, before they take `run_bytes`."""
        records, self._records, self.memory = self._records, {}, 0
        keys = sorted(records)
        self._counts.update(map(itemgetter(0), keys))
        start = 0
        for number in range(len(self._bounds) + 1):
            end = bisect_left(keys, self._bounds[number], start) if number < len(self._bounds) else len(keys)
            if end > start:
                block = keys[start:end]
                content = msgspec.msgpack.encode((block, [records[key] for key in block]))
                compressed = self._compressor.compress(content)
                memory = len(content) + _RECORD_BYTES * len(block)
                self._index += _BLOCK.pack(number, self._file.tell(), len(compressed), memory)
                self._file.write(compressed)
            start = end


class RunWriters:
    """The writers of several datasets, whose records together take at most `run_bytes` of memory.

    `targets` are the file and the bounds of each dataset. The writer with most records writes a run whenever there is
    no memory left, so that runs are as long as they can be.
    """

    def __init__(self, targets: Iterable[tuple[Path, Sequence[bytes]]], run_bytes: int) -> None:
        self._run_bytes = run_bytes
        with ExitStack() as opened:
            self._writers = [opened.enter_context(RunWriter(path, bounds, run_bytes)) for path, bounds in targets]
            self._exits = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._exits.close()

    @property
    def memory(self) -> int:
        """The memory of the collected records of all datasets."""
        return sum(writer.memory for writer in self._writers)

    def add(self, records: Iterable[Records]) -> None:
        """Add the records of each dataset."""
        for writer, of_dataset in zip(self._writers, records, strict=True):
            writer.add(of_dataset)
            while self.memory >= self._run_bytes:
                max(self._writers, key=lambda writer: writer.memory).write_run()

    def finish(self) -> list[Runs]:
        """Write the remaining records, and return the runs of each dataset."""
        return [writer.finish() for writer in self._writers]


def memory_of(records: Records) -> int:
    """Return roughly how many bytes of memory `records` take."""
    return sum(map(len, records)) + sum(map(len, records.values())) + _RECORD_BYTES * len(records)


def sizes_of(records: Records) -> dict[bytes, int]:
    """Return roughly how many bytes of memory each record takes, by key."""
    return {record_key: len(record_key) + len(value) + _RECORD_BYTES for record_key, value in records.items()}


def cut(sizes: Mapping[bytes, int], ranges: int) -> list[bytes]:
    """Return the bounds of at most `ranges` ranges of keys with about equally many bytes each."""
    bounds: list[bytes] = []
    share = max(1, sum(sizes.values()) // ranges)
    size = 0
    for record_key in sorted(sizes):
        if size >= share * (len(bounds) + 1):
            bounds.append(record_key)
        size += sizes[record_key]
    return bounds


def merged(runs: Sequence[Runs], memory_bytes: int) -> Iterator[Records]:
    """Yield all records in ascending order of keys, in parts of about `memory_bytes`, but at least one range at a time.

    A key that is in several runs is yielded once.
    """
    paths = [run.path for run in runs]
    together: list[tuple[int, int, int]] = []
    memory = 0
    for blocks in _by_range(runs):
        if memory >= memory_bytes:
            yield _read(paths, together)
            together, memory = [], 0
        for writer, offset, size, taken in _BLOCK.iter_unpack(blocks):
            together.append((writer, offset, size))
            memory += taken
    if together:
        yield _read(paths, together)


def _by_range(runs: Sequence[Runs]) -> list[bytearray]:
    """Return the blocks of each range. In these entries, the number of the writer replaces the number of the range."""
    ranges: defaultdict[int, bytearray] = defaultdict(bytearray)
    for writer, run in enumerate(runs):
        with run.path.open("rb") as file:
            file.seek(run.index_offset)
            for part in iter(partial(file.read, _READ_BLOCKS * _BLOCK.size), b""):
                for number, *block in _BLOCK.iter_unpack(part):
                    ranges[number] += _BLOCK.pack(writer, *block)
    return [ranges[number] for number in sorted(ranges)]


def _read(paths: Sequence[Path], blocks: Iterable[tuple[int, int, int]]) -> Records:
    decompressor = zstandard.ZstdDecompressor()
    records: Records = {}
    for writer, offset, size in blocks:
        with paths[writer].open("rb") as file:
            file.seek(offset)
            keys, values = _decoder.decode(decompressor.decompress(file.read(size)))
        records.update(zip(keys, values, strict=True))
    return {record_key: records[record_key] for record_key in sorted(records)}
