"""Make system calls of the Linux kernel that Python has no function for, by ctypes.

Each function raises OSError if the kernel rejects the call. `layers.py` combines these calls into layers.
"""

import ctypes
import os
import struct
import sys
from functools import cache

IS_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: int | ctypes.Array[ctypes.c_char]) -> int:
    """Return the result of a system call. Arguments are integers, or buffers that are passed by address."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    function = _libc().syscall
    function.restype = ctypes.c_long
    returned = int(function(ctypes.c_long(number), *words))
    return _checked(returned)


def _prctl(*arguments: int) -> int:
    option, *words = [*arguments, 0, 0, 0, 0][:5]
    return _checked(int(_libc().prctl(ctypes.c_int(option), *map(ctypes.c_ulong, words))))


def _checked(returned: int) -> int:
    if returned == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned


def set_no_new_privileges() -> None:
    """Prevent started programs from gaining privileges. Landlock and seccomp require this."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_undumpable() -> None:
    """Prevent unprivileged processes from tracing this one or reading its memory or environment."""
    _prctl(_PR_SET_DUMPABLE, 0)


def set_parent_death_signal(number: int) -> None:
    """Have the kernel send this process the signal when its parent ends, even after an `exec`."""
    _prctl(_PR_SET_PDEATHSIG, number)


def drop_capabilities() -> None:
    """Remove all capabilities from this thread. Then a process of root has no more rights than any other."""
    header = ctypes.create_string_buffer(_CAPABILITY_VERSION_3.to_bytes(4, sys.byteorder) + bytes(4), 8)
    _checked(int(_libc().capset(header, ctypes.create_string_buffer(bytes(24), 24))))


_CREATE_RULESET = 444
_RESTRICT_SELF = 446
"""The numbers of the system calls. They are the same on all processors."""
_VERSION_FLAG = 1

NETWORK_SINCE = 4
SCOPES_SINCE = 6
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""The number of file rights by Landlock version. Each right is a bit, and all of them are restricted."""
_NETWORK_RIGHTS = 0b11
"""The rights to bind and to connect TCP sockets."""
_SCOPES = 0b11
"""Abstract Unix sockets and signals."""


def version() -> int:
    """Return the version of Landlock in the kernel. Raise OSError if it is missing or disabled."""
    return call(_CREATE_RULESET, 0, 0, _VERSION_FLAG)


def rights(of_version: int) -> bytes:
    """Return the `struct landlock_ruleset_attr` that restricts everything this version of Landlock can restrict."""
    files = (1 << max(count for since, count in _FILE_RIGHTS.items() if since <= of_version)) - 1
    if of_version < NETWORK_SINCE:
        return struct.pack("=Q", files)
    if of_version < SCOPES_SINCE:
        return struct.pack("=QQ", files, _NETWORK_RIGHTS)
    return struct.pack("=QQQ", files, _NETWORK_RIGHTS, _SCOPES)


def restrict() -> None:
    """Restrict the calling thread and its children permanently. No rule grants an exception.

    Raise OSError if the kernel rejects this. `set_no_new_privileges` must be called before.
    """
    attributes = rights(version())
    ruleset = call(_CREATE_RULESET, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes), 0)
    try:
        call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
