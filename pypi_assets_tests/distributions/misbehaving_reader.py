"""A reader process with the faults that native code can have. The name of the file selects the fault.

A fault called `late_` occurs when the record is made, after the extract. `once` occurs a single time: it leaves a mark
in a folder, and this reader runs uncontained to write it. `attempts` tries to escape from the process. A setup.py that
begins with the name of a fault triggers it when it is parsed. Tests start this program in place of the real reader; all
other parts are the real reader's.
"""

import contextlib
import ctypes
import errno
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from pypi_assets.distributions import reader_process, sdists
from pypi_assets.distributions.containment import layers
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.record import FilenameParts
from pypi_assets_tests.distributions.containment.attempts import DONE, try_all

MARKS = "MARKS_OF_READERS"
"""The variable that names the folder. Tests add it to the environment of readers."""

keep_arguments = sdists.keep_arguments
make_parsed_record = reader_process.make_parsed_record
read_extract = reader_process.read_extract


def misbehave(filename: str) -> None:
    match filename.partition("-")[0]:
        case "crash":
            ctypes.string_at(0)
        case "once":
            with contextlib.suppress(FileExistsError):
                Path(os.environ[MARKS], f"{filename}.killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(3)
        case "spin":
            os.write(2, b"spinning\n")
            while True:
                pass
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "backtrack":
            re.match(r"(?:a|a)*b", "a" * 40)
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


def misbehaving_extract(source: Any, parts: FilenameParts, limits: ReadLimits) -> Any:
    if parts.filename.startswith("attempts"):
        outcomes = try_all()
        done = [name for name, outcome in outcomes.items() if outcome == DONE]
        return Extract(notes=[f"{len(outcomes)} attempts", *done])
    if parts.filename.startswith("request"):  # hangs without its timer
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        while True:
            source.sidecar()
    misbehave(parts.filename)
    return read_extract(source, parts, limits)


def misbehaving_arguments(source: bytes, files: Mapping[str, bytes]) -> bytes:
    misbehave(source.decode())
    return keep_arguments(source, files)


if __name__ == "__main__":
    lacking = os.environ.get("LACKING_LAYER")
    layers.LAYERS = tuple(
        replace(layer, missing=lambda: "taken away") if layer.name == lacking else layer for layer in layers.LAYERS
    )
    if MARKS in os.environ:
        reader_process.contain = lambda *_: []  # type: ignore[assignment]
    sdists.keep_arguments = misbehaving_arguments
    reader_process.make_parsed_record = misbehaving_record
    reader_process.read_extract = misbehaving_extract
    reader_process.main()
