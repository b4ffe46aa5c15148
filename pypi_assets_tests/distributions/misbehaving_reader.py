"""A reader process with the faults that native code can have: the name of the file says which.

Started by the tests in place of the real program, whose every other part it is.
"""

import ctypes
import errno
import os
import signal
from typing import Any

from pypi_assets.distributions import worker_process

make_record = worker_process.make_record
read_distribution = worker_process.read_distribution


def misbehave(filename: str) -> None:
    match filename.partition("-")[0]:
        case "crash":
            ctypes.string_at(0)
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


def misbehaving_record(extract: Any, filename: str, **options: Any) -> Any:
    misbehave(filename)
    return make_record(extract, filename, **options)


def misbehaving_reading(source: Any, filename: str, **options: Any) -> Any:
    misbehave(filename)
    return read_distribution(source, filename, **options)


if __name__ == "__main__":
    worker_process.make_record = misbehaving_record
    worker_process.read_distribution = misbehaving_reading
    worker_process.main()
