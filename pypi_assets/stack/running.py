"""Keep a stack running in the foreground: start supervisord, wait until it is ready, and restart it if it dies.

The programs belong to supervisord: if this process dies, they continue, and the next process takes over.
"""

import fcntl
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pypi_assets.stack.layout import CELERY_CONFIG, Layout, StackError, instance_yaml, is_ready, workspace_yaml
from pypi_assets.stack.postgres import database_url
from pypi_assets.stack.programs import CELERY, HOST, Ports, StackPlan
from pypi_assets.stack.supervision import (
    Supervisor,
    read_addresses,
    start_supervisor,
    supervisor_output,
    write_supervisor_files,
)

_LOOK_EVERY_S = 0.5
_STOP_LOOK_EVERY_S = 0.2
_PORT_FREE_WITHIN_S = 15.0
"""How long the programs of a killed supervisord may take to end."""
_SOCKET_GONE_WITHIN_S = 3.0
"""How long an ending supervisord may take from its last answer to its end."""
_LONGEST_PAUSE_S = 60.0
_CALM_S = 60.0
"""A supervisord that has run for this long is restarted after the shortest pause."""
Say = Callable[[str], None]


@contextmanager
def only_one(layout: Layout) -> Iterator[bool]:
    """Yield whether no other process keeps this stack running. If so, none can until the end of the block."""
    with layout.lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def write_files(plan: StackPlan, environment: Mapping[str, str], folder: Path) -> None:
    """Write the files of supervisord, Dagster and Celery, for programs that start in `folder`.

    If `environment` has a `DAGSTER_HOME` with a `dagster.yaml`, that file is not changed.
    """
    layout, variables = plan.layout, stack_variables(plan, environment)
    instance = Path(variables["DAGSTER_HOME"]) / "dagster.yaml"
    if instance.parent == layout.dagster_home or not instance.exists():
        on_postgres = "DAGSTER_POSTGRES_URL" in {*variables, *environment}
        instance.write_text(instance_yaml(on_postgres=on_postgres, with_celery=CELERY in plan.parts))
    if CELERY in plan.parts:
        layout.redis.mkdir(exist_ok=True)
        layout.celery.mkdir(exist_ok=True)
        (layout.celery / "dagster_celery_config.py").write_text(CELERY_CONFIG)
    (layout.folder / "workspace.yaml").write_text(workspace_yaml(layout, plan.locations))
    write_supervisor_files(layout, plan.programs(), folder, variables)


