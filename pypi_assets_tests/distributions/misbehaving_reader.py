"""A reader process with the faults that native code can have: the name of the file chooses one.

A fault that is called `late_` comes when the record is made, after the extract. `once` is one that comes once. A
setup.py that begins with the name of a fault has it when it is parsed.
Started by the tests in place of the real program, whose every other part it is.
"""

import contextlib
import ctypes
import errno
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pypi_assets.distributions import reader_process, sdists
from pypi_assets.distributions.limits import Limits
from pypi_assets.distributions.record import FilenameParts

keep_arguments = sdists.keep_arguments
make_parsed_record = reader_process.make_parsed_record
read_extract = reader_process.read_extract


def misbehave(filename: str) -> None:
    match filename.partition("-")[0]:
        case "crash":
            ctypes.string_at(0)
        case "once":
            with contextlib.suppress(FileExistsError):
                Path(os.environ["TMPDIR"], f"{filename}.killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(3)
        case "spin":
            os.write(2, b"spinning\n")
            while True:
                pass
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "raise":
            raise ZeroDivisionError("no\nnumber")
        case "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        case "fill":
            b"x" * 2**33
        case "babble":
            os.write(0, b"\0\0\0\3abc")
        case "excess":
            content = msgspec.msgpack.encode(reader_process.Judged([None] * 99))
            os.write(0, len(content).to_bytes(4) + content)


def misbehaving_record(extract: Any, parts: FilenameParts, project: str | None) -> Any:
    misbehave(parts.filename.removeprefix("late_"))
    return make_parsed_record(extract, parts, project)


def misbehaving_extract(source: Any, parts: FilenameParts, limits: Limits) -> Any:
    misbehave(parts.filename)
    return read_extract(source, parts, limits)


def misbehaving_arguments(source: bytes, files: Mapping[str, bytes]) -> bytes:
    misbehave(source.decode())
    return keep_arguments(source, files)


if __name__ == "__main__":
    sdists.keep_arguments = misbehaving_arguments
    reader_process.make_parsed_record = misbehaving_record
    reader_process.read_extract = misbehaving_extract
    reader_process.main()
