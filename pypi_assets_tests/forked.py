"""Start programs as forks of one process that has already imported pypi_assets.

A fork starts in milliseconds, a new Python process in a second. A program is the text that `python -c` would run. All
modules of `pypi_assets` and Dagster that it imports are already loaded, except for `pypi_assets.definitions`, which
reads settings on import. Tests of what a new process imports, warns or prints at startup must use `subprocess`.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, Any, Self

processes = multiprocessing.get_context("forkserver")
"""Starts functions as forks of the same process: `processes.Process(target=...)`."""
processes.set_forkserver_preload(
    [
        "pypi_assets.components",
        "pypi_assets.cli",
        "pypi_assets.crawl.full_crawl",
        "pypi_assets.crawl.incremental_crawl",
        "pypi_assets.crawl.scope_crawl",
        "pypi_assets.dumps.full_dump",
        "pypi_assets.following.follower",
        "pypi_assets.journal.publishing",
        "pypi_assets.leveldbs.format.open_leveldb",
        "alembic.command",
        "dagster",
        "sqlalchemy.dialects.postgresql.psycopg",
    ]
)

COMMAND_LINE = "from pypi_assets.cli import main; main()"
"""The program `pypi-assets`."""


class ForkedProgram:
    """A running program, with the interface of `subprocess.Popen` for `python -c PROGRAM ARGUMENTS`.

    Standard input is empty unless it is PIPE. Output is inherited from this process unless it is PIPE, DEVNULL or a
    file. If `strict`, warnings are errors.
    """

    def __init__(
        self,
        program: str,
        *arguments: object,
        stdin: int | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        strict: bool = False,
    ) -> None:
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        with ExitStack() as passed:  # the program has copies of these
            streams: list[Connection] = []
            for number, name, target in ((0, "stdin", stdin), (1, "stdout", stdout), (2, "stderr", stderr)):
                if target == subprocess.PIPE:
                    reader, writer = Pipe(duplex=False)
                    own, other = (writer, reader) if number == 0 else (reader, writer)
                    setattr(self, name, os.fdopen(os.dup(own.fileno()), "w" if number == 0 else "r"))
                    own.close()
                else:
                    other = _connection(number, target)
                streams.append(passed.enter_context(other))
            self._process = processes.Process(
                target=_run,
                args=(
                    program,
                    list(map(str, arguments)),
                    streams,
                    dict(os.environ if env is None else env),
                    str(cwd or Path.cwd()),
                    strict,
                ),
            )
            self._process.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self.wait()

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):  # the program ended without reading its input
                    stream.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Return the exit code, the negative signal number if a signal ended the program, or None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program ends. Raise subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        """Close standard input, and return the output until the program ends.

        If stdout and stderr are both pipes, each must be smaller than the buffer of a pipe.
        """
        if self.stdin is not None:
            self.stdin.close()
        printed = [None if stream is None else stream.read() for stream in (self.stdout, self.stderr)]
        self.wait(timeout)
        self._close()
        return printed[0], printed[1]

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_forked(
    program: str, *arguments: object, check: bool = False, timeout: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program until it ends, and return its exit code and output."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with ForkedProgram(program, *arguments, stdout=out, stderr=err, **options) as started:
            try:
                code = started.wait(timeout)
            except subprocess.TimeoutExpired:
                started.kill()
                raise
        printed = [file.seek(0) or file.read().decode() for file in (out, err)]
    done = subprocess.CompletedProcess([program, *arguments], code, *printed)
    if check:
        assert code == 0, done.stderr
    return done


def _connection(number: int, target: int | IO[Any] | None) -> Connection:
    """Return the standard stream of a child process for a file descriptor."""
    if number == 0 or target == subprocess.DEVNULL:
        descriptor = os.open(os.devnull, os.O_RDWR)
    elif target is None:
        descriptor = os.dup(number)
    else:
        descriptor = os.dup(target if isinstance(target, int) else target.fileno())
    return Connection(descriptor)


def _run(
    program: str, arguments: list[str], streams: list[Connection], env: dict[str, str], cwd: str, strict: bool
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["-c", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if strict:
        warnings.simplefilter("error")
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
