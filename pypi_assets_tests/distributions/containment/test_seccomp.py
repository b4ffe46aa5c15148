"""The seccomp filter, simulated for both processor architectures and applied by the kernel."""

import errno
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets.distributions.containment import layers
from pypi_assets.distributions.containment.layers import ARCHITECTURES, KILL_PROCESS, REFUSE, build_filter
from pypi_assets_tests.naming import mentions

ALLOWED = 0x7FFF0000
UNKNOWN = 0x00050000 | errno.ENOSYS
PID = 4321
ONLY_WITH = {
    "sendto": [(0,)],
    "recvfrom": [(0,)],
    "read": [(0,), (3,)],
    "pread64": [(3,)],
    "pwrite64": [(3,)],
    "lseek": [(3,)],
    "ftruncate": [(3,)],
    "setitimer": [(2,)],
    "prlimit64": [(0, 0)],
    "mmap": [(0, 0, 3), (0, 0, 1)],
    "mprotect": [(0, 0, 3)],
    "kill": [(PID,)],
    "tkill": [(PID,)],
    "tgkill": [(PID,)],
}
NEVER_WITH = {
    "sendto": [(1,), (2,), (3,)],
    "recvfrom": [(3,)],
    "read": [(2,)],
    "pread64": [(0,), (2,)],
    "pwrite64": [(2,)],
    "lseek": [(2,)],
    "ftruncate": [(1,), (2,)],
    "setitimer": [(0,), (1,)],
    "prlimit64": [(PID, 0), (0, 7), (1, 1)],
    "mmap": [(0, 0, 4), (0, 0, 7)],
    "mprotect": [(0, 0, 5)],
    "kill": [(1,), (0,), (-1,)],
    "tkill": [(1,)],
    "tgkill": [(1,)],
}
on_this_processor = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="made of its machine code"
)


def answer(machine: str, number: int, *arguments: int, architecture: int | None = None, otherwise: int = REFUSE) -> int:
    """Return the filter's decision on a system call, evaluated as a kernel would."""
    program = build_filter(machine, PID, otherwise)
    known = ARCHITECTURES[machine].audit_number if architecture is None else architecture
    words = {0: number, 4: known}
    for at in range(6):
        value = arguments[at] if at < len(arguments) else 0
        words[16 + 8 * at] = value & 0xFFFFFFFF
    accumulator = at = 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        match code:
            case 0x20:
                accumulator = words[value]
            case 0x06:
                return value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x25:
                at += if_true if accumulator > value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case _:
                raise AssertionError(code)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_only_calls_needed_for_reading_are_allowed(machine: str) -> None:
    calls = ARCHITECTURES[machine].calls
    numbers = set(calls.values())
    assert len(numbers) == len(calls)
    for name, number in calls.items():
        for arguments in ONLY_WITH.get(name, [()]):
            assert answer(machine, number, *arguments) == ALLOWED, name
        for arguments in NEVER_WITH.get(name, []):
            assert answer(machine, number, *arguments) == REFUSE, (name, arguments)
    for number in range(1000):
        if number not in numbers:
            assert answer(machine, number) == (REFUSE if number < 424 else UNKNOWN), number
            assert answer(machine, number, otherwise=KILL_PROCESS) == KILL_PROCESS
    assert ONLY_WITH.keys() == NEVER_WITH.keys() <= calls.keys()


OF_ATTEMPTS = {
    "openat": (257, 56),
    "openat2": (437, 437),
    "statx": (332, 291),
    "chdir": (80, 49),
    "chroot": (161, 51),
    "mkdirat": (258, 34),
    "mknodat": (259, 33),
    "symlinkat": (266, 36),
    "linkat": (265, 37),
    "unlinkat": (263, 35),
    "renameat2": (316, 276),
    "fchmodat": (268, 53),
    "fchownat": (260, 54),
    "utimensat": (280, 88),
    "inotify_init1": (294, 26),
    "ioctl": (16, 29),
    "mount": (165, 40),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "bind": (49, 200),
    "listen": (50, 201),
    "connect": (42, 203),
    "sendmsg": (46, 211),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execve": (59, 221),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "pidfd_getfd": (438, 438),
    "setpriority": (141, 140),
    "prctl": (157, 167),
    "setns": (308, 268),
    "unshare": (272, 97),
    "clock_settime": (227, 112),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "io_uring_setup": (425, 425),
}
"""The system calls of escape attempts, with their numbers on x86-64 and AArch64."""


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_escape_calls_are_denied_on_both_processors(machine: str) -> None:
    for name, numbers in OF_ATTEMPTS.items():
        number = numbers[machine == "aarch64"]
        for arguments in ((), (3, 3, 3), (-100, 0, 0), (PID, PID, PID)):
            assert answer(machine, number, *arguments) in {REFUSE, UNKNOWN}, name


