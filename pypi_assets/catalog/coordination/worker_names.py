"""The names of workers: each tells where its process runs, so that others there know whether it still does."""

import os
import platform
import uuid
from pathlib import Path

_HOST_CHARACTERS = 32


def new_worker() -> str:
    """A name for a worker in this process that nobody else has."""
    return f"{_this_machine()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def is_dead(worker: str) -> bool:
    """Whether its process ran on this machine, and is gone. Of other machines nobody knows."""
    machine, _, pid = worker.rpartition(":")[0].rpartition(":")
    return os.name == "posix" and machine == _this_machine() and pid.isdecimal() and not _is_running(int(pid))


def _this_machine() -> str:
    """A name for what process ids count in: this machine, or a container on it."""
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
    except OSError:  # somebody else's
        return True
    return True
