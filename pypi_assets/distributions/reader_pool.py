"""Readers in processes of their own: a hostile file costs one record, and no crawl.

A native crash, a hang or a memory blow-up ends one process, which the next job replaces. The calling
thread fetches the bytes that the reader requests: the reader itself has neither network nor secrets.
"""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar, cast

import msgspec

from pypi_assets.distributions.extract import encode_extract, printable
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import READER_MEMORY_BYTES, Limits
from pypi_assets.distributions.reader import read_distribution
from pypi_assets.distributions.reader_process import (
    Abandon,
    Abandoned,
    AllRead,
    BytesAt,
    Channel,
    Data,
    Extracted,
    Failed,
    Finished,
    FromReader,
    Judged,
    JudgeJob,
    MachineFailure,
    Message,
    Mismatch,
    NextBytes,
    Read,
    ReadAllJob,
    ReadJob,
    Ready,
    Setup,
    Sidecar,
    StoredExtract,
    WholeFile,
)
from pypi_assets.distributions.record import READABLE_KINDS, DistributionKind, DistributionRecord, ErrorKind, ReadError
from pypi_assets.distributions.sources import FileSource, MismatchError, RangeSource, SourceError, is_range_source
from pypi_assets.distributions.zips import first_read_at
from pypi_assets.errors import ExpectedError

__all__ = ["FinishedReading", "ReaderFailure", "ReaderPool", "ReaderStartError", "StoredExtract", "WholeFile"]

READER_PROGRAM = "pypi_assets.distributions.reader_process"
GRACE_S = 5.0
"""How long a reader may be silent beyond twice its processor time, since machines are busy."""
START_S = 60.0
"""How long a reader may take to start."""
PATIENCE_S = 0.1
"""How long a call waits for a reader that is at work before it starts another, which costs as much."""
TOGETHER_S = 0.1
"""How long a reader may make records before it sends them together."""
_Answer = TypeVar("_Answer", AllRead, Judged)
_INHERITED = ("DYLD_", "LANG", "LC_", "LD_", "PATH", "PYTHON", "TEMP", "TMP")


class ReaderStartError(ExpectedError):
    """A reader process did not start. The cause is this machine, and no file."""


@dataclass(frozen=True, slots=True)
class FinishedReading:
    """A record and its extract, encoded by `encode_extract`.

    Where the reader failed, the record holds that error alone, and the extract is None unless the reader got that far.
    `died` where its process was killed, crashed or fell silent, as also happens to readers of innocent files.
    """

    record: DistributionRecord
    extract: bytes | None
    died: bool = False


@dataclass(frozen=True, slots=True)
class ReaderFailure:
    """Why there is no record of an extract: its reader died, hung or failed."""

    kind: ErrorKind
    text: str


