"""The layout of a stack's folder: sockets, folders, files of Dagster and systemd, and checks for readiness."""

import hashlib
import os
import socket
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from pypi_assets.errors import ExpectedError
from pypi_assets.workspace import CodeLocation

LONGEST_SOCKET_PATH = 100
"""The kernel's limit is 103 or 107 bytes, depending on the system."""
POSTGRES_SOCKET = ".s.PGSQL.5432"


class StackError(ExpectedError):
    """The stack cannot be started or reached. The message names the setting to change or the command to run."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a home's stack.

    >>> Layout(Path("/srv/home")).supervisor_file.as_posix()
    '/srv/home/stack/supervisord.conf'
    """

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "stack"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def dagster_home(self) -> Path:
        return self.folder / "dagster"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def postgres_programs(self) -> Path:
        """Return a link to the folder of PostgreSQL's programs, such as `pg_dump`."""
        return self.folder / "programs"

    @property
    def celery(self) -> Path:
        return self.folder / "celery"

    @property
    def redis(self) -> Path:
        return self.folder / "redis"

    @property
    def supervisor_file(self) -> Path:
        return self.folder / "supervisord.conf"

    @property
    def description_file(self) -> Path:
        return self.folder / "stack.json"

    @property
    def lock_file(self) -> Path:
        return self.folder / "up.lock"

    @property
    def sockets(self) -> Path:
        """Return the folder of all sockets: below the temporary folder if the path would be too long for a socket."""
        near = self.folder / "run"
        if len(os.fsencode(near / "postgres" / POSTGRES_SOCKET)) <= LONGEST_SOCKET_PATH:
            return near
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"pypi-assets-{os.geteuid()}-{digest}"

    @property
    def postgres_sockets(self) -> Path:
        return self.sockets / "postgres"

    @property
    def supervisor_socket(self) -> Path:
        return self.sockets / "supervisor"

    @property
    def redis_socket(self) -> Path:
        return self.sockets / "redis"

    def code_socket(self, location: str) -> Path:
        """Return the socket of a code location's server."""
        digest = hashlib.sha256(location.encode()).hexdigest()[:8]
        return self.sockets / f"code-{digest}"

    def make_folders(self) -> None:
        """Create the missing folders. Raises StackError if another user owns the folder of sockets."""
        for folder in (self.folder, self.logs, self.dagster_home):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.make_sockets_folder()

    def make_sockets_folder(self) -> None:
        """Create the folder of sockets, which may have been deleted from the temporary folder.

        Raises StackError if another user owns it.
        """
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        owner = self.sockets.lstat().st_uid
        if self.sockets.is_symlink() or owner != os.geteuid():
            raise StackError(f"{self.sockets} belongs to user {owner}: delete it, or choose another --folder")
        # root's PostgreSQL runs as another user, which must reach its own folder in this one
        self.sockets.chmod(0o711 if os.geteuid() == 0 else 0o700)


_HEADER = "# Written by `pypi-assets up`, which replaces it at each start.\n"
_POSTGRES = {
    "custom": {
        "module": "pypi_assets.dagster_instance.postgres_storage",
        "class": "PooledPostgresStorage",
        "config": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}},
    }
}
_OF_CODE_SERVER = {"module": "pypi_assets.dagster_instance.run_launcher", "class": "WatchedRunLauncher"}
_OF_CELERY = {
    "module": "pypi_assets.dagster_instance.celery_launcher",
    "class": "WatchedCeleryRunLauncher",
    "config": {"broker": {"env": "CELERY_BROKER_URL"}, "backend": {"env": "CELERY_RESULT_BACKEND"}},
}
CELERY_CONFIG = "from pypi_assets.dagster_instance.celery_settings import *  # noqa: F403\n"
"""The module that Dagster's app for Celery imports from a worker's folder."""


def instance_yaml(*, on_postgres: bool, with_celery: bool) -> str:
    """Return the content of `dagster.yaml`: the file for one machine, with this stack's storage and run launcher."""
    text = files("pypi_assets.dagster_instance").joinpath("dagster.yaml").read_text(encoding="utf-8")
    instance: dict[str, Any] = yaml.safe_load(text)
    if on_postgres:
        instance["storage"] = _POSTGRES
    instance["run_launcher"] = _OF_CELERY if with_celery else _OF_CODE_SERVER
    return _HEADER + str(yaml.safe_dump(instance, sort_keys=False))


def workspace_yaml(layout: Layout, locations: Iterable[CodeLocation]) -> str:
    """Return the content of `workspace.yaml`: the socket of each code location's server."""
    servers = [
        {"grpc_server": {"socket": str(layout.code_socket(one.name)), "location_name": one.name}} for one in locations
    ]
    return _HEADER + str(yaml.safe_dump({"load_from": servers}, sort_keys=False))


UNIT = "pypi-assets.service"
STOPPED_WITHIN_S = 180
WRONG_USAGE = 2
"""The exit code for wrong options and settings, which no restart repairs."""


def unit_text(command: Sequence[str], folder: Path) -> str:
    """Return the systemd unit that runs `command`, which is `pypi-assets up` with its options, in `folder`.

    systemd restarts it if it fails or is killed. It stays stopped after `pypi-assets up --stop`.
    """
    return f"""\
[Unit]
Description=pypi-assets: the whole pipeline on one machine
StartLimitIntervalSec=0

[Service]
Type=exec
WorkingDirectory={_escaped(str(folder))}
ExecStart={" ".join(map(_quoted, command))}
Restart=on-failure
RestartPreventExitStatus={WRONG_USAGE}
RestartSec=5
KillMode=mixed
TimeoutStopSec={STOPPED_WITHIN_S}

[Install]
WantedBy=default.target
"""


def units_folder(environment: dict[str, str]) -> Path:
    """Return the folder with the systemd units of this user."""
    configuration = environment.get("XDG_CONFIG_HOME")
    return (Path(configuration) if configuration else Path.home() / ".config") / "systemd" / "user"


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(argument: str) -> str:
    """Quote an argument for `ExecStart`."""
    escaped = _escaped(argument).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"' if escaped != argument or " " in argument or not argument else argument


UNIX = "unix:"
_ANSWER_WITHIN_S = 3


def is_ready(address: str) -> bool:
    """Check whether the server at the address answers: an HTTP status 200, a database query, or an accepted
    connection.
    """
    if address.startswith("http://"):
        return _answers(address)
    if address.startswith("postgresql://"):
        return _is_database(address)
    return _accepts(address.removeprefix(UNIX))


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy, since it is on this machine
    try:
        with opener.open(url, timeout=_ANSWER_WITHIN_S) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _is_database(url: str) -> bool:
    import psycopg  # the import takes 0.1 s, and most processes wait for no database

    try:
        with psycopg.connect(url, connect_timeout=_ANSWER_WITHIN_S) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_ANSWER_WITHIN_S)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
