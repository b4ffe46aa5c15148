"""Define the layers that contain a reader process before it reads the first byte of a file.

Each layer works without the others. A file that takes over a reader is stopped by several layers at once, and if a
kernel lacks one of them, the rest still hold. docs/reading.md has a table of what each layer stops.
"""

import contextlib
import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pypi_assets.distributions.containment import kernel

_SET_MODE_FILTER = 1
_GET_ACTION_AVAIL = 2
_OF_ALL_THREADS = 1

_ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000
REFUSE = _ERRNO | errno.EPERM
_UNKNOWN = _ERRNO | errno.ENOSYS
"""The error of a kernel that lacks a call. libc then falls back to an older call."""

_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_GREATER = 0x25
_JUMP_GREATER_EQUAL = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_AT_NUMBER = 0
_AT_ARCHITECTURE = 4
_AT_ARGUMENTS = 16

_X32 = 0x40000000
"""In an x86-64 process, numbers from here on are calls of the x32 ABI."""
_MOST_STANDARD_FD = 2
_STDERR = 2
_PROT_EXEC = 4
_RLIMIT_CPU = 0
_ITIMER_PROF = 2


class Instruction(NamedTuple):
    """A `struct sock_filter`. Jumps are relative to the next instruction."""

    code: int
    if_true: int
    if_false: int
    value: int


class Check(NamedTuple):
    """A condition on the low 32 bits of an argument.

    For the arguments that are checked, the kernel reads only these bits.
    """

    argument: int
    jump: int
    value: int
    holds: bool = True


@dataclass(frozen=True)
class Architecture:
    """A processor architecture: its number in `linux/audit.h` and its system call numbers."""

    audit_number: int
    calls: dict[str, int]


_X86_64 = Architecture(
    0xC000003E,
    {
        "sendto": 44,
        "recvfrom": 45,
        "clock_gettime": 228,
        "setitimer": 38,
        "prlimit64": 302,
        "mmap": 9,
        "munmap": 11,
        "mremap": 25,
        "brk": 12,
        "madvise": 28,
        "mprotect": 10,
        "futex": 202,
        "getrandom": 318,
        "memfd_create": 319,
        "write": 1,
        "read": 0,
        "pread64": 17,
        "pwrite64": 18,
        "lseek": 8,
        "ftruncate": 77,
        "fstat": 5,
        "close": 3,
        "getpid": 39,
        "gettid": 186,
        "getrusage": 98,
        "gettimeofday": 96,
        "clock_getres": 229,
        "times": 100,
        "sysinfo": 99,
        "sched_yield": 24,
        "sched_getaffinity": 204,
        "rt_sigaction": 13,
        "rt_sigprocmask": 14,
        "rt_sigreturn": 15,
        "sigaltstack": 131,
        "restart_syscall": 219,
        "kill": 62,
        "tkill": 200,
        "tgkill": 234,
        "exit": 60,
        "exit_group": 231,
    },
)
_AARCH64 = Architecture(
    0xC00000B7,
    {
        "sendto": 206,
        "recvfrom": 207,
        "clock_gettime": 113,
        "setitimer": 103,
        "prlimit64": 261,
        "mmap": 222,
        "munmap": 215,
        "mremap": 216,
        "brk": 214,
        "madvise": 233,
        "mprotect": 226,
        "futex": 98,
        "getrandom": 278,
        "memfd_create": 279,
        "write": 64,
        "read": 63,
        "pread64": 67,
        "pwrite64": 68,
        "lseek": 62,
        "ftruncate": 46,
        "fstat": 80,
        "close": 57,
        "getpid": 172,
        "gettid": 178,
        "getrusage": 165,
        "gettimeofday": 169,
        "clock_getres": 114,
        "times": 153,
        "sysinfo": 179,
        "sched_yield": 124,
        "sched_getaffinity": 123,
        "rt_sigaction": 134,
        "rt_sigprocmask": 135,
        "rt_sigreturn": 139,
        "sigaltstack": 132,
        "restart_syscall": 128,
        "kill": 129,
        "tkill": 130,
        "tgkill": 131,
        "exit": 93,
        "exit_group": 94,
    },
)
ARCHITECTURES = {"x86_64": _X86_64, "aarch64": _AARCH64}
"""Architectures by `platform.machine()`. The most frequent calls come first."""
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_NEWER = 424
"""From this number on, calls have the same numbers on all architectures: clone3, openat2, io_uring and all later ones.

If they are unknown, libc falls back to older calls, whose arguments a filter can check.
"""


