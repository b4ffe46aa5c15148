"""Wait for the needs of a program, then become it: `python -m pypi_assets.stack.launch [OPTIONS] -- COMMAND`.

supervisord starts all programs at once, and a program would fail without its database. So this module starts each
program: it waits, and is then replaced by the program. On Linux, the program is also stopped when supervisord dies, so
that the next supervisord does not start a second copy.
"""

import argparse
import fcntl
import logging
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from pypi_assets.distributions.containment import kernel
from pypi_assets.logs import set_up_logs
from pypi_assets.stack.layout import is_ready

_LOOK_EVERY_S = 0.3
_log = logging.getLogger("pypi_assets.stack.launch")  # `__name__` would be `__main__`


def main(arguments: Sequence[str] | None = None) -> None:
    """Wait, and replace this process with the command."""
    parser = argparse.ArgumentParser(prog="python -m pypi_assets.stack.launch")
    parser.add_argument("--await", dest="awaited", action="append", default=[], metavar="ADDRESS")
    parser.add_argument("--stop-signal", default="TERM", help="the signal that the kernel sends when supervisord dies")
    parser.add_argument("--user", help="run the command as this user; requires root")
    parser.add_argument("--postgres-lock", type=Path, help="a postmaster.pid to delete if no server holds it")
    parser.add_argument("--lock", type=Path, help="a file to lock until the command ends")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    set_up_logs()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    stop_signal = signal.Signals[f"SIG{options.stop_signal}"]
    _stop_with_parent(stop_signal)
    if options.lock:
        _hold(options.lock)
    for address in options.awaited:
        _await(address)
    if options.postgres_lock:
        delete_stale_lock(options.postgres_lock)
    if options.user:
        _become(options.user)
        _stop_with_parent(stop_signal)  # a change of the user resets it in the kernel
    os.execvp(options.command[0], options.command)  # noqa: S606 - the command is the plan's


def _stop_with_parent(number: signal.Signals) -> None:
    if kernel.IS_LINUX:
        kernel.set_parent_death_signal(number)


def _await(address: str) -> None:
    if is_ready(address):
        return
    _log.info("waiting for %s", address)
    while not is_ready(address):
        time.sleep(_LOOK_EVERY_S)


def _hold(path: Path) -> None:
    """Wait until no other process holds the file, then hold it until this process and its command end."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.set_inheritable(descriptor, True)
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def _become(name: str) -> None:
    import pwd

    user = pwd.getpwnam(name)
    os.chdir("/")
    os.initgroups(name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.environ["HOME"] = user.pw_dir


def delete_stale_lock(path: Path) -> None:
    """Delete PostgreSQL's lock file if its process is not a PostgreSQL server.

    PostgreSQL itself only checks whether a process with this ID exists. After a restart of the machine, this can be any
    other process.
    """
    import psutil

    try:
        number = int(path.read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return
    try:
        is_server = psutil.Process(number).name() == "postgres"
    except psutil.NoSuchProcess:
        is_server = False
    if not is_server:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
