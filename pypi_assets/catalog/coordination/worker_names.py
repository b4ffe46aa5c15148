"""Names of workers. A name identifies the machine and the process, so that other processes there can check whether it
runs."""

import os
import platform
import uuid
from pathlib import Path

_HOST_CHARACTERS = 32


def new_worker() -> str:
    """A unique name for a worker of this process."""
    return f"{_this_machine()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def process_of(worker: str) -> str:
    """The process that the worker is part of, with its machine."""
    return worker.rpartition(":")[0]


def is_dead(worker: str) -> bool:
    """Whether the worker ran on this machine and its process has ended. False for workers on other machines."""
    machine, _, pid = process_of(worker).rpartition(":")
    return os.name == "posix" and machine == _this_machine() and pid.isdecimal() and not _is_running(int(pid))


def _this_machine() -> str:
    """A name for the scope of process ids: this machine, or a container on it."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:  # no Linux
        namespace = ""
    return f"{platform.node()[:_HOST_CHARACTERS]}/{namespace}"


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
