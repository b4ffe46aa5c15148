"""Run a reader process, and define the messages between it and its parent.

`reader_pool.py` runs this module as a program and owns the other end of the socket, which is this process's stdin. All
input comes from there. The process is contained before its first job, because a hostile file may take over a
decompressor (see `containment/`). For the same reason, messages are msgpack of known types in both directions.
"""

import codecs
import faulthandler
import gc
import io
import math
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, BinaryIO, Generic, TypeVar, cast

import msgspec

from pypi_assets.characters import printable
from pypi_assets.distributions.containment.layers import MissingLayer, contain
from pypi_assets.distributions.extract import Extract, ServedMetadata, decode_extract, encode_extract, load_codecs
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import MIB, ReadLimits
from pypi_assets.distributions.metadata import headers_of
from pypi_assets.distributions.reader import make_parsed_record, read_extract
from pypi_assets.distributions.record import DistributionRecord, ErrorKind, FilenameParts
from pypi_assets.distributions.record_building import record_digest
from pypi_assets.distributions.script_text import ENCODINGS
from pypi_assets.distributions.sdists import condense
from pypi_assets.distributions.sources import CHUNK, MismatchError
from pypi_assets.distributions.zips import first_read_at

MAX_MESSAGE_BYTES = 256 * MIB
"""More than the longest valid message, since stored files and member names have far lower limits."""
TIMER_GRACE_S = 0.25
"""How much longer the kernel waits, since a reader that notices the time limit itself keeps its findings."""
_LENGTH_BYTES = 4

Received = TypeVar("Received")
Item = TypeVar("Item")
Result = TypeVar("Result")
Size = Annotated[int, msgspec.Meta(ge=0, le=MAX_MESSAGE_BYTES)]


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A distribution with its whole content."""

    filename: str
    project: str | None
    content: bytes


@dataclass(frozen=True, slots=True)
class StoredExtract:
    """An extract as `encode_extract` wrote it, with the file that it came from.

    `digest` is the `record_digest` of the record that was made of it before.
    """

    filename: str
    project: str | None
    content: bytes
    digest: str | None = None


class Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The base of all messages."""


class ReaderSetup(Message, frozen=True):
    """Sent to the reader once: the limits of a file, the processor time of a job, and the memory of the process."""

    limits: ReadLimits
    processor_seconds: float
    memory_bytes: int


class ReadJob(Message, frozen=True):
    """Sent to the reader: read this file.

    A range source has a `size`, its `end` from `first_read_at` on, and maybe a `metadata_sha256`. A stream has none of
    them.

    The extract is returned together with the record. With `extract_first` it is also sent before, not yet condensed,
    since the reader may die while it condenses the extract and makes the record.
    """

    filename: str
    project: str | None
    extract_first: bool = False
    size: int | None = None
    metadata_sha256: str | None = None
    end: bytes = b""


class ReadAllJob(Message, frozen=True):
    """Sent to the reader: read these files, and send the results of `together_s` seconds together.

    A file that takes more than `processor_s` seconds of processor time ends the reader.
    """

    files: list[WholeFile]
    together_s: float
    processor_s: float


class JudgeJob(Message, frozen=True):
    """Sent to the reader: make the records of these extracts, and send the results of `together_s` seconds together.

    If `together_s` is 0, each result is sent alone. An extract that takes more than `processor_s` seconds of processor
    time ends the reader.
    """

    extracts: list[StoredExtract]
    together_s: float
    processor_s: float


class AmendJob(Message, frozen=True):
    """Sent to the reader: make the record of this file again, with the metadata that the index serves for it."""

    extract: StoredExtract
    served: ServedMetadata
    processor_s: float


class Data(Message, frozen=True):
    """Sent to the reader: the content that it requested, or None if there is no sidecar."""

    content: bytes | None


class Abandon(Message, frozen=True):
    """Sent to the reader instead of Data: the source failed, and the record is no longer needed."""


class Ready(Message, frozen=True):
    """Sent by the reader once: it has started and is contained, except for the layers that this system lacks."""

    missing: list[MissingLayer]