def _checks(own_pid: int) -> dict[str, tuple[Check, ...]]:
    """Return the calls that are allowed only with certain arguments."""
    not_executable = (Check(2, _JUMP_ANY_BIT, _PROT_EXEC, holds=False),)
    of_memory_files = (Check(0, _JUMP_GREATER, _MOST_STANDARD_FD),)
    to_itself = (Check(0, _JUMP_EQUAL, own_pid),)
    over_the_channel = (Check(0, _JUMP_EQUAL, 0),)
    return {
        "sendto": over_the_channel,
        "recvfrom": over_the_channel,
        "setitimer": (Check(0, _JUMP_EQUAL, _ITIMER_PROF),),
        "prlimit64": (Check(0, _JUMP_EQUAL, 0), Check(1, _JUMP_EQUAL, _RLIMIT_CPU)),
        "mmap": not_executable,
        "mprotect": not_executable,
        "read": (Check(0, _JUMP_EQUAL, _STDERR, holds=False),),
        "pread64": of_memory_files,
        "pwrite64": of_memory_files,
        "lseek": of_memory_files,
        "ftruncate": of_memory_files,
        "kill": to_itself,
        "tkill": to_itself,
        "tgkill": to_itself,
    }


def missing() -> str | None:
    """Return why this system cannot filter system calls, or None if it can."""
    machine = platform.machine()
    if machine not in ARCHITECTURES or struct.calcsize("P") != struct.calcsize("Q"):
        return f"no list of system calls for a {8 * struct.calcsize('P')}-bit program on {machine}"
    try:
        for action in (KILL_PROCESS, _ERRNO):
            kernel.call(_SECCOMP_CALL[machine], _GET_ACTION_AVAIL, 0, _buffer(struct.pack("=I", action)))
    except OSError as error:
        return f"the kernel does not support the seccomp filter ({error.strerror})"
    return None


def build_filter(machine: str, own_pid: int, otherwise: int = REFUSE) -> list[Instruction]:
    """Return the filter program for the process `own_pid`. `otherwise` is the action for calls that are not allowed."""
    architecture = ARCHITECTURES[machine]
    program = [
        Instruction(_LOAD, 0, 0, _AT_ARCHITECTURE),
        Instruction(_JUMP_EQUAL, 1, 0, architecture.audit_number),
        Instruction(_RETURN, 0, 0, KILL_PROCESS),
        Instruction(_LOAD, 0, 0, _AT_NUMBER),
    ]
    if machine == "x86_64":
        program += [Instruction(_JUMP_GREATER_EQUAL, 0, 1, _X32), Instruction(_RETURN, 0, 0, KILL_PROCESS)]
    checks = _checks(own_pid)
    for name, number in architecture.calls.items():
        program += _rule(number, checks.get(name, ()), otherwise)
    if otherwise == REFUSE:
        program += [Instruction(_JUMP_GREATER_EQUAL, 0, 1, _NEWER), Instruction(_RETURN, 0, 0, _UNKNOWN)]
    return [*program, Instruction(_RETURN, 0, 0, otherwise)]


def _rule(number: int, checks: Sequence[Check], otherwise: int) -> list[Instruction]:
    """Return instructions that allow the call `number` if all checks hold, and do `otherwise` if not.

    Other calls continue with the next rule.
    """
    body: list[Instruction] = []
    for left, check in zip(range(len(checks), 0, -1), checks, strict=True):
        refused = 2 * (left - 1) + 1  # jump over the following checks to the instruction after ALLOW
        jumps = (0, refused) if check.holds else (refused, 0)
        body += [
            Instruction(_LOAD, 0, 0, _AT_ARGUMENTS + 8 * check.argument),
            Instruction(check.jump, *jumps, check.value),
        ]
    body.append(Instruction(_RETURN, 0, 0, _ALLOW))
    if checks:
        body.append(Instruction(_RETURN, 0, 0, otherwise))
    return [Instruction(_JUMP_EQUAL, 0, len(body), number), *body]


