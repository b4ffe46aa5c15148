"""Attempts of a hostile file that has taken over its reader.

Each attempt returns if it succeeded and raises OSError if it was stopped. Environment variables name the targets, so
that an attempt that is not stopped does no harm: `targets.py` makes them. Run as a program, this module enters the
layers given as arguments, makes all attempts, and prints their outcomes.
"""

import codecs
import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pypi_assets.distributions.containment import kernel, layers

_X86 = platform.machine() == "x86_64"
STOPPED = "stopped"
DONE = "done"
LIMITS = "limits"
"""The layer name of the resource limits."""
ATTEMPTS: dict[str, Callable[[], object]] = {}
_AT_FDCWD = -100
_PARENT = os.getppid()
"""A process may know this id even without permissions."""


def attempt(attack: Callable[[], object]) -> Callable[[], object]:
    ATTEMPTS[attack.__name__.replace("_", " ")] = attack
    return attack


def try_all() -> dict[str, str]:
    """Return, by attempt, `done` or `stopped` with the error."""
    outcomes = {}
    for name, attack in ATTEMPTS.items():
        try:
            attack()
            outcomes[name] = DONE
        except OSError as error:
            number = error.errno or 0
            outcomes[name] = f"{STOPPED} {errno.errorcode.get(number, number)}"
    return outcomes


def target(name: str) -> str:
    """Return the address of a target from the environment."""
    return os.environ[f"TARGET_{name}"]


def system_call(x86_64: int, aarch64: int, *arguments: int | ctypes.Array[ctypes.c_char]) -> int:
    return kernel.call(x86_64 if _X86 else aarch64, *arguments)


def path(name: str) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(name.encode())


# The parent, and other processes


@attempt
def read_environment_of_parent() -> None:
    assert Path(f"/proc/{_PARENT}/environ").read_bytes()


@attempt
def read_memory_of_parent() -> None:
    with Path(f"/proc/{_PARENT}/mem").open("rb", buffering=0):
        pass


@attempt
def copy_memory_of_parent() -> None:
    """Call process_vm_readv. A kernel that skipped the permission check would report a bad address."""
    area = (ctypes.c_char * 8)()
    vector = ctypes.create_string_buffer(ctypes.addressof(area).to_bytes(8, "little") + (8).to_bytes(8, "little"), 16)
    with suppress_error(errno.EFAULT):
        system_call(310, 270, _PARENT, vector, 1, vector, 1, 0)


@attempt
def trace_parent() -> None:
    """Call PTRACE_SEIZE, which does not stop the parent and ends with this process."""
    system_call(101, 117, 0x4206, _PARENT, 0, 0)


@attempt
def take_descriptor_of_parent() -> None:
    """Call pidfd_getfd."""
    system_call(438, 438, system_call(434, 434, _PARENT, 0), 0, 0)


@attempt
def signal_parent() -> None:
    os.kill(_PARENT, 0)


@attempt
def signal_another_process() -> None:
    os.kill(int(target("PROCESS")), signal.SIGKILL)


@attempt
def raise_limits_of_parent() -> None:
    system_call(302, 261, _PARENT, 7, 0, 0)


@attempt
def lower_priority_of_parent() -> None:
    """Set it to its present value."""
    os.setpriority(os.PRIO_PROCESS, _PARENT, os.getpriority(os.PRIO_PROCESS, _PARENT))


# The network


def _connect(family: int, kind: int, address: tuple[str, int] | str | bytes) -> None:
    with socket.socket(family, kind) as connection:
        connection.settimeout(1)
        connection.connect(address)


@attempt
def connect_by_tcp() -> None:
    _connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(target("PORT"))))


@attempt
def listen_on_tcp() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()


@attempt
def send_by_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.sendto(b"x", ("127.0.0.1", int(target("PORT"))))


@attempt
def look_up_a_host() -> None:
    socket.getaddrinfo("localhost", 80)


@attempt
def connect_to_a_unix_socket() -> None:
    _connect(socket.AF_UNIX, socket.SOCK_STREAM, target("UNIX"))


@attempt
def connect_to_an_abstract_socket() -> None:
    _connect(socket.AF_UNIX, socket.SOCK_STREAM, b"\0" + target("ABSTRACT").encode())


@attempt
def open_netlink() -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW):
        pass


@attempt
def pass_a_descriptor() -> None:
    """Send it to the parent along with the next message."""
    with socket.socket(fileno=os.dup(0)) as channel:
        socket.send_fds(channel, [], [1])


# Files


@attempt
def read_a_file() -> None:
    assert Path("/etc/passwd").read_bytes()


@attempt
def read_a_file_of_the_user() -> None:
    assert Path(target("FILE")).read_bytes()


@attempt
def list_a_folder() -> None:
    assert list(Path(target("FOLDER")).iterdir())


@attempt
def write_a_file() -> None:
    Path(target("FOLDER"), "written").write_text("x")


@attempt
def append_to_a_file() -> None:
    with Path(target("FILE")).open("a") as file:
        file.write("x")


@attempt
def cut_a_file() -> None:
    os.truncate(target("FILE"), 1)


@attempt
def make_a_folder() -> None:
    Path(target("FOLDER"), "made").mkdir()


@attempt
def make_a_symbolic_link() -> None:
    Path(target("FOLDER"), "symbolic").symlink_to("/etc/passwd")


@attempt
def make_a_hard_link() -> None:
    Path(target("FOLDER"), "hard").hardlink_to(target("FILE"))