class NextBytes(Message, frozen=True):
    """Sent by the reader: it requests the next bytes of the stream, up to `size`."""

    size: Size


class BytesAt(Message, frozen=True):
    """Sent by the reader: it requests a part of the range source."""

    offset: Annotated[int, msgspec.Meta(ge=0)]
    size: Size


class Sidecar(Message, frozen=True):
    """Sent by the reader: it requests the sidecar of the range source."""


class Extracted(Message, frozen=True):
    """Sent by the reader: the extract of the file. The result of the record follows."""

    content: bytes


class Finished(Message, frozen=True):
    """Sent by the reader: the record, and the sha256 of a wheel's METADATA."""

    record: DistributionRecord
    metadata_sha256: str | None = None


class ReadFailed(Message, frozen=True):
    """Sent by the reader: it failed, and there is no record. The process ends after a message with `is_last`."""

    kind: ErrorKind
    text: str
    is_last: bool


class FileRead(Message, frozen=True):
    """The result for a file of a ReadAllJob: the record, its extract, and the sha256 of a wheel's METADATA."""

    record: DistributionRecord
    extract: bytes
    metadata_sha256: str | None = None


class AllRead(Message, frozen=True):
    """Sent by the reader: the results for the next files of a ReadAllJob."""

    results: Annotated[list[FileRead | ReadFailed], msgspec.Meta(min_length=1)]


class Judged(Message, frozen=True):
    """Sent by the reader: the results for the next extracts of a JudgeJob. None means that the digest is unchanged."""

    results: Annotated[list[DistributionRecord | ReadFailed | None], msgspec.Meta(min_length=1)]


class Mismatch(Message, frozen=True):
    """Sent by the reader: the job ended with a MismatchError."""

    text: str


class MachineFailure(Message, frozen=True):
    """Sent by the reader: the job ended with an OSError that this machine caused and not the file."""

    number: int
    text: str


class Abandoned(Message, frozen=True):
    """Sent by the reader: the job is abandoned, and it is ready for the next one."""


ToReader = ReaderSetup | ReadJob | ReadAllJob | JudgeJob | AmendJob | Data | Abandon
FromReader = (
    Ready
    | NextBytes
    | BytesAt
    | Sidecar
    | Extracted
    | Finished
    | AllRead
    | Judged
    | ReadFailed
    | Mismatch
    | MachineFailure
    | Abandoned
)


class Channel(Generic[Received]):
    """Sends whole messages over a socket, each preceded by its length in four bytes. The channel owns the socket."""

    def __init__(self, connection: socket.socket, decoder: "msgspec.msgpack.Decoder[Received]") -> None:
        self._socket = connection
        self._incoming = connection.makefile("rb")
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = decoder

    def send(self, *messages: Message) -> None:
        """Send messages. Raise OSError if the other end is closed. An invalid message leaves the channel intact."""
        pieces = []
        for message in messages:
            content = self._encoder.encode(message)
            if len(content) > MAX_MESSAGE_BYTES:
                raise ValueError(f"message has {len(content)} bytes, at most {MAX_MESSAGE_BYTES} are allowed")
            pieces += [len(content).to_bytes(_LENGTH_BYTES), content]
        self._socket.sendall(b"".join(pieces))

    def receive(self) -> Received:
        """Return the next message. Raise EOFError at the end, OSError, and DecodeError if the message is invalid."""
        size = int.from_bytes(self._take(_LENGTH_BYTES))
        if size > MAX_MESSAGE_BYTES:
            raise msgspec.DecodeError(f"message has {size} bytes, at most {MAX_MESSAGE_BYTES} are allowed")
        return self._decoder.decode(self._take(size))

    def set_timeout(self, seconds: float) -> None:
        """Raise TimeoutError from now on if the other end neither sends nor receives anything for this time."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        self._incoming.close()
        self._socket.close()

    def _take(self, size: int) -> bytes:
        data = self._incoming.read(size)
        if len(data) < size:
            raise EOFError("the other end of the channel is closed")
        return data


class _AbandonedError(BaseException):
    """The parent no longer needs the record.

    This is not an Exception, so that no reader mistakes it for an error in the file.
    """


def _request(channel: Channel[ToReader], question: Message) -> bytes | None:
    try:
        channel.send(question)
        answer = channel.receive()
    except (EOFError, OSError):  # readers take both for a corrupt archive
        raise SystemExit from None
    if isinstance(answer, Data):
        return answer.content
    raise _AbandonedError


class _ParentStream:
    """The parent's source as a file that can only be read forward."""

    def __init__(self, channel: Channel[ToReader]) -> None:
        self._channel = channel
        self._unread = b""

    def seekable(self) -> bool:
        return False

    def read(self, size: int) -> bytes:
        if not self._unread:
            self._unread = _request(self._channel, NextBytes(CHUNK)) or b""
        piece, self._unread = self._unread[:size], self._unread[size:]
        return piece


