"""Reduces a full dump to sorted runs of records, in processes of their own: one for each core to use.

They are started as programs and not forked, since whoever builds may have threads.
"""

import contextlib
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar, cast

import msgspec

from pypi_assets.catalog.publications.dump_facts import DumpFile
from pypi_assets.leveldbs.build.reduce_process import ERRORS, Failed, FromReducer, Rows, Setup, Written
from pypi_assets.leveldbs.build.sorted_runs import Runs
from pypi_assets.leveldbs.format.errors import LeveldbError

REDUCER_PROGRAM = "pypi_assets.leveldbs.build.reduce_process"
_REPORT_EVERY_S = 1.0
Expected = TypeVar("Expected", Rows, Written)


class Reducers:
    """Some reducer processes, which start while other things can be done, and end with this."""

    def __init__(self, count: int) -> None:
        self._exits = contextlib.ExitStack()
        with contextlib.ExitStack() as started:
            self._reducers = [started.enter_context(_Reducer()) for _ in range(count)]
            self._exits = started.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._exits.close()

    @property
    def processes(self) -> list[int]:
        """Their process ids."""
        return [reducer.process_id for reducer in self._reducers]

    def reduce(
        self,
        files: Iterable[DumpFile],
        setup_of: Callable[[int], Setup],
        rows_done: Callable[[int], object],
    ) -> list[Runs]:
        """Shares the files out, and returns all runs. `setup_of` is called with the number of the process, from 0.

        `rows_done` is called with the rows done so far, every second. Raises the error of a reducer, or LeveldbError if
        one died.
        """
        waiting = deque(sorted(files, key=lambda file: -file.rows))
        done = [0] * len(self._reducers)
        with ThreadPoolExecutor(len(self._reducers)) as threads:
            pending = {
                threads.submit(reducer.reduce, setup_of(number), _taken(waiting), done, number)
                for number, reducer in enumerate(self._reducers)
            }
            everything = tuple(pending)
            try:
                while pending:
                    finished, pending = wait(pending, _REPORT_EVERY_S, FIRST_EXCEPTION)
                    for each in finished:
                        each.result()
                    rows_done(sum(done))
            except BaseException:
                self._exits.close()  # their threads wait for their messages
                raise
        return [each.result() for each in everything]


class _Reducer:
    """One process."""

    def __init__(self) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our own module
                [sys.executable, "-P", "-m", REDUCER_PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise LeveldbError(f"no process can be started to build with: {error}") from error
        self._outgoing = cast("BinaryIO", self._process.stdin)
        self._incoming = cast("BinaryIO", self._process.stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # of what it never took
            self._outgoing.close()
        self._incoming.close()

    @property
    def process_id(self) -> int:
        return self._process.pid

    def reduce(self, setup: Setup, files: Iterator[DumpFile], done: list[int], number: int) -> Runs:
        """Takes files until there are none, and counts their rows in `done[number]`."""
        self._send(setup)
        for file in files:
            self._send(file)
            file_ends = False
            while not file_ends:
                rows = self._receive(Rows)
                done[number] += rows.count
                file_ends = rows.file_ends
        with contextlib.suppress(BrokenPipeError):
            self._outgoing.close()
        written = self._receive(Written)
        return Runs(Path(setup.path), written.index_offset, written.counts, int(written.hash_sum, 16))

    def _send(self, message: Setup | DumpFile) -> None:
        with contextlib.suppress(BrokenPipeError):  # why it has ended is what is received next
            self._outgoing.write(msgspec.json.encode(message) + b"\n")
            self._outgoing.flush()

    def _receive(self, expected: type[Expected]) -> Expected:
        line = self._incoming.readline()
        if not line:
            status = self._process.wait()
            names = {-number: f"signal {number.name}" for number in signal.Signals}
            raise LeveldbError(
                f"a process that reads dumps has died: {names.get(status, f'exit status {status}')}; build again, with"
                " less memory at once where the machine is short of it"
            )
        message = msgspec.json.decode(line, type=FromReducer)
        if isinstance(message, Failed):
            raise ERRORS[message.error](message.text)
        if not isinstance(message, expected):
            raise TypeError(f"{message!r:.100} instead of {expected.__name__}")
        return message


def _taken(waiting: "deque[DumpFile]") -> Iterator[DumpFile]:
    """What is taken off by several threads."""
    with contextlib.suppress(IndexError):
        while True:
            yield waiting.popleft()
