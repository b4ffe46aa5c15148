"""Run the services of deploy/compose.yaml as processes on this machine, with the same commands and files."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
import yaml

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
VARIABLE_PREFIXES = ("PYPI_ASSETS_", "DAGSTER_", "AWS_", "CELERY_", "RCLONE_", "SECRETS_")
START_WITHIN_S = 120
LOOPBACK = "127.0.0.1"
ENTRY_POINTS = {"redis": [], "s3": [str(DEPLOY / "with_secrets"), "rclone"]}
"""Entry points of the services with foreign images. Commands of our image are links to `with_secrets`."""
LISTENS = {
    "redis": "REDIS_PORT",
    "s3": "S3_ADDRESS",
    "code": "DAGSTER_GRPC_PORT",
    "daemon": None,
    "webserver": "DAGSTER_WEBSERVER_PORT",
    "metrics": "METRICS_PORT",
    "worker": None,
}
"""All services except PostgreSQL, in starting order, and the variable with the address of each."""

OURS = [str(DEPLOY / "with_secrets")]
IMAGE = os.environ.get("DEPLOY_IMAGE")
"""The root of an image's file system from which our services are started, or None for this checkout."""
_IN_IMAGE = """
set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay none -o lowerdir="$1",upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
for folder in /proc /dev /tmp; do mount --rbind "$folder" "/mnt/root$folder"; done
mount -o remount,ro /mnt/root
folder="$PWD"; shift
exec chroot /mnt/root /usr/bin/env PATH=/usr/local/bin:/opt/pypi-assets/bin:/usr/bin:/bin \
    /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""
_VARIABLE = re.compile(r"\$\{(\w+)(?::\?[^}]*)?\}")


def _put_in(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values[match[1]], text)


def read_environment(path: Path, others: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of an environment file, as Compose and a shell read it. `others` take precedence."""
    values: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            values[name] = (others or {}).get(name, _put_in("".join(shlex.split(value)), values))
    return values


def local_environment(index_url: str, postgres_url: str, secrets: Path, address: str = LOOPBACK) -> dict[str, str]:
    """Return the variables of `env.example`, for an index and a PostgreSQL server on this machine, with free ports.

    The store and Redis listen at `address`, where workers on other machines reach them. The folder `secrets` is written
    by `make_secrets`, except for the URLs of the databases.
    """
    s3, code, webserver, metrics, redis = free_ports(5)
    secrets.mkdir(parents=True)
    (secrets / "database_url").write_text(postgres_url.replace("/postgres?", "/catalog?"))
    of_dagster = postgres_url.replace("/postgres?", "/dagster?").replace("://", "+psycopg2://")
    (secrets / "dagster_postgres_url").write_text(of_dagster)
    made = {"FOLDER": str(secrets.parent), "REDIS_HOST": address, "REDIS_PORT": str(redis), "PATH": os.environ["PATH"]}
    subprocess.run([DEPLOY / "make_secrets", "me@example.org"], env=made, stdout=subprocess.DEVNULL, check=True)
    return read_environment(
        secrets.parent / ".env",
        {
            "PYPI_ASSETS_INDEX_URL": index_url,
            "PYPI_ASSETS_REQUESTS_PER_SECOND": "1000",
            "PYPI_ASSETS_SENSOR_INTERVAL_S": "5",
            "PYPI_ASSETS_RANGE_MIN_AGE_S": "0",
            "SECRETS_DIR": str(secrets),
            "AWS_ENDPOINT_URL": f"http://{address}:{s3}",
            "S3_ADDRESS": f"{address}:{s3}",
            "DAGSTER_CODE_HOST": LOOPBACK,
            "DAGSTER_GRPC_HOST": LOOPBACK,
            "DAGSTER_GRPC_PORT": str(code),
            "DAGSTER_WEBSERVER_HOST": LOOPBACK,
            "DAGSTER_WEBSERVER_PORT": str(webserver),
            "METRICS_HOST": LOOPBACK,
            "METRICS_PORT": str(metrics),
            "REDIS_PORT": str(redis),
        },
    )


def secret(environment: Mapping[str, str], name: str) -> str:
    """Return the content of a file in the folder of secrets."""
    return Path(environment["SECRETS_DIR"], name).read_text()