class _ParentRanges:
    """The parent's source as a range source. Its end came with the job."""

    def __init__(self, channel: Channel[ToReader], size: int, metadata_sha256: str | None, end: bytes) -> None:
        self._channel = channel
        self._end_at = first_read_at(size)
        self._end: bytes | None = end
        self.size = size
        self.metadata_sha256 = metadata_sha256

    def read_at(self, offset: int, size: int) -> bytes:
        if offset == self._end_at and self._end is not None:
            end, self._end = self._end, None
            return end
        return _request(self._channel, BytesAt(offset, size)) or b""

    def sidecar(self) -> bytes | None:
        return _request(self._channel, Sidecar())


def _read(
    channel: Channel[ToReader], job: ReadJob, parts: FilenameParts, limits: ReadLimits
) -> Extract | Mismatch | MachineFailure | Abandoned:
    source = (
        cast("BinaryIO", _ParentStream(channel))
        if job.size is None
        else _ParentRanges(channel, job.size, job.metadata_sha256, job.end)
    )
    try:
        return read_extract(source, parts, limits)
    except MismatchError as error:
        return Mismatch(str(error))
    except OSError as error:
        if error.errno is None:  # raised by a decompressor
            raise
        return MachineFailure(error.errno, error.strerror or "")
    except _AbandonedError:
        return Abandoned()


def _serve_read(channel: Channel[ToReader], job: ReadJob, limits: ReadLimits) -> None:
    kept: list[Message] = []

    def serve() -> None:
        parts = parse_filename(job.filename, job.project)
        extract = _read(channel, job, parts, limits)
        if isinstance(extract, Message):
            channel.send(extract)
            return
        if job.extract_first:
            channel.send(Extracted(encode_extract(extract)))
        try:
            condense(extract)
        finally:
            kept.append(Extracted(encode_extract(extract)))
        channel.send(*kept, Finished(make_parsed_record(extract, parts, job.project), extract.metadata_sha256))

    failed = _attempt(serve)
    if failed is not None:
        channel.send(*kept, failed)
        if failed.is_last:
            raise SystemExit


def _serve_each(
    channel: Channel[ToReader],
    items: Sequence[Item],
    work: Callable[[Item], Result],
    answer: Callable[[list[Result | ReadFailed]], Message],
    *,
    together_s: float,
    processor_s: float,
) -> None:
    """Send the results of `work` for each of `items`, several at a time. Each may take `processor_s` seconds."""
    results: list[Result | ReadFailed] = []
    for number, item in enumerate(items, 1):
        _limit_processor_time(processor_s)
        if not results:
            sent_at = time.monotonic()
        result = _attempt(partial(work, item))
        results.append(result)
        is_last = isinstance(result, ReadFailed) and result.is_last
        if is_last or number == len(items) or time.monotonic() - sent_at >= together_s:
            channel.send(answer(results))
            results = []
        if is_last:
            raise SystemExit


def _read_whole(limits: ReadLimits, file: WholeFile) -> FileRead:
    parts = parse_filename(file.filename, file.project)
    extract = read_extract(io.BytesIO(file.content), parts, limits)
    condense(extract)
    return FileRead(make_parsed_record(extract, parts, file.project), encode_extract(extract), extract.metadata_sha256)


