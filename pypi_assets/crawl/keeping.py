"""Keeps the bytes of files for scopes, while files are read, and for files that were read before.

Room is reserved before a file is fetched, so a file without room is not fetched whole. `keeping/` writes the bytes.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, TypeVar, cast

from pypi_assets.catalog.reads.kept_files import FileToKeep, KeptObject, keeps_any, wanted_among
from pypi_assets.catalog.reads.kept_lists import MissingFile, missing_files, missing_ids
from pypi_assets.catalog.work.read_queue import PendingRead
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.draining import drain
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.keeping.keeper import FileKeeper
from pypi_assets.keeping.objects import BLOCK_BYTES, CopyingStream, ReceivedFile
from pypi_assets.progress import Progress

_T = TypeVar("_T")
_MOST_UNRESERVED = 32
"""The number of local files at which received files without a reservation are stored."""
_IDS_AT_ONCE = 200


class ReadKeeping:
    """Keeps the bytes of files that are being read, if a scope wants them.

    `reserve`, `finish` and `store_unreserved` are called by the thread that uses the catalog. `wants`, `keep` and
    `copy_while_read` are called by the threads that fetch. A file whose size or hash is not known before it is fetched
    is received first, and reserved afterwards.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._keeper = FileKeeper(crawler.catalog, crawler.storage)
        self._reserved: dict[int, KeptObject] = {}
        self._unreserved: set[int] = set()
        self._written: dict[int, bytes] = {}
        self._received: dict[int, ReceivedFile] = {}
        self._failures: list[OSError] = []
        self._using = threading.Lock()

    def reserve(self, reads: Sequence[PendingRead]) -> None:
        """Reserve room for those of these reads that a scope wants."""
        if not reads:
            return
        with self._crawler.catalog.read() as connection:
            if not keeps_any(connection):
                return
            wanted = wanted_among(connection, [read.distribution_id for read in reads])
        most = self._crawler.readers.limits.max_file_bytes
        files = []
        for read in reads:
            if read.distribution_id in wanted and read.sha256 is not None and read.size is not None:
                if read.size <= most:
                    files.append(FileToKeep(read.distribution_id, read.sha256.lower(), read.size))
            elif read.distribution_id in wanted:
                self._unreserved.add(read.distribution_id)
        if files:
            self._reserved |= self._keeper.reserve(files)

    def wants(self, read: PendingRead) -> bool:
        """Check whether all bytes of the file are needed."""
        return read.distribution_id in self._reserved or read.distribution_id in self._unreserved

    def keep(self, read: PendingRead, content: BinaryIO) -> None:
        """Keep the file, whose bytes were checked."""
        if not self.wants(read):
            return
        received = self._new()
        if received is None:
            return
        try:
            received.read_from(content)
        except OSError as error:
            received.close()
            self._failures.append(error)
            return
        self._take(read, received)

    def copy_while_read(self, read: PendingRead, have_read: Callable[[BinaryIO], _T], stream: BinaryIO) -> _T:
        """Return the result of `have_read` for a stream, and keep all bytes of the stream.

        The stream raises an error at its end if its bytes are not the file's. They are not kept then.
        """
        received = self._new() if self.wants(read) else None
        if received is None:
            return have_read(stream)
        copy = CopyingStream(stream, received)
        try:
            result = have_read(cast("BinaryIO", copy))
            copy.drain()
        except BaseException:
            received.close()
            raise
        if copy.failure is not None:
            received.close()
            self._failures.append(copy.failure)
        else:
            self._take(read, received)
        return result

    @property
    def is_full(self) -> bool:
        """Check whether so many files wait for a reservation that they should be stored now."""
        return len(self._received) >= _MOST_UNRESERVED

    def finish(self, distribution_ids: Iterable[int]) -> None:
        """Record the files of these reads that were kept, and give up the others."""
        ids = [id_ for id_ in distribution_ids if id_ in self._reserved]
        with self._using:
            reserved = {id_: self._reserved.pop(id_) for id_ in ids}
            written = {id_: self._written.pop(id_) for id_ in ids if id_ in self._written}
        self._keeper.finish({reserved[id_]: blocks for id_, blocks in written.items()})
        self._keeper.abandon(one for id_, one in reserved.items() if id_ not in written)
        if self._failures:
            self._crawler.notify(f"{len(self._failures)} files could not be kept: {self._failures[-1]}")
            self._failures.clear()

    def store_unreserved(self) -> None:
        """Reserve and store the files that were received without a reservation. Their hashes are in the catalog."""
        with self._using:
            received, self._received = self._received, {}
        self._unreserved -= received.keys()
        try:
            files = [FileToKeep(id_, one.sha256, one.size) for id_, one in received.items()]
            reserved = self._keeper.reserve(files) if files else {}
            for id_, one in reserved.items():
                received[id_].store(one)
            self._keeper.finish({one: received[id_].blocks for id_, one in reserved.items()})
        finally:
            for left in received.values():
                left.close()

    def close(self) -> None:
        """Give up what is not finished."""
        for left in self._received.values():
            left.close()
        self._keeper.abandon(self._reserved.values())
        self._reserved.clear()

    def _new(self) -> ReceivedFile | None:
        try:
            return ReceivedFile(self._crawler.storage)
        except OSError as error:
            self._failures.append(error)
            return None

    def _take(self, read: PendingRead, received: ReceivedFile) -> None:
        """Write the object of a reserved file, or leave the file to `store_unreserved`."""
        id_ = read.distribution_id
        one = self._reserved.get(id_)
        if one is not None:
            with_bytes = received.store(one)
            received.close()
            if with_bytes:
                with self._using:
                    self._written[id_] = received.blocks
            return
        with self._using:
            former = self._received.pop(id_, None)
            self._received[id_] = received
        if former is not None:
            former.close()


