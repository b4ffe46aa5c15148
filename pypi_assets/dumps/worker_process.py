"""Worker processes that read dumps: programs of this package, which exchange lines of JSON with their parent process.

`WorkerKind` describes a program. The parent starts some of `WorkerProcess`, and gives work to each in its own thread.
The program calls `start_worker`, and sends its errors, which the parent raises again.
"""

import contextlib
import gc
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from typing import BinaryIO, Generic, Self, TypeVar, cast

import msgspec

from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.errors import ExpectedError
from pypi_assets.storage.store import StorageError

_REPORT_EVERY_S = 1.0
_T = TypeVar("_T")


class WorkerFailed(msgspec.Struct, frozen=True, tag=True):
    """Last message from a worker after a failure: the error."""

    error: str
    text: str


@dataclass(frozen=True, slots=True)
class WorkerKind:
    """A program: its module, what it does (`reads dumps`), and the task of all its processes (`build`).

    `error` is raised if a process cannot be started, dies, or lacks disk or memory.
    """

    program: str
    does: str
    task: str
    error: type[ExpectedError]

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors that the parent raises again."""
        return DumpDamagedError, StorageError, self.error

    @property
    def caught(self) -> tuple[type[Exception], ...]:
        """All errors that `failure` describes."""
        return *self.errors, OSError, MemoryError

    def failure(self, error: Exception, written: str) -> WorkerFailed:
        """Return the message for one of the `caught` errors. `written` names what could not be written."""
        for known in self.errors:
            if isinstance(error, known):
                return WorkerFailed(known.__name__, str(error))
        if isinstance(error, MemoryError):
            text = f"there is not enough memory for the {self.task}: give it more"
        else:
            text = f"{written} cannot be written: {error}; is the disk full?"
        return WorkerFailed(self.error.__name__, text)

    def raised(self, failed: WorkerFailed) -> Exception:
        """Return the error of a message."""
        known = {error.__name__: error for error in self.errors}
        return known[failed.error](failed.text)


class WorkerProcess(Generic[_T]):
    """A process of a kind, which is killed at the end of this context manager. `decoder` decodes its messages."""

    def __init__(self, kind: WorkerKind, decoder: msgspec.json.Decoder[_T | WorkerFailed]) -> None:
        self._kind, self._decoder = kind, decoder
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our own module
                [sys.executable, "-P", "-m", kind.program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise kind.error(f"the processes for the {kind.task} cannot be started: {error}") from error
        self._outgoing = cast("BinaryIO", self._process.stdin)
        self._incoming = cast("BinaryIO", self._process.stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # data that the process never read
            self._outgoing.close()
        self._incoming.close()

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status of a process that has ended, as of `subprocess`."""
        return self._process.returncode

    def send(self, message: object) -> None:
        """Send a message. `receive` reports why a process has ended."""
        with contextlib.suppress(BrokenPipeError):
            send_message(self._outgoing, message)

    def end_input(self) -> None:
        """Tell the process that no more messages follow."""
        with contextlib.suppress(BrokenPipeError):
            self._outgoing.close()

    def receive(self) -> _T:
        """Return the next message. Raises the error of the process, or the kind's error if the process died."""
        line = self._incoming.readline()
        if not line:
            status = self._process.wait()
            names = {-number: f"signal {number.name}" for number in signal.Signals}
            raise self._kind.error(
                f"a process that {self._kind.does} has died: {names.get(status, f'exit status {status}')};"
                f" {self._kind.task} again, with less memory if the machine is short of it"
            )
        message = self._decoder.decode(line)
        if isinstance(message, WorkerFailed):
            raise self._kind.raised(message)
        return message


def await_all(futures: Iterable[Future[_T]], report: Callable[[], object]) -> list[_T]:
    """Return the results of all futures. `report` is called every second. Raises the first error."""
    everything = tuple(futures)
    pending = set(everything)
    while pending:
        finished, pending = wait(pending, _REPORT_EVERY_S, FIRST_EXCEPTION)
        for each in finished:
            each.result()
        report()
    return [each.result() for each in everything]


def taken(waiting: "deque[_T]") -> Iterator[_T]:
    """Yield and remove items; several threads can share the deque."""
    with contextlib.suppress(IndexError):
        while True:
            yield waiting.popleft()


def start_worker() -> tuple[BinaryIO, BinaryIO]:
    """Prepare this process to be a worker. Returns the streams from and to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    gc.freeze()  # imported modules are not garbage, and need not be scanned again and again
    return sys.stdin.buffer, sys.stdout.buffer


def send_message(outgoing: BinaryIO, message: object) -> None:
    outgoing.write(msgspec.json.encode(message) + b"\n")
    outgoing.flush()
