"""Copies files from a source into the storage: several in parallel, with little memory, each checked first.

So each file in the storage is complete, and a kill leaves only complete files. The files to copy are chosen elsewhere.
"""

import hashlib
import io
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import orjson
import zstandard

from pypi_assets.journal.segment_files import MOST_LINE_BYTES, segment_path
from pypi_assets.journal.segment_files import SegmentManifest as Segment
from pypi_assets.journal.verification import next_place
from pypi_assets.leveldbs.format.open_leveldb import check_table
from pypi_assets.mirror.sources import RefusedSourceError, Source, SourceError, VanishedError, WrongContentError
from pypi_assets.mirror.sync_plan import WantedFile
from pypi_assets.storage.store import READ_BUFFER_BYTES, ObjectNotFoundError, Storage, StorageError

ATTEMPTS = 3
"""The number of attempts for a file if the source does not answer. Files with wrong content are not requested again."""
MOST_RECORD_VALUES = 5_000_000
"""The most JSON values of one record, more than any valid record has.

A parser needs several dozen bytes of memory for each value, and a compressed segment of a few KiB could hold a record
with far more.
"""
_PAUSE_S = 1.0
_SPARE_BYTES = 64 * 1024
_TABLE = ".ldb"
_MOST_WINDOW_BYTES = 32 * 1024**2


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that belong together, and the action to take once all of them are stored."""

    files: tuple[WantedFile, ...]
    done: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Copying:
    """Copies files from `source` to `storage`, `at_once` in parallel.

    `copied` receives the size of each copied file.
    """

    source: Source
    storage: Storage
    at_once: int = 4
    copied: Callable[[int], None] = lambda _size: None
    sleep: Callable[[float], None] = time.sleep

    def files(self, wanted: Iterable[WantedFile]) -> None:
        """Copy files. Raises RefusedSourceError and SourceError. Files that were copied before an error are kept."""
        self.groups([FileGroup(tuple(wanted))])

    def groups(self, groups: Sequence["FileGroup"]) -> None:
        """Copy the files of several groups, without a pause between the groups.

        A group is done once all of its files and all earlier groups are stored. Raises the errors of `files`.
        """
        with _threads(self.at_once) as threads:
            copies = [[threads.submit(self._file, file) for file in group.files] for group in groups]
            for group, of_group in zip(groups, copies, strict=True):
                _await(of_group)
                group.done()

    def segments(self, wanted: Iterable[Segment]) -> None:
        """Copy segments of the journal, whose hashes are of the uncompressed content. Raises the errors of `files`."""
        with _threads(self.at_once) as threads:
            _await([threads.submit(self._segment, segment) for segment in wanted])

    def holds(self, file: WantedFile) -> bool:
        """Read the stored file and check whether its size and hash match."""
        return self.storage.exists(file.path) and _hash_of(self.storage, file.path) == (file.sha256, file.size)

    def _file(self, file: WantedFile) -> None:
        with self._received(file.path, file.size) as (local, size, sha256):
            if (size, sha256) != (file.size, file.sha256):
                raise WrongContentError(
                    f"{self.source.name}/{file.path} has {size:,} bytes with the sha256 {sha256}, but its manifest"
                    f" states {file.size:,} with {file.sha256}"
                )
            if file.path.endswith(_TABLE):
                self._check_table(file, local)
            self.storage.put(file.path, local)
        self.copied(file.size)

    def _check_table(self, file: WantedFile, local: BinaryIO) -> None:
        try:
            check_table(local)
        except ValueError as error:
            raise WrongContentError(f"{self.source.name}/{file.path} is not a table of a LevelDB: {error}") from error
        local.seek(0)

    def _segment(self, segment: Segment) -> None:
        path = segment_path(segment)
        most = segment.content_bytes + segment.content_bytes // 64 + _SPARE_BYTES
        with self._received(path, most) as (local, size, _):
            check_segment(local, segment, f"{self.source.name}/{path}")
            local.seek(0)
            self.storage.put(path, local)
        self.copied(size)

    @contextmanager
    def _received(self, path: str, most_bytes: int) -> "Iterator[tuple[BinaryIO, int, str]]":
        """Yield a file as an unnamed local file, positioned at its start, with its size and hash.

        Raises StorageError if the local file cannot be written.
        """
        try:
            yield from self._attempts(path, most_bytes)
        except OSError as error:  # errors of the source are SourceErrors
            raise StorageError(f"a file cannot be written for {self.storage.url}: {error}") from error

    def _attempts(self, path: str, most_bytes: int) -> "Iterator[tuple[BinaryIO, int, str]]":
        for attempt in range(1, ATTEMPTS + 1):
            with self.storage.unnamed_file() as local:
                try:
                    size, sha256 = self._receive(path, most_bytes, local)
                except VanishedError:
                    raise
                except SourceError:
                    if attempt == ATTEMPTS:
                        raise
                    self.sleep(_PAUSE_S * attempt)
                    continue
                local.seek(0)
                yield local, size, sha256
                return

    def _receive(self, path: str, most_bytes: int, local: BinaryIO) -> tuple[int, str]:
        digest, size = hashlib.sha256(), 0
        with self.source.chunks(path) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > most_bytes:
                    raise WrongContentError(
                        f"{self.source.name}/{path} has more than the {most_bytes:,} bytes that its manifest allows"
                    )
                digest.update(chunk)
                local.write(chunk)
        return size, digest.hexdigest()


@contextmanager
def _threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Provide threads that start no further work after an error."""
    threads = ThreadPoolExecutor(count, "mirror")
    try:
        yield threads
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def _await(copies: Collection[Future[None]]) -> None:
    """Wait until all of these have ended, or raise the first error."""
    wait(copies, return_when=FIRST_EXCEPTION)
    failures = [error for copy in copies if copy.done() and (error := copy.exception())]
    # an error that rejects the source matters more than an error that may pass
    for error in sorted(failures, key=lambda error: not isinstance(error, RefusedSourceError)):
        raise error


