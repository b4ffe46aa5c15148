"""The programs of a stack: their commands, the addresses that they wait for, and their own addresses."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pypi_assets.stack.layout import UNIX, Layout, StackError
from pypi_assets.stack.postgres import Server, database_url, missing_extra
from pypi_assets.workspace import CodeLocation

HOST = "127.0.0.1"
CELERY = "celery"
COLORED, JSON = "colored", "json"
"""Formats of Dagster's own logs."""
PARTS = (CELERY,)
"""The values of `--with`."""
WORKERS_RUNS = 2


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports for people and for Prometheus."""

    ui: int = 3000
    service: int = 8642
    metrics: int = 9464


@dataclass(frozen=True, slots=True)
class Program:
    """A process of the stack.

    It starts when all addresses in `awaits` answer. `answers_at` is its own address, if it has one; `layout.py` checks
    the addresses. With `lock`, it first waits for another process that holds this file. A program that `ends` is
    finished when it exits with code 0; other programs are always restarted.
    """

    name: str
    command: tuple[str, ...]
    awaits: tuple[str, ...] = ()
    answers_at: str = ""
    stop_signal: str = "TERM"
    stops_group: bool = True
    user: str = ""
    postgres_lock: Path | None = None
    lock: Path | None = None
    ends: bool = False

    def launch_command(self) -> tuple[str, ...]:
        """Return the command that waits for the needs of the program, and becomes the program."""
        options = [part for address in self.awaits for part in ("--await", address)]
        if self.user:
            options += ["--user", self.user]
        if self.postgres_lock:
            options += ["--postgres-lock", str(self.postgres_lock)]
        if self.lock:
            options += ["--lock", str(self.lock)]
        launch = (sys.executable, "-m", "pypi_assets.stack.launch", "--stop-signal", self.stop_signal)
        return (*launch, *options, "--", *self.command)


@dataclass(frozen=True, slots=True)
class StackPlan:
    """The parts of a stack.

    Without `postgres`, the settings name the databases, or SQLite is used. With `only_database`, only PostgreSQL runs.

    `variables` are settings of the programs in addition to their environment. If there are several indexes, the
    variables select one, and `other_indexes` names the others. `log_format` is the format of the logs of Dagster's
    processes.
    """

    layout: Layout
    ports: Ports
    locations: Sequence[CodeLocation]
    postgres: Server | None = None
    follows: bool = True
    parts: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    other_indexes: Sequence[str] = ()
    log_format: str = COLORED
    only_database: bool = False

    def programs(self) -> list[Program]:
        """Return all programs in the order of their start. They stop in the reverse order."""
        databases: tuple[str, ...] = ()
        first: list[Program] = []
        if self.postgres:
            catalog, dagster = (database_url(self.layout, name) for name in ("catalog", "dagster"))
            databases = (catalog, dagster)
            first.append(_postgres(self.postgres, catalog))
        if self.only_database:
            return first
        logs = ("--log-format", self.log_format)
        code = [_code_server(self.layout, location, databases, logs) for location in self.locations]
        return [
            *first,
            *(_celery(self.layout, databases) if CELERY in self.parts else ()),
            *code,
            *_dagster(self.layout, self.ports, tuple(program.answers_at for program in code), logs),
            *_followers(self.other_indexes, databases, follows=self.follows),
            *_own(self.ports, databases),
        ]


def _postgres(server: Server, url: str) -> Program:
    return Program(
        "postgres",
        server.command,
        answers_at=url,
        stop_signal="INT",  # fast shutdown; with SIGTERM it would wait for all connections
        stops_group=False,
        user=server.user,
        postgres_lock=server.lock_file,
    )


def _code_server(layout: Layout, location: CodeLocation, databases: tuple[str, ...], logs: tuple[str, ...]) -> Program:
    name = "code" if location.is_default else f"code-{location.name}"
    attribute = ("--attribute", location.attribute) if location.attribute else ()
    path = str(layout.code_socket(location.name))
    command = (_script("dagster"), "api", "grpc", "--module-name", location.module, *attribute, "--socket", path, *logs)
    # a server that ends deletes its socket, even if the next server has already created a new one
    return Program(name, command, awaits=databases, answers_at=f"{UNIX}{path}", lock=Path(f"{path}.lock"))


def _dagster(layout: Layout, ports: Ports, awaits: tuple[str, ...], logs: tuple[str, ...]) -> list[Program]:
    workspace = ("--workspace", str(layout.folder / "workspace.yaml"))
    listens = ("--host", HOST, "--port", str(ports.ui))
    return [
        Program("daemon", (_script("dagster-daemon"), "run", *workspace, *logs), awaits=awaits),
        Program(
            "webserver",
            (_script("dagster-webserver"), *workspace, *listens, "--log-level", "warning", *logs),
            awaits=awaits,
            answers_at=f"http://{HOST}:{ports.ui}/server_info",
        ),
    ]


def _followers(other_indexes: Sequence[str], databases: tuple[str, ...], *, follows: bool) -> list[Program]:
    """Return a program for each index. It follows the index, or only makes the first crawl.

    The selected index's program has no suffix; the other names end in the name of the index.
    """
    name, option = ("follower", "--begin") if follows else ("first", "--once")
    programs = []
    for index in ("", *other_indexes):
        command = (_script("pypi-assets"), *(("--index", index) if index else ()), "follow", option)
        programs.append(Program(f"{name}-{index}" if index else name, command, awaits=databases, ends=not follows))
    return programs


def _own(ports: Ports, databases: tuple[str, ...]) -> list[Program]:
    return [
        Program(
            "service",
            (_script("pypi-assets"), "serve", "--host", HOST, "--port", str(ports.service)),
            awaits=databases,
            answers_at=f"http://{HOST}:{ports.service}/healthz",
        ),
        Program(
            "metrics",
            (_script("pypi-assets"), "admin", "metrics", "--listen", f"{HOST}:{ports.metrics}"),
            awaits=databases,
            answers_at=f"http://{HOST}:{ports.metrics}/metrics",
        ),
    ]


def _celery(layout: Layout, databases: tuple[str, ...]) -> list[Program]:
    redis = shutil.which("redis-server")
    if redis is None:
        raise StackError("`--with celery` needs redis-server: install it from your system's packages (redis-server)")
    if not Path(_script("celery")).exists():
        raise missing_extra("celery", CELERY)
    socket = str(layout.redis_socket)
    listens = ("--port", "0", "--unixsocket", socket, "--unixsocketperm", "700")
    keeps = ("--dir", str(layout.redis), "--appendonly", "yes")
    names = ("--queues=dagster", f"--concurrency={WORKERS_RUNS}", "--hostname=stack@%h")
    worker = (_script("celery"), "--app=dagster_celery.app", "worker", *names, "--loglevel=INFO")
    return [
        Program("redis", (redis, *listens, *keeps), answers_at=f"{UNIX}{socket}"),
        Program("worker", worker, awaits=(*databases, f"{UNIX}{socket}")),
    ]


def _script(name: str) -> str:
    """Return the path of a command of this installation, which need not be on PATH."""
    return str(Path(sys.executable).with_name(name))