def stack_variables(plan: StackPlan, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of all programs in addition to `environment`. None of them is secret."""
    layout = plan.layout
    variables = {"PYTHONUNBUFFERED": "1", "DAGSTER_HOME": environment.get("DAGSTER_HOME") or str(layout.dagster_home)}
    if plan.postgres and "DAGSTER_POSTGRES_URL" not in environment:
        variables["DAGSTER_POSTGRES_URL"] = database_url(layout, "dagster").replace("://", "+psycopg2://")
    if CELERY in plan.parts:
        url = f"redis+socket://{layout.redis_socket}"
        variables |= {"CELERY_BROKER_URL": url, "CELERY_RESULT_BACKEND": url}
        # for the settings of workers, which start in the folder of `.env` like all others
        paths = [str(layout.celery), environment.get("PYTHONPATH", "")]
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return variables | dict(plan.variables)


def require_free_ports(layout: Layout, ports: Ports) -> None:
    """Raise StackError if another process keeps listening on one of the ports.

    If the home was used before, programs of a killed supervisord get some seconds to end.
    """
    options = {"--ui-port": ports.ui, "--port": ports.service, "--metrics-port": ports.metrics}
    until = time.monotonic() + (_PORT_FREE_WITHIN_S if layout.supervisor_file.exists() else 0)
    for option, port in options.items():
        while not _is_free(port):
            if time.monotonic() > until:
                raise StackError(f"another process listens at port {port}: choose another one with {option}")
            time.sleep(_LOOK_EVERY_S)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


@dataclass
class Keeper:
    """Keeps supervisord running until `stopping` is set, or until supervisord ends in order."""

    layout: Layout
    say: Say
    stopping: threading.Event = field(default_factory=threading.Event)
    _child: "subprocess.Popen[bytes] | None" = None
    _started_at: float = 0.0
    _pause_s: float = 1.0
    _is_first_start: bool = False

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.layout)

    def begin(self) -> bool:
        """Start supervisord. Return False if one is already running; wait first if one is ending."""
        if is_running(self.supervisor):
            return False
        self._is_first_start = True
        self._start()
        return True

    def _start(self) -> None:
        self.layout.supervisor_socket.unlink(missing_ok=True)  # left by a killed supervisord
        self._child = start_supervisor(self.layout)
        self._started_at = time.monotonic()

    def await_ready(self) -> bool:
        """Wait until all programs answer at their addresses. Return False if the stack ends first."""
        waiting = read_addresses(self.layout)
        reported: set[str] = set()
        while waiting and not self.stopping.wait(_LOOK_EVERY_S):
            if not self.look():
                return False
            waiting = {name: address for name, address in waiting.items() if not is_ready(address)}
            for state in self.supervisor.states() or ():
                if state.state == "BACKOFF" and state.name not in reported:
                    reported.add(state.name)
                    self.say(f"{state.name} has ended, and is restarted: `pypi-assets up --logs {state.name}`")
        return not waiting

    def watch(self, address: str, when_ready: Callable[[], None]) -> None:
        """Watch the stack until its end, and call `when_ready` when `address` answers."""
        is_waiting = True
        while not self.stopping.wait(_LOOK_EVERY_S) and self.look():
            if is_waiting and is_ready(address):
                is_waiting = False
                when_ready()

    def look(self) -> bool:
        """Restart supervisord if it has died. Return False if it has ended in order."""
        if not self._has_ended():
            return True
        if self._has_ended_in_order():
            return False
        if self._is_first_start and not self.layout.supervisor_socket.exists():
            reason = supervisor_output(self.layout).read_text(errors="replace").strip().splitlines()
            raise StackError(f"supervisord does not start: {reason[0] if reason else 'it prints no reason'}")
        if time.monotonic() - self._started_at > _CALM_S:
            self._pause_s = 1.0
        self.say(f"supervisord has died: restarted in {self._pause_s:.0f} s")
        self._is_first_start = False
        if not self.stopping.wait(self._pause_s):
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            self._start()
        return True

    def _has_ended(self) -> bool:
        if self._child is not None:
            return self._child.poll() is not None
        return not self.supervisor.is_there()

    def _has_ended_in_order(self) -> bool:
        if self._child is not None:
            return self._child.returncode == 0
        until = time.monotonic() + _SOCKET_GONE_WITHIN_S
        while self.layout.supervisor_socket.exists():  # supervisord deletes it last
            if time.monotonic() > until or self.stopping.wait(_STOP_LOOK_EVERY_S):
                return False
        return True

    def stop(self) -> None:
        """Stop all programs, and return when supervisord has ended."""
        while not self._has_ended():
            if not _is_just_starting(self.supervisor):
                self.supervisor.shut_down()
            time.sleep(_STOP_LOOK_EVERY_S)


def stop_stack(layout: Layout) -> bool:
    """Stop the stack of another process, and return when it has ended; return False if there was none."""
    supervisor = Supervisor(layout)
    if not supervisor.is_there():
        return False
    while supervisor.is_there():
        if not _is_just_starting(supervisor):
            supervisor.shut_down()
        time.sleep(_STOP_LOOK_EVERY_S)
    return True


def is_running(supervisor: Supervisor) -> bool:
    """Check whether a supervisord is running. If one is ending, wait for its end."""
    while supervisor.is_there():
        if supervisor.process_id() is not None:
            return True
        time.sleep(_STOP_LOOK_EVERY_S)
    return False


def _is_just_starting(supervisor: Supervisor) -> bool:
    """Check whether a program may still be a copy of supervisord, which would ignore the stop signal."""
    return any(state.state == "STARTING" and state.seconds < 2 for state in supervisor.states() or ())