def compose_services(environment: Mapping[str, str], *paths: Path) -> dict[str, Any]:
    """Return the services of Compose files, with variables replaced in commands. Later files override earlier ones."""
    services: dict[str, Any] = {}
    for path in paths:
        for name, service in yaml.safe_load(path.read_text())["services"].items():
            services[name] = services.get(name, {}) | service
    for service in services.values():
        service["command"] = [_put_in(part, environment) for part in service.get("command", ())]
    return services


def instance_file(launcher: Path | str = "run_launcher.yaml") -> str:
    """Return the configuration of Dagster's instance with one of the launchers, joined as in the image."""
    return (DEPLOY / "dagster.yaml").read_text() + (DEPLOY / launcher).read_text()


@dataclass(frozen=True)
class Network:
    """A network namespace. A command after `enter` runs in it, and reaches this machine only at `address`."""

    enter: Sequence[str]
    address: str


def _delete_abandoned_networks() -> None:
    """Delete the network namespaces of tests that were killed."""
    listed = subprocess.run(["ip", "netns", "list"], check=False, capture_output=True, text=True).stdout
    for name in re.findall(r"^elsewhere\d+", listed, re.MULTILINE):
        if not Path("/proc", name.removeprefix("elsewhere")).exists():
            subprocess.run(["ip", "netns", "delete", name], check=False)


@contextmanager
def own_network() -> Iterator[Network | None]:
    """Create a network namespace with one link to this machine. Yield None if this process may not create one."""
    name = f"elsewhere{os.getpid()}"
    # the addresses must be unique: a second link with the same address would receive the packets of the first
    third, fourth = divmod(os.getpid() % (256 * 64), 64)
    here, there = f"10.231.{third}.{4 * fourth + 1}", f"10.231.{third}.{4 * fourth + 2}"
    within = ("ip", "netns", "exec", name)
    may = os.geteuid() == 0 and shutil.which("ip")
    if may:
        _delete_abandoned_networks()
    if not may or subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode:
        yield None
        return
    try:
        for command in (
            ("ip", "link", "add", name[-15:], "type", "veth", "peer", "name", "eth0", "netns", name),
            ("ip", "address", "add", f"{here}/30", "dev", name[-15:]),
            ("ip", "link", "set", name[-15:], "up"),
            (*within, "ip", "address", "add", f"{there}/30", "dev", "eth0"),
            (*within, "ip", "link", "set", "eth0", "up"),
            (*within, "ip", "link", "set", "lo", "up"),
        ):
            subprocess.run(command, check=True)
        yield Network(within, here)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@dataclass