def restrict(own_pid: int, otherwise: int = REFUSE) -> None:
    """Install the filter for all threads of this process, permanently. Raise OSError.

    `set_no_new_privileges` must be called before.
    """
    machine = platform.machine()
    program = build_filter(machine, own_pid, otherwise)
    instructions = _buffer(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
    # `struct sock_fprog`: the number of instructions and their address
    header = _buffer(struct.pack("@HP", len(program), ctypes.addressof(instructions)))
    unsynchronized = kernel.call(_SECCOMP_CALL[machine], _SET_MODE_FILTER, _OF_ALL_THREADS, header)
    if unsynchronized:
        raise OSError(errno.EBUSY, f"thread {unsynchronized} already has another seccomp filter")


def _buffer(content: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(content, len(content))


MOST_OPEN_FILES = 4
"""The channel, /dev/null, the log, and one memory file."""
_ELSEWHERE = "only Linux has it"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of containment.

    `missing` returns why this system lacks the layer, or None if it has it. `apply` puts the layer into effect for this
    process. Without a layer that `is_needed`, a reader counts as uncontained. The other layers only repeat the work of
    needed ones.
    """

    name: str
    missing: Callable[[], str | None]
    apply: Callable[[], None]
    is_needed: bool


@dataclass(frozen=True, slots=True)
class MissingLayer:
    """A layer that this system lacks, with the reason."""

    name: str
    reason: str
    is_needed: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def _of_linux() -> str | None:
    return None if kernel.IS_LINUX else _ELSEWHERE


def _of_seccomp() -> str | None:
    return _of_linux() or missing()


def _of_landlock(since: int) -> str | None:
    if not kernel.IS_LINUX:
        return _ELSEWHERE
    try:
        version = kernel.version()
    except OSError as error:
        return f"the kernel lacks Landlock, or it is disabled ({error.strerror})"
    return None if version >= since else f"the kernel has Landlock version {version}, but version {since} is needed"


def _nothing() -> None:
    """Do nothing. This is for layers that another layer puts into effect."""


LAYERS = (
    Layer("no new privileges", _of_linux, kernel.set_no_new_privileges, is_needed=True),
    Layer("undumpable", _of_linux, kernel.set_undumpable, is_needed=True),
    Layer("no capabilities", _of_linux, kernel.drop_capabilities, is_needed=True),
    Layer("Landlock", lambda: _of_landlock(1), kernel.restrict, is_needed=True),
    Layer("Landlock for TCP", lambda: _of_landlock(kernel.NETWORK_SINCE), _nothing, is_needed=False),
    Layer("Landlock for signals", lambda: _of_landlock(kernel.SCOPES_SINCE), _nothing, is_needed=False),
    Layer("seccomp", _of_seccomp, lambda: restrict(os.getpid()), is_needed=True),
)
"""The layers in the order in which they are applied. seccomp comes last because it would reject the other calls."""


def missing_layers() -> list[MissingLayer]:
    """Return the layers that this system lacks. Nothing is changed."""
    return [
        MissingLayer(layer.name, reason, layer.is_needed) for layer in LAYERS if (reason := layer.missing()) is not None
    ]


def contain(memory_bytes: int, file_bytes: int) -> list[MissingLayer]:
    """Contain this process permanently as far as the system can, and return the layers that it lacks.

    The process may take `memory_bytes` more memory than it has now, and no file may grow beyond `file_bytes`. All
    descriptors except the standard ones are closed. Modules cannot be imported afterwards, so import them before.
    """
    _close_descriptors()
    _limit_resources(memory_bytes, file_bytes)
    missing = missing_layers()
    names = {lacking.name for lacking in missing}
    for layer in LAYERS:
        if layer.name not in names:
            try:
                layer.apply()
            except OSError as error:
                missing.append(MissingLayer(layer.name, f"the kernel rejects it ({error.strerror})", layer.is_needed))
    return missing


def _close_descriptors() -> None:
    """Close all descriptors except the standard ones, and a terminal, since output could contain commands for it."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - no folder of files
        if int(name) > _STDERR:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself is already closed
                os.close(int(name))
    if os.isatty(_STDERR):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, _STDERR)
        os.close(nothing)


def _limit_resources(memory_bytes: int, file_bytes: int) -> None:
    if kernel.IS_LINUX:  # on other systems the current size is wrong or needs more packages
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + memory_bytes)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    _limit(resource.RLIMIT_NOFILE, MOST_OPEN_FILES)


def _limit(what: int, most: int) -> None:
    """Set the soft and the hard limit. An unprivileged process can never raise a hard limit."""
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))