def check_segment(local: BinaryIO, segment: Segment, name: str) -> None:
    """Raise WrongContentError if a compressed segment does not match its manifest, or has an invalid or misplaced line.

    The lines are checked here, since readers of the mirror receive them unchanged. Only one record is in memory at a
    time.
    """
    digest, size, records = hashlib.sha256(), 0, 0
    place = (segment.serials.start, 0)
    longest = min(segment.content_bytes + 1, MOST_LINE_BYTES)
    try:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES)
        with decompressor.stream_reader(local, read_across_frames=True, closefd=False) as reader:
            lines = io.BufferedReader(reader, READ_BUFFER_BYTES)
            while size <= segment.content_bytes and (line := lines.readline(longest)):
                digest.update(line)
                size += len(line)
                records += 1
                problem, place = next_place(segment, place, line)
                if problem is not None:
                    raise WrongContentError(f"{name}, record {records}: {problem}")
                if len(line) > MOST_RECORD_VALUES and sum(map(line.count, (b",", b"[", b"{"))) > MOST_RECORD_VALUES:
                    raise WrongContentError(f"{name}, record {records}: it has more than {MOST_RECORD_VALUES:,} values")
                orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise WrongContentError(f"{name}, record {records}: it is not JSON: {error}") from error
    except zstandard.ZstdError as error:
        raise WrongContentError(f"{name} is not a segment: {error}") from error
    if (size, records, digest.hexdigest()) != (segment.content_bytes, segment.records, segment.sha256):
        raise WrongContentError(f"{name} does not match its manifest: its records have another count, size or sha256")


def is_segment(stored: BinaryIO, segment: Segment) -> bool:
    """Check whether the stored file is the compressed segment."""
    try:
        check_segment(stored, segment, segment.name)
    except WrongContentError:
        return False
    return True


def _hash_of(storage: Storage, path: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    try:
        with storage.open(path) as stream:
            while chunk := stream.read(READ_BUFFER_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except ObjectNotFoundError:
        return "", -1
    return digest.hexdigest(), size
