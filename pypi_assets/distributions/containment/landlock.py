"""Landlock: from now on this thread opens no file and no TCP connection, and reaches no process outside.

The numbers are those of `linux/landlock.h`. What is open stays open. What newer versions of Landlock add is restricted
where the kernel has it.
"""

import ctypes
import os
import struct

from pypi_assets.distributions.containment import kernel

_CREATE_RULESET = 444
_RESTRICT_SELF = 446
"""The numbers of the system calls, the same on all processors."""
_VERSION_FLAG = 1

NETWORK_SINCE = 4
SCOPES_SINCE = 6
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""By version, how many rights over files there are, each a bit. All of them are restricted."""
_NETWORK_RIGHTS = 0b11
"""To bind and to connect TCP."""
_SCOPES = 0b11
"""Abstract Unix sockets and signals."""


def version() -> int:
    """Which version of Landlock the kernel has. Raises OSError where it has none, or where it is turned off."""
    return kernel.call(_CREATE_RULESET, 0, 0, _VERSION_FLAG)


def rights(of_version: int) -> bytes:
    """What a ruleset of that version restricts: `struct landlock_ruleset_attr`."""
    files = (1 << max(count for since, count in _FILE_RIGHTS.items() if since <= of_version)) - 1
    if of_version < NETWORK_SINCE:
        return struct.pack("=Q", files)
    if of_version < SCOPES_SINCE:
        return struct.pack("=QQ", files, _NETWORK_RIGHTS)
    return struct.pack("=QQQ", files, _NETWORK_RIGHTS, _SCOPES)


def restrict() -> None:
    """Restricts the calling thread, and what it starts, for ever; no rule allows anything.

    Raises OSError. New privileges must be off.
    """
    attributes = rights(version())
    ruleset = kernel.call(_CREATE_RULESET, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes), 0)
    try:
        kernel.call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