@dataclass(frozen=True, slots=True)
class KeptCounts:
    """The files that a run has fetched again to keep them, their bytes, and the files that could not be fetched."""

    files: int = 0
    bytes: int = 0
    failed: int = 0


def keep_missing_files(crawler: Crawler, scope_id: int) -> KeptCounts:
    """Fetch the files of a scope that are on the index and whose bytes are not kept, as far as the budget has room.

    These files were read before the scope kept files, or could not be kept when they were read.
    """
    with crawler.catalog.read() as connection:
        ids = missing_ids(connection, scope_id) if keeps_any(connection) else []
    if not ids:
        return KeptCounts()
    work = _MissingFiles(crawler, ids)
    try:
        drain(crawler, work)
    finally:
        work.close()
    return work.counts


@dataclass(frozen=True, slots=True)
class _FetchedFile:
    """A fetched file: the hashes of its blocks if it is stored already, or the received bytes, or the error."""

    blocks: bytes | None = None
    received: ReceivedFile | None = None
    error: Exception | None = None


class _MissingFiles:
    """The queue of missing files, in the form that `drain` works on."""

    def __init__(self, crawler: Crawler, ids: list[int]) -> None:
        self._crawler = crawler
        self._keeper = FileKeeper(crawler.catalog, crawler.storage)
        self._left, self._total = ids, len(ids)
        self._reserved: dict[int, KeptObject] = {}
        self.counts = KeptCounts()

    def claim(self, limit: int) -> list[list[MissingFile]]:
        found: list[list[MissingFile]] = []
        most = self._crawler.readers.limits.max_file_bytes
        while self._left and not found and limit > 0:
            count = min(limit, _IDS_AT_ONCE)
            some, self._left = self._left[:count], self._left[count:]
            with self._crawler.catalog.read() as connection:
                files = [file for file in missing_files(connection, some) if (file.size or 0) <= most]
            known = [FileToKeep(one.distribution_id, one.sha256, one.size) for one in files if one.size is not None]
            new = self._keeper.reserve(known)
            self._reserved |= new
            found = [[file] for file in files if file.size is None or file.distribution_id in new]
        return found

    def do(self, bundle: Iterable[MissingFile]) -> list[_FetchedFile]:
        return [self._fetch(file) for file in bundle]

    def store(self, done: Sequence[tuple[MissingFile, _FetchedFile]]) -> None:
        reserved = {file: self._reserved.pop(file.distribution_id, None) for file, _ in done}
        late = [(file, one.received) for file, one in done if one.received is not None]
        try:
            files = [FileToKeep(file.distribution_id, received.sha256, received.size) for file, received in late]
            new = self._keeper.reserve(files)
            written: dict[KeptObject, bytes] = {}
            for file, received in late:
                if (one := new.get(file.distribution_id)) is not None and received.store(one):
                    written[one] = received.blocks
        finally:
            for _, received in late:
                received.close()
        written |= {one: got.blocks for file, got in done if (one := reserved[file]) and got.blocks is not None}
        kept = self._keeper.finish(written)
        self._keeper.abandon(one for one in (*reserved.values(), *new.values()) if one and one not in written)
        failed = [got.error for _, got in done if got.error is not None]
        before = self.counts
        self.counts = KeptCounts(
            before.files + len(kept), before.bytes + sum(one.size for one in kept), before.failed + len(failed)
        )
        if failed:
            self._crawler.notify(
                f"{len(failed)} files could not be kept, and are tried again by the next run: {failed[-1]}"
            )
        self.report()

    def is_enough(self, done: Sequence[tuple[MissingFile, _FetchedFile]]) -> bool:
        return len(done) >= _MOST_UNRESERVED

    def report(self, wait_s: float = 0.0) -> None:
        done = self._total - len(self._left) - len(self._reserved)
        self._crawler.report(Progress("kept files", done, self._total, self.counts.failed, wait_s))

    def ready_at(self) -> float | None:
        return None

    def close(self) -> None:
        """Give up the files that were reserved and not stored."""
        self._keeper.abandon(self._reserved.values())

    def _fetch(self, file: MissingFile) -> _FetchedFile:
        try:
            received, _ = self._crawler.index.stream_file(
                file.url,
                partial(_receive, self._crawler),
                sha256=file.sha256,
                size=file.size,
                max_bytes=self._crawler.readers.limits.max_file_bytes,
            )
        except (PackageIndexError, OSError) as error:
            return _FetchedFile(error=error)
        one = self._reserved.get(file.distribution_id)
        if one is None:
            return _FetchedFile(received=received)
        is_stored = received.store(one)
        received.close()
        return (
            _FetchedFile(blocks=received.blocks)
            if is_stored
            else _FetchedFile(error=OSError("its bytes are not its own"))
        )


def _receive(crawler: Crawler, stream: BinaryIO) -> ReceivedFile:
    received = ReceivedFile(crawler.storage)
    try:
        while chunk := stream.read(BLOCK_BYTES):
            received.write(chunk)
    except BaseException:
        received.close()
        raise
    return received