def _amend(job: AmendJob) -> FileRead:
    stored, served = job.extract, job.served
    extract = decode_extract(stored.content)
    headers = None if served.content is None else headers_of(served.content)
    extract.served = ServedMetadata(headers, served.is_as_stated)
    record = make_parsed_record(extract, parse_filename(stored.filename, stored.project), stored.project)
    return FileRead(record, encode_extract(extract))


def _judge(stored: StoredExtract) -> DistributionRecord | None:
    parts = parse_filename(stored.filename, stored.project)
    record = make_parsed_record(decode_extract(stored.content), parts, stored.project)
    return None if record_digest(record) == stored.digest else record


def _attempt(work: Callable[[], Result]) -> Result | ReadFailed:
    """Return the result of `work`, or a ReadFailed if it raises."""
    try:
        return work()
    except MemoryError:
        kind, text = ErrorKind.LIMIT_EXCEEDED, "reading takes too much memory"
    except Exception as error:  # noqa: BLE001 - an error costs only the record of this file
        kind, text = ErrorKind.READER_FAILURE, f"the reader failed: {type(error).__name__}: {error}"
    # The memory behind the error is released only here. If it ran out, the process ends, so that the next file is not
    # affected.
    return ReadFailed(kind, printable(text), is_last=kind == ErrorKind.LIMIT_EXCEEDED)


def _limit_processor_time(seconds: float) -> None:
    """Have the kernel end the process after this processor time, even inside of native code or without a parent."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_job_time(seconds: float, until: int) -> int:
    """Set the same limit in whole seconds, in case the timer's signal is lost.

    `until` is the current limit in processor seconds of this process. Return the new limit.
    """
    if (wanted := math.ceil(time.process_time() + seconds)) != until:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    return wanted


def _load_all() -> None:
    """Load everything that Python would load on first use, since no file can be opened later."""
    load_codecs()
    for name in ("cp437", *ENCODINGS):
        codecs.lookup(name)
    codecs.decode(b"\\N{SPACE}", "unicode_escape")  # loads the names of characters


def _serve(channel: Channel[ToReader]) -> None:
    setup = channel.receive()
    if not isinstance(setup, ReaderSetup):
        raise TypeError(f"expected ReaderSetup, got {setup!r:.100}")
    limits = setup.limits
    missing = contain(setup.memory_bytes, limits.max_spooled_bytes)
    channel.send(Ready(missing))

    serve_each = partial(_serve_each, channel)
    limited_until = 0
    while True:
        job = channel.receive()
        limited_until = _limit_job_time(setup.processor_seconds, limited_until)
        match job:
            case ReadJob():
                _limit_processor_time(limits.seconds + TIMER_GRACE_S)
                _serve_read(channel, job, limits)
            case ReadAllJob(files=files, together_s=together_s, processor_s=processor_s):
                read = partial(_read_whole, limits)
                serve_each(files, read, AllRead, together_s=together_s, processor_s=processor_s)
            case JudgeJob(extracts=extracts, together_s=together_s, processor_s=processor_s):
                serve_each(extracts, _judge, Judged, together_s=together_s, processor_s=processor_s)
            case AmendJob(processor_s=processor_s):
                serve_each([job], _amend, AllRead, together_s=0, processor_s=processor_s)
            case message:
                raise TypeError(f"expected a job, got {message!r:.100}")


def main() -> None:
    """Serve the parent until it closes the socket or ends."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the parent receives them, too, and decides
        signal.signal(ignored, signal.SIG_IGN)
    for ends in (signal.SIGPROF, signal.SIGXCPU):  # even if the parent changed them
        signal.signal(ends, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    faulthandler.enable()
    sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)  # regardless of the environment
    _load_all()
    gc.freeze()  # objects that live as long as the process need no more collection
    channel: Channel[ToReader] = Channel(socket.socket(fileno=0), msgspec.msgpack.Decoder(ToReader))
    try:
        _serve(channel)
    except (EOFError, ConnectionError):
        pass  # the parent has ended
    finally:
        channel.close()


if __name__ == "__main__":
    main()