class ReaderPool:
    """At most `size` reader processes, started as threads need them and used again. Any thread may call at any time.

    A call has a process to itself until it returns, also while it waits for its source, unless that is the end of a
    zip, which is fetched before: so `size` is best the number of threads that read from a network, of which processes
    are started for those that have to wait.
    """

    def __init__(self, limits: Limits, *, size: int) -> None:
        self.limits = limits
        self._size = size
        self._changed = threading.Condition()
        self._closed = False
        self._is_starting = False
        self._last_start_at = 0.0
        self._started = 0
        # The one used last is taken first.
        self._idle: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def read(
        self,
        source: BinaryIO | RangeSource,
        filename: str,
        *,
        project: str | None = None,
        kind: DistributionKind | None = None,
        extract_first: bool = False,
    ) -> FinishedReading:
        """Reads the distribution in `source`, which is at its start, as `read_distribution` does without hashing.

        `kind` is that of its filename, where the caller has parsed it already.
        A file that makes its reader die, hang or fail has a record with that error, and an extract where one was
        taken out; where the reader died, only with `extract_first`, which costs a message more. What the source
        itself raises comes up unchanged, and so does MismatchError. A seekable wheel, egg or zip is read where it must
        be; anything else is a stream of which no more is read than the reader needs, so that who hashes it reads the
        rest. Raises ReaderStartError, and OSError where this machine fails the reader (no space for temporary files).
        """
        kind = kind or parse_filename(filename, project).kind
        if kind not in READABLE_KINDS:  # of which not a byte is read; nor can such a name always be sent
            reading = read_distribution(source, filename, project=project, limits=self.limits, hash_content=False)
            return FinishedReading(reading.record, encode_extract(reading.extract))
        served = _as_ranges(source, kind)
        job = ReadJob(filename, project, extract_first)
        if served is not None:
            job = ReadJob(filename, project, extract_first, served.size, served.metadata_sha256, _end_of(served))
        with self._borrowed() as worker:
            return worker.read(job, cast("BinaryIO", source), served)

    def read_together(self, files: Sequence[WholeFile]) -> list[FinishedReading]:
        """What `read` gives of each file, in their order, in one exchange with one process: small ones cost less so.

        Those that fail a reader, or that it leaves unread when it dies, are read again, each alone. Raises as `read`.
        """
        if not files:
            return []
        results: list[Read | Failed] = []
        with self._borrowed() as worker, contextlib.suppress(_ReaderDiedError):
            for answer in worker.answers(ReadAllJob(list(files), TOGETHER_S), len(files), AllRead):
                results += answer.results
        return [
            FinishedReading(result.record, result.extract)
            if isinstance(result, Read)
            else self.read(io.BytesIO(file.content), file.filename, project=file.project)
            for file, result in zip_longest(files, results)
        ]

    def judge(self, extracts: Sequence[StoredExtract]) -> list[DistributionRecord | ReaderFailure | None]:
        """The record of each extract, in their order, as `make_record` makes it; None where it has the given digest.

        An extract that makes its reader die, hang or fail has a ReaderFailure instead; the others have their records.
        Records are sent some at a time. So where the reader dies, those that it kept back are made again, each sent
        alone, and the one that is missing when a reader dies again was its death. Raises ReaderStartError.
        """
        records: list[DistributionRecord | ReaderFailure | None] = []
        together_s = TOGETHER_S
        while len(records) < len(extracts):
            with self._borrowed() as worker:
                try:
                    left = list(extracts[len(records) :])
                    for answer in worker.answers(JudgeJob(left, together_s), len(left), Judged):
                        records += [
                            ReaderFailure(result.kind, result.text) if isinstance(result, Failed) else result
                            for result in answer.results
                        ]
                except _ReaderDiedError as died:
                    if together_s == 0:
                        records.append(ReaderFailure(died.kind, died.text))
                    together_s = TOGETHER_S if together_s == 0 else 0
        return records

    def close(self) -> None:
        """Ends the processes, those that are at work as soon as their call returns."""
        with self._changed:
            self._closed = True
            self._started -= len(self._idle)
            for worker in self._idle:
                worker.end()
            self._idle.clear()
            self._changed.notify_all()

    @contextlib.contextmanager
    def _borrowed(self) -> "Iterator[_Worker]":
        worker = self._idle_one() or self._new_one()
        try:
            yield worker
        finally:
            with self._changed:
                if worker.has_job or worker.is_ending or self._closed:
                    worker.end()
                    self._started -= 1
                else:
                    self._idle.append(worker)
                self._changed.notify()

    def _idle_one(self) -> "_Worker | None":
        """A process that is free; None where the caller is to start one, as no other thread does until it has."""
        with self._changed:
            wanted_at = time.monotonic()
            while True:
                if self._closed:
                    raise RuntimeError("the reader pool is closed")
                while self._idle:
                    worker = self._idle.pop()
                    if worker.is_alive():
                        return worker
                    worker.end()
                    self._started -= 1
                patience_s = None
                if self._started < self._size and not self._is_starting:
                    patience_s = max(wanted_at, self._last_start_at) + PATIENCE_S - time.monotonic()
                    if not self._started or patience_s <= 0:
                        self._is_starting = True
                        return None
                self._changed.wait(patience_s)

    def _new_one(self) -> "_Worker":
        worker = None
        try:
            worker = _Worker(self.limits)
        finally:
            with self._changed:
                self._is_starting = False
                self._last_start_at = time.monotonic()
                self._started += worker is not None
                self._changed.notify_all()
        return worker


