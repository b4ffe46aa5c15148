"""What a reader loses before it sees the first byte of a file, layer by layer.

Each layer holds without the others. So a file that takes a reader over is stopped by several at once, and where a
kernel lacks one of them the rest holds. docs/reading.md has a table of what each of them stops.
"""

import contextlib
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pypi_assets.distributions.containment import kernel, landlock, seccomp

MOST_OPEN_FILES = 4
"""The channel, nothing, the log, and one memory file."""
_STDERR = 2
_ELSEWHERE = "there is none but on Linux"


@dataclass(frozen=True, slots=True)
class Layer:
    """`missing` returns why this system lacks the layer, None where it has it; `apply` puts this process into it.

    Without an `is_needed` layer, a reader counts as uncontained. What the others stop, one that is needed stops too.
    """

    name: str
    missing: Callable[[], str | None]
    apply: Callable[[], None]
    is_needed: bool


@dataclass(frozen=True, slots=True)
class MissingLayer:
    """A layer that this system lacks, and why."""

    name: str
    reason: str
    is_needed: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def _of_linux() -> str | None:
    return None if kernel.IS_LINUX else _ELSEWHERE


def _of_seccomp() -> str | None:
    return _of_linux() or seccomp.missing()


def _of_landlock(since: int) -> str | None:
    if not kernel.IS_LINUX:
        return _ELSEWHERE
    try:
        version = landlock.version()
    except OSError as error:
        return f"the kernel has none, or it is turned off ({error.strerror})"
    return None if version >= since else f"the kernel has version {version} of Landlock, and version {since} is needed"


def _nothing() -> None:
    """What a layer does whose work another one has done."""


LAYERS = (
    Layer("no new privileges", _of_linux, kernel.set_no_new_privileges, is_needed=True),
    Layer("undumpable", _of_linux, kernel.set_undumpable, is_needed=True),
    Layer("no capabilities", _of_linux, kernel.drop_capabilities, is_needed=True),
    Layer("Landlock", lambda: _of_landlock(1), landlock.restrict, is_needed=True),
    Layer("Landlock for TCP", lambda: _of_landlock(landlock.NETWORK_SINCE), _nothing, is_needed=False),
    Layer("Landlock for signals", lambda: _of_landlock(landlock.SCOPES_SINCE), _nothing, is_needed=False),
    Layer("seccomp", _of_seccomp, lambda: seccomp.restrict(os.getpid()), is_needed=True),
)
"""In the order in which they are applied: seccomp would refuse the others."""


def missing_layers() -> list[MissingLayer]:
    """The layers that readers lack on this system. Changes nothing."""
    return [
        MissingLayer(layer.name, reason, layer.is_needed) for layer in LAYERS if (reason := layer.missing()) is not None
    ]


def contain(memory_bytes: int, file_bytes: int) -> list[MissingLayer]:
    """Contains this process for ever, as far as the system can, and returns what it lacks.

    Above what it has now it may take `memory_bytes`, and no file may grow beyond `file_bytes`. Descriptors other than
    the standard ones are closed. Afterwards nothing can be imported, so all that is needed must have been.
    """
    _close_descriptors()
    _limit_resources(memory_bytes, file_bytes)
    missing = missing_layers()
    names = {one.name for one in missing}
    for layer in LAYERS:
        if layer.name not in names:
            try:
                layer.apply()
            except OSError as error:
                missing.append(MissingLayer(layer.name, f"the kernel refuses it ({error.strerror})", layer.is_needed))
    return missing


def _close_descriptors() -> None:
    """All but the standard ones. A terminal is closed too: what is written to it could be commands for it."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - no folder of files
        if int(name) > _STDERR:
            with contextlib.suppress(OSError):  # the one of the listing is closed already
                os.close(int(name))
    if os.isatty(_STDERR):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, _STDERR)
        os.close(nothing)


def _limit_resources(memory_bytes: int, file_bytes: int) -> None:
    if kernel.IS_LINUX:  # elsewhere the size at the start is wrong, or takes more packages to find
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + memory_bytes)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    _limit(resource.RLIMIT_NOFILE, MOST_OPEN_FILES)


def _limit(what: int, most: int) -> None:
    """For ever: no process without privileges raises a hard limit."""
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))