def test_both_processors_allow_the_same_calls() -> None:
    assert ARCHITECTURES["x86_64"].calls.keys() == ARCHITECTURES["aarch64"].calls.keys()


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_program_of_another_architecture_is_killed(machine: str) -> None:
    for other in {0x40000003, 0x40000028, *(architecture.audit_number for architecture in ARCHITECTURES.values())} - {
        ARCHITECTURES[machine].audit_number
    }:
        assert answer(machine, ARCHITECTURES[machine].calls["getpid"], architecture=other) == KILL_PROCESS


def test_x32_abi_is_killed() -> None:
    for number in (0x40000000, 0x40000000 + ARCHITECTURES["x86_64"].calls["getpid"], 0xFFFFFFFF):
        assert answer("x86_64", number) == KILL_PROCESS


def test_call_numbers_match_kernel_headers() -> None:
    headers = {
        "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        "aarch64": Path("/usr/include/asm-generic/unistd.h"),
    }
    machines = [machine for machine in headers if headers[machine].exists()]
    if not machines:
        pytest.skip("no headers of the kernel")
    for machine in machines:
        text = headers[machine].read_text()
        for name, number in ARCHITECTURES[machine].calls.items():
            generic = {"lseek": "3264_lseek", "ftruncate": "3264_ftruncate", "mmap": "3264_mmap", "fstat": "3264_fstat"}
            written = name if machine == "x86_64" else generic.get(name, name)
            assert re.search(rf"#define __NR_?{written} {number}\b", text), (machine, name)
        for name, numbers in OF_ATTEMPTS.items():
            number = numbers[machine == "aarch64"]
            assert re.search(rf"#define __NR_?{name}\s+{number}\b", text), (machine, name)


def test_unknown_processor_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert mentions(layers.missing(), "riscv64")


_BY_INT_80 = """
import ctypes, mmap, os
from pypi_assets.distributions.containment import kernel, layers

code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid of the 32-bit ABI); int 0x80; ret
getpid = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
kernel.set_no_new_privileges()
layers.restrict(os.getpid())
getpid()
"""
_BY_X32 = """
import os
from pypi_assets.distributions.containment import kernel, layers

kernel.set_no_new_privileges()
layers.restrict(os.getpid())
assert kernel.call(39) == os.getpid()
kernel.call(0x40000000 + 39)
"""
_THREADS = """
import os, threading
from pypi_assets.distributions.containment import kernel, layers

outcomes, may_go = [], threading.Event()

def in_thread():
    may_go.wait()
    try:
        os.stat("/")
        outcomes.append("done")
    except PermissionError:
        outcomes.append("stopped")

thread = threading.Thread(target=in_thread)
thread.start()
kernel.set_no_new_privileges()
layers.restrict(os.getpid())
may_go.set()
thread.join()
os.write(1, outcomes[0].encode())
os._exit(0)
"""


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


@on_this_processor
def test_calls_by_other_abis_kill_the_process() -> None:
    assert run(_BY_X32).returncode == -signal.SIGSYS
    assert run(_BY_INT_80).returncode in {
        -signal.SIGSYS,
        -signal.SIGSEGV,
    }  # SIGSEGV without this ABI


@pytest.mark.skipif(sys.platform != "linux", reason="it is Linux's")
def test_filter_covers_running_threads() -> None:
    assert run(_THREADS).stdout == "stopped"