class _ReaderDiedError(Exception):
    """The reader process died or had to be killed; `kind` and `text` are the record's error."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class _Worker:
    """A reader process and the channel to it. Used by one thread at a time; whoever makes it must `end` it."""

    def __init__(self, limits: Limits) -> None:
        """Starts the process. Raises ReaderStartError."""
        self.has_job = False
        self.is_ending = False
        self._limits = limits
        silence_s = limits.seconds * 2 + GRACE_S
        ours, theirs = socket.socketpair()
        self._channel: Channel[FromReader] = Channel(ours, msgspec.msgpack.Decoder(FromReader))
        with theirs:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our own module
                    [sys.executable, "-P", "-m", READER_PROGRAM],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=_environment(),
                    process_group=0,  # Ctrl-C is for the parent, also before the child can ignore it
                )
            except OSError as error:
                self._channel.close()
                raise ReaderStartError(f"no reader process can be started: {error}") from error
        try:
            self._channel.set_timeout(START_S)
            self.send(Setup(limits, silence_s, READER_MEMORY_BYTES))
            if not isinstance(message := self.receive(), Ready):
                raise self.misbehaved(message)
            self._channel.set_timeout(silence_s)
        except _ReaderDiedError as died:
            self.end()
            raise ReaderStartError(f"a reader process did not start, its stderr may have the cause: {died}") from died
        except BaseException:
            self.end()
            raise

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def read(self, job: ReadJob, stream: BinaryIO, ranges: RangeSource | None) -> FinishedReading:
        """The record of the file in `stream`, or in `ranges` where that is a source; answers what the reader requests.

        Raises MismatchError, and OSError of the source or of this machine.
        """
        extract = None
        try:
            self.start_job(job)
            while True:
                message = self.receive()
                if isinstance(message, Extracted):
                    extract = message.content
                elif (record := self._record_in(message, job)) is not None:
                    return FinishedReading(record, extract)
                else:
                    self._answer(message, stream, ranges)
        except _ReaderDiedError as died:
            return FinishedReading(_failed_record(job.filename, job.project, died.kind, died.text), extract, died=True)
        except SourceError as error:
            raise error.error from None

    def _record_in(self, message: FromReader, job: ReadJob) -> DistributionRecord | None:
        """The record, where `message` ends the job; raises where that ends without one; None where it goes on."""
        match message:
            case Finished(record=record):
                self.finish_job()
                return record
            case Failed(kind=kind, text=text, is_last=is_last):
                self.finish_job(is_last=is_last)
                return _failed_record(job.filename, job.project, kind, text)
            case Mismatch(text=text):
                self.finish_job()
                raise MismatchError(text)
            case MachineFailure(number=number, text=text):
                self.finish_job()
                raise OSError(number, text)
        return None

    def _answer(self, message: FromReader, stream: BinaryIO, ranges: RangeSource | None) -> None:
        """Sends the bytes that the reader requests. Where the source fails, the job is abandoned."""
        fetch = _answer_from(stream, ranges, message)
        if fetch is None:
            raise self.misbehaved(message)
        try:
            content = fetch()
        except BaseException:
            self.abandon_job()
            raise
        self.send(Data(content))

    def answers(self, job: ReadAllJob | JudgeJob, count: int, kind: type[_Answer]) -> Iterator[_Answer]:
        """What comes of the `count` items of `job`, as it comes; of fewer where the reader has to end."""
        self.start_job(job)
        while self.has_job:
            message = self.receive()
            if not isinstance(message, kind) or len(message.results) > count:
                raise self.misbehaved(message)
            count -= len(message.results)
            last = message.results[-1]
            is_last = isinstance(last, Failed) and last.is_last
            if is_last or not count:
                self.finish_job(is_last=is_last)
            yield message

    def start_job(self, job: ReadJob | ReadAllJob | JudgeJob) -> None:
        self.has_job = True
        self.send(job)

    def finish_job(self, *, is_last: bool = False) -> None:
        self.has_job = False
        self.is_ending = is_last

    def abandon_job(self) -> None:
        """Makes the reader ready for another job while it waits for bytes; where that fails, the job stays on."""
        with contextlib.suppress(_ReaderDiedError):
            self.send(Abandon())
            if isinstance(self.receive(), Abandoned):
                self.finish_job()

    def send(self, message: Message) -> None:
        with self._watched():
            self._channel.send(message)

    def receive(self) -> FromReader:
        with self._watched():
            return self._channel.receive()

    def misbehaved(self, what: object) -> "_ReaderDiedError":
        return _ReaderDiedError(ErrorKind.READER_FAILURE, f"the reader sent an unexpected message: {what!r:.100}")

    def end(self) -> None:
        """Kills and reaps the process, which has nothing that could be lost."""
        self._channel.close()
        self._process.kill()
        self._process.wait()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise self._too_slow() from None
        except (EOFError, OSError):
            raise self._death() from None
        except msgspec.DecodeError as error:
            raise self.misbehaved(error) from None

    def _too_slow(self) -> _ReaderDiedError:
        return _ReaderDiedError(ErrorKind.LIMIT_EXCEEDED, f"reading takes more than {self._limits.seconds:g} seconds")

    def _death(self) -> _ReaderDiedError:
        try:
            status = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return _ReaderDiedError(ErrorKind.READER_FAILURE, "the reader closed its channel")
        if status == -signal.SIGXCPU:
            return self._too_slow()
        names = {-number: f"signal {number.name}" for number in signal.Signals}
        return _ReaderDiedError(
            ErrorKind.READER_FAILURE, f"the reader died: {names.get(status, f'exit status {status}')}"
        )


def _failed_record(filename: str, project: str | None, kind: ErrorKind, text: str) -> DistributionRecord:
    """The record of a file of which nothing but its name is known."""
    parts = parse_filename(filename, project)
    error = ReadError(kind, printable(text))
    return DistributionRecord(filename, parts.kind, parts.project or project, parts.version, error=error)


def _as_ranges(source: BinaryIO | RangeSource, kind: DistributionKind) -> RangeSource | None:
    """`source` as a range source where it can be one; a zip is recognized by its first bytes, as in the reader."""
    if is_range_source(source):
        return cast("RangeSource", source)
    file = cast("BinaryIO", source)
    if not file.seekable():
        return None
    if kind == DistributionKind.SDIST:
        start = file.read(4)
        file.seek(0)
        if not start.startswith(b"PK"):
            return None
    return FileSource(file)


def _end_of(ranges: RangeSource) -> bytes:
    """What is read of a zip first, which keeps no reader waiting: of most files it needs no more."""
    start = first_read_at(ranges.size)
    try:
        return ranges.read_at(start, ranges.size - start)
    except SourceError as error:
        raise error.error from None


def _answer_from(
    stream: BinaryIO, ranges: RangeSource | None, question: FromReader
) -> Callable[[], bytes | None] | None:
    """How to fetch what the reader requests; None where a source of this kind has no such part."""
    match question:
        case NextBytes(size=size) if ranges is None:
            return lambda: stream.read(size)
        case BytesAt(offset=offset, size=size) if ranges is not None:
            return lambda: ranges.read_at(offset, size)
        case Sidecar() if ranges is not None:
            return ranges.sidecar
        case _:
            return None


def _environment() -> dict[str, str]:
    """What Python needs to find the same modules as here, and nothing that may be secret."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_INHERITED)}
    return kept | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