@attempt
def make_a_pipe() -> None:
    os.mkfifo(Path(target("FOLDER"), "pipe"))


@attempt
def rename_a_file() -> None:
    Path(target("FOLDER"), "old").rename(Path(target("FOLDER"), "new"))


@attempt
def delete_a_file() -> None:
    Path(target("FOLDER"), "deleted").unlink()


@attempt
def change_a_mode() -> None:
    Path(target("FILE")).chmod(0o777)


@attempt
def change_an_owner() -> None:
    os.chown(target("FILE"), os.getuid(), os.getgid())


@attempt
def change_times() -> None:
    os.utime(target("FILE"))


@attempt
def look_at_a_file() -> None:
    os.stat(target("FILE"))  # noqa: PTH116 - the system call itself is tested


@attempt
def change_the_folder() -> None:
    os.chdir(target("FOLDER"))


@attempt
def watch_a_folder() -> None:
    """Call inotify."""
    watching = system_call(294, 26, 0)
    system_call(254, 27, watching, path(target("FOLDER")), 2)


@attempt
def open_by_openat2() -> None:
    how = ctypes.create_string_buffer(24)
    os.close(system_call(437, 437, _AT_FDCWD, path(target("FILE")), how, 24))


@attempt
def write_a_large_file() -> None:
    """Write it to memory, as a spool does."""
    descriptor = os.memfd_create("large")
    try:
        os.ftruncate(descriptor, 2**40)
    finally:
        os.close(descriptor)


# Processes and memory


@attempt
def fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


@attempt
def start_a_thread() -> None:
    """Call libc, as native code does."""
    thread = ctypes.c_ulong()
    function = ctypes.cast(_libc.getpid, ctypes.c_void_p)
    number = _libc.pthread_create(ctypes.byref(thread), None, function, None)
    if number:
        raise OSError(number, os.strerror(number))
    _libc.pthread_join(thread, None)


@attempt
def start_a_program() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)


@attempt
def call_clone3() -> None:
    """Pass arguments that are too short. The kernel checks them."""
    with suppress_error(errno.EINVAL):
        system_call(435, 435, ctypes.create_string_buffer(8), 8)


@attempt
def become_another_program() -> None:
    """Name a missing program: a kernel that allowed the call would not find it."""
    with suppress_error(errno.ENOENT):
        os.execv("/nonexistent", ["nonexistent"])


@attempt
def take_much_memory() -> None:
    mmap.mmap(-1, 2**32).close()


@attempt
def take_executable_memory() -> None:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()


@attempt
def open_many_files() -> None:
    with ExitStack() as opened:
        for number in range(100):
            opened.callback(os.close, os.memfd_create(f"file {number}"))


# The kernel


@attempt
def use_io_uring() -> None:
    os.close(system_call(425, 425, 1, ctypes.create_string_buffer(120)))


@attempt
def load_bpf() -> None:
    """Load an array map."""
    attributes = b"".join(word.to_bytes(4, "little") for word in (2, 4, 4, 1))
    os.close(system_call(321, 280, 0, ctypes.create_string_buffer(attributes, 16), 16))


@attempt
def use_userfaultfd() -> None:
    os.close(system_call(323, 282, 1))


@attempt
def use_keyctl() -> None:
    """Request the session's keyring, which is created if it is missing."""
    system_call(250, 219, 0, -3 & 0xFFFFFFFF, 1)


@attempt
def use_perf_events() -> None:
    attributes = ctypes.create_string_buffer((1).to_bytes(4, "little") + (112).to_bytes(4, "little") + bytes(104), 112)
    with suppress_error(errno.EINVAL, errno.ENOENT):
        os.close(system_call(298, 241, attributes, 0, -1, -1, 0))


@attempt
def mount_a_file_system() -> None:
    system_call(165, 40, path("none"), path(target("FOLDER")), path("tmpfs"), 0, 0)
    system_call(166, 39, path(target("FOLDER")), 0)


@attempt
def join_a_namespace() -> None:
    """Join the namespace of this process."""
    with Path("/proc/self/ns/uts").open("rb") as file:
        system_call(308, 268, file.fileno(), 0)


@attempt
def set_the_clock() -> None:
    """Pass no time: the kernel checks the permission only."""
    system_call(164, 170, 0, 0)


@attempt
def type_into_the_terminal() -> None:
    """Call TIOCSTI on a file that is not a terminal."""
    with suppress_error(errno.ENOTTY):
        system_call(16, 29, 2, 0x5412, path("x"))


@attempt
def become_dumpable() -> None:
    system_call(157, 167, 4, 1)


@attempt
def make_a_user_namespace() -> None:
    """Make a namespace in which this process would be root."""
    system_call(272, 97, 0x10000000)


@attempt
def change_the_root() -> None:
    """Run last, since the other attempts cannot find their files afterwards."""
    os.chroot(target("FOLDER"))


class suppress_error:  # noqa: N801 - used as contextlib.suppress
    """Count these errors as success: they occur after the step that should be stopped."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return isinstance(error, OSError) and error.errno in self._numbers


_libc = ctypes.CDLL(None)
codecs.lookup("idna")  # used by a resolver


def main() -> None:
    """Enter the named layers and print the outcomes as JSON."""
    names = sys.argv[1:]
    if LIMITS in names:
        layers._close_descriptors()
        layers._limit_resources(2**30, 2**28)
    for layer in layers.LAYERS:
        if layer.name in names:
            layer.apply()
    os.write(1, json.dumps(try_all()).encode())


if __name__ == "__main__":
    main()
