"""Names of workers. A name identifies the machine and the process, so that other processes there can check whether it
runs.

A process id alone identifies nothing: other machines and containers have the same, and each is used again. So a name
has a hash of what makes process ids unique, and the time when the process started. Where any of that is unknown, no
worker is taken for dead; its claims expire instead.
"""

import hashlib
import os
import platform
import subprocess
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path

_HOST_CHARACTERS = 12
_HASH_CHARACTERS = 16
_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACES = (Path("/proc/self/ns/pid"), Path("/proc/self/ns/time"))
_COMMAND_S = 10.0


def new_worker() -> str:
    """A unique name for a worker of this process, of at most 64 characters: `HOST/MACHINE:PID-START:UNIQUE`.

    HOST is for people and may be cut; MACHINE is a hash, see `machine_hash`; START is a hash of when the process
    started.
    """
    pid = os.getpid()
    started = _start_of(pid)
    start = "" if started is None else _hash(started)[:_HASH_CHARACTERS]
    return f"{host_name()[:_HOST_CHARACTERS]}/{machine_hash() or ''}:{pid}-{start}:{uuid.uuid4().hex[:8]}"


def host_name() -> str:
    """The whole name of this machine, for people."""
    return platform.node()


def process_of(worker: str) -> str:
    """The process that the worker is part of, with its machine."""
    return worker.rpartition(":")[0]


def is_dead(worker: str) -> bool:
    """Whether the worker ran on this machine and its process has ended.

    False for workers on other machines, and where that is not known.
    """
    place, _, process = process_of(worker).rpartition(":")
    machine, (pid, _, start) = place.rpartition("/")[2], process.partition("-")
    if os.name != "posix" or not start or not pid.isdecimal() or machine != machine_hash():
        return False
    if not _is_running(int(pid)):
        return True
    started = _start_of(int(pid))
    return started is not None and _hash(started)[:_HASH_CHARACTERS] != start


@cache
def machine_hash() -> str | None:
    """What makes process ids unique, as a hash: this boot of this machine, or a container on it. None: unknown.

    It is made of the ids of the boot and of the machine, the whole host name, and the namespaces of process ids and of
    time. macOS has no namespaces, the id of the boot session by `sysctl`, and the address of the network card in place
    of the machine's id.
    """
    boot = _text(_BOOT_ID) or _answer("sysctl", "-n", "kern.bootsessionuuid")
    if not boot:
        return None
    machine = _text(_MACHINE_ID) or f"{uuid.getnode():x}"
    return _hash("\n".join((boot, machine, host_name(), *map(_target, _NAMESPACES))))[:_HASH_CHARACTERS]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _start_of(pid: int) -> str | None:
    """When the process started, in some unit; None where that is not known."""
    stat = _text(Path(f"/proc/{pid}/stat"))
    if stat:
        return stat.rpartition(")")[2].split()[19]  # in clock ticks since the boot; the name before may hold anything
    return None if _BOOT_ID.exists() else _answer("ps", "-o", "lstart=", "-p", str(pid)) or None


def _text(path: Path) -> str:
    return _or_empty(lambda: path.read_text(encoding="utf-8", errors="replace"))


def _target(link: Path) -> str:
    return _or_empty(lambda: str(link.readlink()))


def _answer(*command: str) -> str:
    environment = os.environ | {"LC_ALL": "C", "TZ": "UTC"}

    def run() -> str:
        done = subprocess.run(  # noqa: S603 - commands of the system, named in this module
            command, capture_output=True, text=True, timeout=_COMMAND_S, check=True, env=environment
        )
        return done.stdout

    return _or_empty(run)


def _or_empty(read: Callable[[], str]) -> str:
    try:
        return read().strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