class Deployment:
    """The services of Compose files except PostgreSQL, with the variables of `environment`.

    `root` stands for the root of a container's file system. Output is written to `logs`.
    """

    root: Path
    environment: dict[str, str]
    files: Sequence[str] = ("compose.yaml",)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.services = compose_services(self.environment, *(DEPLOY / name for name in self.files))
        (self.root / "logs").mkdir(parents=True)
        shutil.copytree(DEPLOY / "celery", self.home / "celery")
        self.bucket.mkdir(parents=True)
        shutil.copy(DEPLOY / "workspace.yaml", self.home)
        for folder in (Path(), Path("celery")):
            (self.home / folder / "dagster.yaml").write_text(instance_file(folder / "run_launcher.yaml"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLE_PREFIXES)}
        commands = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])
        image = {"PATH": commands, "DAGSTER_HOME": str(self.home), "PYPI_ASSETS_HOME": str(self.home)}
        self.variables = kept | image | self.environment

    @property
    def home(self) -> Path:
        """The folder of Dagster's files in the image, which is the working directory of its processes."""
        return self._within("/var/lib/pypi-assets")

    @property
    def bucket(self) -> Path:
        """The folder at which the volume `store` is mounted."""
        return self._within(f"/srv/buckets/{self.environment['DAGSTER_S3_BUCKET']}")

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.environment['DAGSTER_WEBSERVER_PORT']}/graphql"

    def start(self, *names: str) -> None:
        """Start the named services, or all that are not running, in the order of their dependencies."""
        for name, listens in LISTENS.items():
            if name in (names or self.services) and name not in self.running:
                self._start(name, name)
                if listens is not None:
                    self._await_port(name, self.environment[listens])

    def start_another(self, name: str, called: str, network: Network | None = None, *options: str) -> None:
        """Start another instance of a service, as `--scale` does. With a `network`, it runs as on another machine.

        `options` are appended to its command.
        """
        self._start(name, called, network, options)

    def kill(self, called: str) -> None:
        """Kill a service and all its child processes immediately."""
        killed = self.running.pop(called)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()

    def kill_runs(self) -> int:
        """Kill the process of each run with SIGKILL, but not its child processes. Return the number of killed runs."""
        of_code = psutil.Process(self.running["code"].pid).children()
        of_runs = [one for one in of_code if "spawn_main" in " ".join(one.cmdline())]
        for one in of_runs:
            one.kill()
        return len(of_runs)

    def stop(self) -> None:
        """Stop all services and the runs that they started, and wait until they have ended."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self.running.values():
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            for process in self.running.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(20)
        self.running.clear()

    def run(self, *command: str) -> str:
        """Run a command in the environment of the services, as `docker compose run` does, and return its output."""
        done = subprocess.run(
            self._of_image(command), cwd=self.home, env=self.variables, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode()

    def log_of(self, name: str) -> str:
        return (self.root / "logs" / name).read_text(errors="replace")

    def last_logs(self) -> str:
        """Return the end of each process's output."""
        return "\n".join(f"--- {log.name}\n{self.log_of(log.name)[-2000:]}" for log in (self.root / "logs").iterdir())

    def _of_image(self, command: Sequence[str]) -> list[str]:
        return in_image(IMAGE, ["with_secrets", *command]) if IMAGE else [*OURS, *command]

    def _within(self, path: str) -> Path:
        return self.root / path.removeprefix("/")

    def _start(self, name: str, called: str, network: Network | None = None, options: Sequence[str] = ()) -> None:
        service = self.services[name]
        folders = {variable: str(self._within(path)) for variable, path in service.get("environment", {}).items()}
        begins_in = self._within(service["working_dir"]) if "working_dir" in service else self.home
        begins_in.mkdir(parents=True, exist_ok=True)
        command = [*service["command"], *options]
        started = [*ENTRY_POINTS[name], *command] if name in ENTRY_POINTS else self._of_image(command)
        with (self.root / "logs" / called).open("ab") as log:
            self.running[called] = subprocess.Popen(
                [*(network.enter if network else ()), *started],
                cwd=begins_in,
                env=self.variables | folders,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await_port(self, name: str, listens: str) -> None:
        address, _, port = listens.rpartition(":")
        deadline = time.monotonic() + START_WITHIN_S
        pause = threading.Event()
        while time.monotonic() < deadline and self.running[name].poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex((address or LOOPBACK, int(port))) == 0:
                    return
            pause.wait(0.2)
        raise AssertionError(f"{name} does not accept connections\n{self.last_logs()}")


def free_ports(count: int) -> list[int]:
    """Return ports of this machine on which no process listens."""
    with ExitStack() as opened:
        probes = [opened.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def free_port() -> int:
    [port] = free_ports(1)
    return port


def in_image(image: str, command: Sequence[str]) -> list[str]:
    """Return a command that runs in the read-only file system of an image. This requires root.

    It shares this machine's network and folders for temporary files.
    """
    return ["unshare", "--mount", "sh", "-c", _IN_IMAGE, "sh", image, *command]


@contextmanager
def own_disk(folder: Path, size_bytes: int) -> Iterator[bool]:
    """Make the folder, with a separate small file system. Yield whether this process may mount one."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_disk(folder: Path) -> Path:
    """Write a file that takes all free space, and return its path."""
    path = folder / "filling"
    with path.open("wb", buffering=0) as file:
        for size in (1024**2, 4096):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                pass
    return path


def make_databases(server_url: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        for statement in (DEPLOY / "postgres" / "databases.sql").read_text().split(";"):
            connection.execute(statement)  # type: ignore[call-overload]


def drop_databases(server_url: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        for name in ("catalog", "dagster"):
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[call-overload]
