"""Run readers in separate processes, so that a hostile file costs one record and not the crawl.

A native crash, a hang or excessive memory use ends one process, which the next job replaces. The calling thread fetches
the bytes that the reader requests. The reader itself is contained and has no network, files or secrets.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar, cast

import msgspec

from pypi_assets.characters import printable
from pypi_assets.distributions.containment.layers import MissingLayer
from pypi_assets.distributions.extract import ServedMetadata, encode_extract
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import READER_MEMORY_BYTES, ReadLimits
from pypi_assets.distributions.reader import read_distribution
from pypi_assets.distributions.reader_process import (
    TIMER_GRACE_S,
    Abandon,
    Abandoned,
    AllRead,
    AmendJob,
    Channel,
    Data,
    Extracted,
    FileRead,
    Finished,
    FromReader,
    Judged,
    JudgeJob,
    MachineFailure,
    Message,
    Mismatch,
    ReadAllJob,
    ReaderSetup,
    ReadFailed,
    ReadJob,
    Ready,
    StoredExtract,
    WholeFile,
)
from pypi_assets.distributions.record import READABLE_KINDS, DistributionKind, DistributionRecord, ErrorKind, ReadError
from pypi_assets.distributions.served_sources import answer_from, as_ranges, end_of
from pypi_assets.distributions.sources import MismatchError, RangeSource, RangeSourceError
from pypi_assets.errors import ExpectedError

__all__ = [
    "INHERITED",
    "FinishedReading",
    "ReaderFailure",
    "ReaderPool",
    "ReaderStartError",
    "StoredExtract",
    "UncontainedReaderError",
    "WholeFile",
]

READER_PROGRAM = "pypi_assets.distributions.reader_process"
GRACE_S = 5.0
"""How long a reader may be silent beyond twice its processor time, since machines are busy."""
START_S = 60.0
"""The time in which a reader must start."""
PATIENCE_S = 0.1
"""How long a call waits for a busy reader before it starts another one. Starting one takes about as long."""
TOGETHER_S = 0.1
"""How long a reader makes records before it sends them together."""
TOGETHER_PROCESSOR_S = 2.0
TOGETHER_SHARE = 1 / 16
"""The processor time for each of several files, as seconds and as a share of the time for a single file.

