"""Control supervisord: its configuration file, its start, and calls to its socket.

supervisord restarts programs that end. A program that ends within STARTED_AFTER_S waits a second longer after each
attempt. So after an outage of T seconds, the pause is about the square root of 2T: 7 minutes after a day.
"""

import http.client
import json
import os
import pwd
import shlex
import subprocess
import sys
import xmlrpc.client
from collections.abc import Iterable, Mapping, Sequence
from configparser import RawConfigParser
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast

from pypi_assets.stack.layout import UNIX, Layout, is_ready
from pypi_assets.stack.postgres import missing_extra
from pypi_assets.stack.programs import Program

STARTED_AFTER_S = 10
STOPPED_WITHIN_S = 60
LOG_BYTES = 10 * 1024**2
LOGS_KEPT = 3
_ALWAYS = 1_000_000  # attempts, with growing pauses
_PROGRAM = "program:"
_UNREACHABLE = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class State:
    """The state of a program in supervisord: STARTING, RUNNING, BACKOFF, STOPPING, STOPPED, EXITED or FATAL.

    `pid` is 0 if there is no process. `seconds` is the time in this state.
    """

    name: str
    state: str
    pid: int
    seconds: int

    @property
    def is_well(self) -> bool:
        """Check whether it is running, or has ended in order."""
        return self.state in {"STARTING", "RUNNING", "EXITED"}


def supervisor_conf(layout: Layout, programs: Iterable[Program], folder: Path) -> str:
    """Return the content of `supervisord.conf`. Programs start in `folder`."""
    file = RawConfigParser()
    file["unix_http_server"] = {"file": _escaped(layout.supervisor_socket), "chmod": "0700"}
    file["supervisord"] = {
        "nodaemon": "true",
        "silent": "true",
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "logfile": _escaped(layout.logs / "supervisord.log"),
        "pidfile": _escaped(layout.folder / "supervisord.pid"),
        "childlogdir": _escaped(layout.logs),
    }
    file["rpcinterface:supervisor"] = {
        "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
    }
    for number, program in enumerate(programs, start=1):
        file[f"{_PROGRAM}{program.name}"] = {
            "command": _escaped(shlex.join(program.launch_command())),
            "directory": _escaped(folder),
            "priority": str(number),
            "autorestart": "unexpected" if program.ends else "true",
            "startsecs": "0" if program.ends else str(STARTED_AFTER_S),
            "startretries": str(_ALWAYS),
            "stopsignal": program.stop_signal,
            "stopwaitsecs": str(STOPPED_WITHIN_S),
            "stopasgroup": str(program.stops_group).lower(),
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": _escaped(log_of(layout, program.name)),
            "stdout_logfile_maxbytes": str(LOG_BYTES),
            "stdout_logfile_backups": str(LOGS_KEPT),
        }
    text = StringIO()
    file.write(text)
    return text.getvalue()


def program_names(path: Path) -> list[str]:
    """Return the names of the programs in supervisord's file, in the order of their start."""
    file = RawConfigParser()
    file.read(path, encoding="utf-8")
    return [section.removeprefix(_PROGRAM) for section in file.sections() if section.startswith(_PROGRAM)]


def write_supervisor_files(
    layout: Layout, programs: Sequence[Program], folder: Path, variables: Mapping[str, str]
) -> None:
    """Write supervisord's file, and a file for later processes with supervisord's variables and the programs'
    addresses.
    """
    layout.supervisor_file.write_text(supervisor_conf(layout, programs, folder), encoding="utf-8")
    addresses = {program.name: program.answers_at for program in programs if program.answers_at}
    content = {"addresses": addresses, "variables": dict(variables)}
    layout.description_file.write_text(json.dumps(content, indent=2), encoding="utf-8")


def read_addresses(layout: Layout) -> dict[str, str]:
    """Return the addresses of the programs that have one, by name, as in `layout.py`."""
    return _description(layout, "addresses")


def _description(layout: Layout, part: str) -> dict[str, str]:
    found: dict[str, dict[str, str]] = json.loads(layout.description_file.read_text(encoding="utf-8"))
    return found[part]


def log_of(layout: Layout, name: str) -> Path:
    """Return the log file of a program. `supervisord` has one, too."""
    return layout.logs / f"{name}.log"


def start_supervisor(layout: Layout) -> "subprocess.Popen[bytes]":
    """Start supervisord with the files of the stack, in a new session, so that a terminal's signals do not reach it.

    It gets the environment of this process, and the variables of the stack.
    """
    layout.make_sockets_folder()
    with supervisor_output(layout).open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - this installation's supervisord
            [sys.executable, "-m", "supervisor.supervisord", "--configuration", str(layout.supervisor_file)],
            env=os.environ | _description(layout, "variables"),
            cwd=layout.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def supervisor_output(layout: Layout) -> Path:
    """Return the file with supervisord's output, which has the reason if it does not start."""
    return layout.logs / "supervisord.out"


class Supervisor:
    """Calls to the supervisord of a stack. Creating it raises StackError if the extra is not installed."""

    def __init__(self, layout: Layout) -> None:
        try:
            from supervisor.xmlrpc import SupervisorTransport
        except ImportError as error:
            raise missing_extra("supervisord") from error
        self._transport = SupervisorTransport
        self._socket, self._file = layout.supervisor_socket, layout.supervisor_file

    def states(self) -> list[State] | None:
        """Return the states of all programs in the order of their start, or None if supervisord is ending or not
        running.
        """
        rows = self._call("getAllProcessInfo")
        if rows is None:
            return None
        names = program_names(self._file)
        return [
            State(
                row["name"],
                row["statename"],
                row["pid"],
                max(row["now"] - (row["start"] if row["pid"] else row["stop"] or row["now"]), 0),
            )
            for row in sorted(cast("list[dict[str, Any]]", rows), key=lambda row: names.index(row["name"]))
        ]

    def is_there(self) -> bool:
        """Check whether a supervisord exists, which may be ending."""
        return is_ready(f"{UNIX}{self._socket}")

    def process_id(self) -> int | None:
        """Return the process ID of supervisord, or None if it is ending or not running."""
        return cast("int | None", self._call("getPID"))

    def shut_down(self) -> bool:
        """Stop all programs and supervisord; return whether there was one."""
        return self._call("shutdown") is not None

    def _call(self, method: str) -> object | None:
        """Return the result of a method, or None if supervisord is ending or not running."""
        transport = self._transport(None, None, f"unix://{self._socket}")
        try:
            proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport, allow_none=True)
            result: object = getattr(proxy.supervisor, method)()
        except _UNREACHABLE:
            return None
        except xmlrpc.client.Fault as fault:
            if fault.faultString.startswith("SHUTDOWN_STATE"):
                return None
            raise
        finally:
            transport.close()
        return result


def _escaped(value: object) -> str:
    """Escape `%`, which supervisord's file would expand."""
    return str(value).replace("%", "%%")