A file that takes longer is read alone afterwards, when it is known which file took too long.
"""
_CPUCLOCK_SCHED = 2
"""The kernel's number for the clock of a process, as `clock_getcpuclockid` encodes it."""
_Answer = TypeVar("_Answer", AllRead, Judged)
INHERITED = frozenset(
    {
        *("PATH", "LANG", "LC_ALL", "LC_CTYPE"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH"),
        *("PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
    }
)
"""The environment variables that a reader gets: those that Python needs to start and to find its libraries."""


class ReaderStartError(ExpectedError):
    """A reader process did not start. The cause is this machine and not a file."""


class UncontainedReaderError(ReaderStartError):
    """This machine cannot contain a reader as the settings require. The message names the missing layers."""


@dataclass(frozen=True, slots=True)
class FinishedReading:
    """A record and its extract, encoded by `encode_extract`.

    If the reader failed, the record has only that error, and the extract is None unless the reader sent it before.
    `died` is True if the process was killed, crashed or fell silent, which can happen for harmless files, too. It is
    False if the process was ended because the file took too much processor time: another reader would take as long.
    `metadata_sha256` is the hash of a wheel's METADATA.
    """

    record: DistributionRecord
    extract: bytes | None
    died: bool = False
    metadata_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class ReaderFailure:
    """The reason why an extract has no record: its reader died, hung or failed."""

    kind: ErrorKind
    text: str


class ReaderPool:
    """A pool of at most `size` reader processes, started when needed and reused. It is thread-safe.

    A call has a process to itself until it returns, even while it waits for its source. Only the end of a zip is
    fetched before. So `size` should be the number of threads that read from a network. A new process is started only
    for a call that would have to wait. With `must_contain`, each call raises UncontainedReaderError if this system
    cannot contain readers.
    """

    def __init__(self, limits: ReadLimits, *, size: int, must_contain: bool = False) -> None:
        self.limits = limits
        self._size = size
        self._must_contain = must_contain
        self._changed = threading.Condition()
        self._closed = False
        self._is_starting = False
        self._last_start_at = 0.0
        self._started = 0
        # The process used last is taken first.
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
        """Read the distribution in `source` from its start, as `read_distribution` does without hashing.

        `kind` is the kind of its filename, if the caller has parsed it already. A file that makes its reader die, hang
        or fail leads to a record with that error, and to an extract if one was taken out before. If the reader died,
        this needs `extract_first`, which costs one more message.

        Errors of the source are raised unchanged, and so is MismatchError. Only the needed parts of a seekable wheel,
        egg or zip are read. Any other source is a stream that is read only as far as the reader needs, so a caller that
        hashes it must read the rest. Raise ReaderStartError, and OSError if this machine fails the reader, for example
        without space for memory files.
        """
        kind = kind or parse_filename(filename, project).kind
        if kind not in READABLE_KINDS:  # no byte of it is read, and such a name cannot always be sent
            reading = read_distribution(source, filename, project=project, limits=self.limits, hash_content=False)
            return FinishedReading(reading.record, encode_extract(reading.extract))
        served = as_ranges(source, filename, kind)
        job = ReadJob(filename, project, extract_first)
        if served is not None:
            job = ReadJob(filename, project, extract_first, served.size, served.metadata_sha256, end_of(served))
        with self._borrowed() as worker:
            return worker.read(job, cast("BinaryIO", source), served)

    def read_together(self, files: Sequence[WholeFile]) -> list[FinishedReading]:
        """Return the result of `read` for each file in order, in one exchange with one process.

        This is cheaper for small files. A file that fails a reader, or that is left unread when it dies, is read again
        alone. Raise the same errors as `read`.
        """
        if not files:
            return []
        results: list[FileRead | ReadFailed] = []
        with self._borrowed() as worker, contextlib.suppress(_ReaderDiedError):
            job = ReadAllJob(list(files), TOGETHER_S, self._together_s())
            for answer in worker.answers(job, len(files), AllRead):
                results += answer.results
        return [
            FinishedReading(result.record, result.extract, metadata_sha256=result.metadata_sha256)
            if isinstance(result, FileRead)
            else self.read(io.BytesIO(file.content), file.filename, project=file.project)
            for file, result in zip_longest(files, results)
        ]

    def amend(self, extract: StoredExtract, served: ServedMetadata) -> FinishedReading:
        """Return the new record and extract of a file that was read before, with metadata that the index serves for it.

        If the reader dies, a second one tries again. Raise ReaderStartError.
        """
        job = AmendJob(extract, served, self.limits.seconds + TIMER_GRACE_S)
        result: FileRead | ReadFailed | None = None
        deaths: list[_ReaderDiedError] = []
        while result is None:
            with self._borrowed() as worker:
                try:
                    [result] = [result for answer in worker.answers(job, 1, AllRead) for result in answer.results]
                except _ReaderDiedError as died:
                    deaths.append(died)
                    if died.took_too_long or len(deaths) > 1:
                        result = ReadFailed(died.kind, died.text, is_last=True)
        if isinstance(result, FileRead):
            return FinishedReading(result.record, result.extract)
        record = _failed_record(extract.filename, extract.project, result.kind, result.text)
        return FinishedReading(record, extract.content)

    def judge(self, extracts: Sequence[StoredExtract]) -> list[DistributionRecord | ReaderFailure | None]:
        """Return the record of each extract in order, as `make_record` makes it, or None if it has the given digest.

        An extract that makes its reader die, hang or fail leads to a ReaderFailure and does not affect the others. A
        reader sends several records at a time. If it dies, the unsent ones are made again and sent one by one. If a
        reader then dies again, the first extract without a record was the cause. Raise ReaderStartError.
        """
        records: list[DistributionRecord | ReaderFailure | None] = []
        together_s = TOGETHER_S
        while len(records) < len(extracts):
            with self._borrowed() as worker:
                try:
                    left = list(extracts[len(records) :])
                    processor_s = self._together_s() if together_s else self.limits.seconds + TIMER_GRACE_S
                    for answer in worker.answers(JudgeJob(left, together_s, processor_s), len(left), Judged):
                        records += [
                            ReaderFailure(result.kind, result.text) if isinstance(result, ReadFailed) else result
                            for result in answer.results
                        ]
                except _ReaderDiedError as died:
                    if together_s == 0:
                        records.append(ReaderFailure(died.kind, died.text))
                    together_s = TOGETHER_S if together_s == 0 else 0
        return records

    def close(self) -> None:
        """End the idle processes at once, and busy ones as soon as their call returns."""
        with self._changed:
            self._closed = True
            self._started -= len(self._idle)
            for worker in self._idle:
                worker.end()
            self._idle.clear()
            self._changed.notify_all()

    def _together_s(self) -> float:
        return min(TOGETHER_PROCESSOR_S, self.limits.seconds * TOGETHER_SHARE)

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
        """Return an idle process, or None if the caller has to start one. Only one thread starts one at a time."""
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
            worker = _Worker(self.limits, must_contain=self._must_contain)
        finally:
            with self._changed:
                self._is_starting = False
                self._last_start_at = time.monotonic()
                self._started += worker is not None
                self._changed.notify_all()
        return worker


class _ReaderDiedError(Exception):
    """The reader process died or had to be killed. `kind` and `text` are the error for the record.

    `took_too_long` is True if it was ended because of its processor time.
    """

    def __init__(self, kind: ErrorKind, text: str, *, took_too_long: bool = False) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.took_too_long = took_too_long


class _Worker:
    """A reader process and the channel to it, for one thread at a time. Its creator must call `end`."""

    def __init__(self, limits: ReadLimits, *, must_contain: bool) -> None:
        """Start the process. Raise ReaderStartError if that fails."""
        self.has_job = False
        self.is_ending = False
        self._limits = limits
        self._used_before_s = 0.0
        self._silence_s = limits.seconds * 2 + GRACE_S
        ours, theirs = socket.socketpair()
        self._channel: Channel[FromReader] = Channel(ours, msgspec.msgpack.Decoder(FromReader))
        with theirs:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our own module
                    [sys.executable, "-P", "-m", READER_PROGRAM],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=_environment(),
                    process_group=0,  # Ctrl-C is for the parent, even before the child can ignore it
                )
            except OSError as error:
                self._channel.close()
                raise ReaderStartError(f"cannot start a reader process: {error}") from error
        try:
            self._channel.set_timeout(START_S)
            self.send(ReaderSetup(limits, self._silence_s, READER_MEMORY_BYTES))
            if not isinstance(message := self.receive(), Ready):
                raise self.misbehaved(message)
            if must_contain:
                _require(message.missing)
            self._channel.set_timeout(self._silence_s)
        except _ReaderDiedError as died:
            self.end()
            raise ReaderStartError(f"a reader process did not start: {died}; its stderr may show the cause") from died
        except BaseException:
            self.end()
            raise

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def read(self, job: ReadJob, stream: BinaryIO, ranges: RangeSource | None) -> FinishedReading:
        """Return the record of the file in `stream` or `ranges`, and answer the requests of the reader meanwhile.

        Raise MismatchError, and OSError of the source or of this machine.
        """
        extract = None
        try:
            self.start_job(job)
            while True:
                message = self.receive()
                if isinstance(message, Extracted):
                    extract = message.content
                elif (finished := self._end_of(message, job)) is not None:
                    return FinishedReading(finished.record, extract, metadata_sha256=finished.metadata_sha256)
                else:
                    self._answer(message, stream, ranges)
        except _ReaderDiedError as died:
            record = _failed_record(job.filename, job.project, died.kind, died.text)
            return FinishedReading(record, extract, died=not died.took_too_long)
        except RangeSourceError as error:
            raise error.error from None

    def _end_of(self, message: FromReader, job: ReadJob) -> Finished | None:
        """Return the record if `message` ends the job, or None if the job continues. Raise if there is no record."""
        match message:
            case Finished():
                self.finish_job()
                return message
            case ReadFailed(kind=kind, text=text, is_last=is_last):
                self.finish_job(is_last=is_last)
                return Finished(_failed_record(job.filename, job.project, kind, text))
            case Mismatch(text=text):
                self.finish_job()
                raise MismatchError(text)
            case MachineFailure(number=number, text=text):
                self.finish_job()
                raise OSError(number, text)
        return None

    def _answer(self, message: FromReader, stream: BinaryIO, ranges: RangeSource | None) -> None:
        """Send the bytes that the reader requests. If the source fails, the job is abandoned."""
        fetch = answer_from(stream, ranges, message)
        if fetch is None:
            raise self.misbehaved(message)
        if self._used_s() > self._limits.seconds + 2 * TIMER_GRACE_S:  # it has outlived its own timer
            raise self._too_slow(took_too_long=True)
        try:
            content = fetch()
        except BaseException:
            self.abandon_job()
            raise
        self.send(Data(content))

    def answers(self, job: ReadAllJob | JudgeJob | AmendJob, count: int, kind: type[_Answer]) -> Iterator[_Answer]:
        """Yield the results of the `count` items of `job` as they arrive. There are fewer if the reader has to end."""
        self.start_job(job)
        while self.has_job:
            message = self.receive()
            if not isinstance(message, kind) or len(message.results) > count:
                raise self.misbehaved(message)
            count -= len(message.results)
            last = message.results[-1]
            is_last = isinstance(last, ReadFailed) and last.is_last
            if is_last or not count:
                self.finish_job(is_last=is_last)
            yield message

    def start_job(self, job: ReadJob | ReadAllJob | JudgeJob | AmendJob) -> None:
        self.has_job = True
        self._used_before_s = self._processor_s()
        self.send(job)

    def finish_job(self, *, is_last: bool = False) -> None:
        self.has_job = False
        self.is_ending = is_last

    def abandon_job(self) -> None:
        """Make the reader ready for another job while it waits for bytes. If that fails, the job stays assigned."""
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
        """Kill and reap the process. It has no state that could be lost."""
        self._channel.close()
        self._process.kill()
        self._process.wait()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:  # a busy machine can be the cause, unless the reader worked all the time
            raise self._too_slow(took_too_long=self._used_s() > self._limits.seconds) from None
        except (EOFError, OSError):
            raise self._death() from None
        except msgspec.DecodeError as error:
            raise self.misbehaved(error) from None

    def _used_s(self) -> float:
        """Return the processor time of the job in seconds, as the kernel counts it."""
        return self._processor_s() - self._used_before_s

    def _processor_s(self) -> float:
        """Return the processor time of the process since its start, or 0 on systems that do not show it."""
        if sys.platform != "linux":
            return 0.0
        return time.clock_gettime((~self._process.pid << 3) | _CPUCLOCK_SCHED)

    def _too_slow(self, *, took_too_long: bool) -> _ReaderDiedError:
        text = f"reading takes more than {self._limits.seconds:g} seconds"
        return _ReaderDiedError(ErrorKind.LIMIT_EXCEEDED, text, took_too_long=took_too_long)

    def _death(self) -> _ReaderDiedError:
        try:
            status = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return _ReaderDiedError(ErrorKind.READER_FAILURE, "the reader closed its channel")
        if status in {-signal.SIGPROF, -signal.SIGXCPU}:
            return self._too_slow(took_too_long=True)
        names = {-number: f"signal {number.name}" for number in signal.Signals}
        return _ReaderDiedError(
            ErrorKind.READER_FAILURE, f"the reader died: {names.get(status, f'exit status {status}')}"
        )


def _require(missing: Sequence[MissingLayer]) -> None:
    """Raise UncontainedReaderError if a layer is missing that no other layer replaces."""
    if needed := [str(layer) for layer in missing if layer.is_needed]:
        raise UncontainedReaderError(
            f"PYPI_ASSETS_CONTAINMENT=required, but this system cannot contain a reader: {'; '.join(needed)}."
            " Set PYPI_ASSETS_CONTAINMENT=auto to read with the layers that the system has"
        )


def _failed_record(filename: str, project: str | None, kind: ErrorKind, text: str) -> DistributionRecord:
    """Return the record of a file of which only the name is known."""
    parts = parse_filename(filename, project)
    error = ReadError(kind, printable(text))
    return DistributionRecord(filename, parts.kind, parts.project or project, parts.version, error=error)


def _environment() -> dict[str, str]:
    """Return the variables that Python needs to find the same modules as this process, without possible secrets."""
    kept = {name: value for name, value in os.environ.items() if name in INHERITED}
    return kept | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
