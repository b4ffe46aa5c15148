"""`pypi-assets up` over an index of 200 projects: the first answer, and each process killed without loss."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dotenv import dotenv_values

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.deploy.services import DEPLOY, VARIABLE_PREFIXES, free_ports
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.served_index import served_index

pytestmark = pytest.mark.deploy

PROJECTS = 200
FIRST_ANSWER_WITHIN_S = 90
BACK_WITHIN_S = 180
PROGRAM = str(Path(sys.executable).with_name("pypi-assets"))
MADE_AT_ONCE = "WARNING:root:Retrying failed database creation"
"""Dagster's line if two processes create its tables at the same time, logged before logging is configured."""


@dataclass
class Up:
    """The command `up` in a folder with a `.env`, over an index of PROJECTS projects that require each other."""

    folder: Path
    history: History
    ports: list[int]
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None
    seen: list[tuple[str, float]] = field(default_factory=list)

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLE_PREFIXES)}
        return kept | {"PYTHONPATH": str(Path(__file__).parent.parent.parent)} | self.environment

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [PROGRAM, *arguments], cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False
        )

    def start(self) -> None:
        ui, service, metrics = map(str, self.ports)
        ports = ("--ui-port", ui, "--port", service, "--metrics-port", metrics)
        with (self.folder / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "up", *ports, *self.options], cwd=self.folder, env=self.variables, stdout=log, stderr=log
            )

    def signal(self, number: signal.Signals) -> int:
        """Send a signal to `up` itself, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(BACK_WITHIN_S)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of `up --status`, or none if no stack is running."""
        done = self.run("up", "--status", "--json")
        return json.loads(done.stdout) if done.stdout else []

    def pids(self) -> dict[str, int | None]:
        return {row["name"]: row["pid"] for row in self.rows()}

    def is_well(self) -> bool:
        return self.run("up", "--status").returncode == 0

    def answer(self, *question: str) -> Any:
        """Return the rows of a lookup, or None if it fails."""
        done = self.run("lookup", *question, "--json")
        return None if done.returncode else json.loads(done.stdout)

    def until(self, condition: Callable[[], object], within_s: float = BACK_WITHIN_S) -> float:
        """Wait for the condition, and return the duration."""
        begun, pause = time.monotonic(), threading.Event()
        while not condition():
            if time.monotonic() - begun > within_s:
                raise AssertionError(f"not met after {within_s} s\n{self.run('up', '--status').stdout}\n{self.logs()}")
            pause.wait(0.5)
        return time.monotonic() - begun

    def logs(self) -> str:
        return (self.folder / "up.log").read_text() + self.run("up", "--logs").stdout

    @property
    def home(self) -> Path:
        return self.folder / ".pypi-assets"

    def script(self, name: str, backup: Path) -> None:
        """Run deploy/backup or deploy/restore as docs/operations.md describes, with rclone on the PATH."""
        path = os.pathsep.join([str(self.home / "stack" / "programs"), str(Path(PROGRAM).parent), os.environ["PATH"]])
        given = {"PATH": path, "STORE": str(self.home / "storage")}
        given["CATALOG_URL"] = (self.home / "catalog_url").read_text().strip()
        subprocess.run([DEPLOY / name, backup], env=self.variables | given, check=True)

    def upload(self, project: str, version: str) -> None:
        self.history.add(make_wheel(self.folder, project, version, files={f"{project}_module/__init__.py": ""}))

    def knows(self, project: str, version: str) -> bool:
        found = self.answer("project", f"{project}=={version}")
        return bool(found)

    def set(self, **settings: str) -> None:
        """Add settings to `.env`."""
        with (self.folder / ".env").open("a") as file:
            file.writelines(f"PYPI_ASSETS_{name.upper()}={value}\n" for name, value in settings.items())


@contextmanager
def operated(folder: Path, projects: int) -> Iterator[Up]:
    """Serve an index of `projects` projects, each of which requires the next one. Stop the stack at the end."""
    history = History(folder / "index")
    for number in range(projects):
        requires = [f"project{number + 1}"] if number + 1 < projects else []
        history.add(
            make_wheel(
                folder, f"project{number}", "1.0", requires_dist=requires, files={f"module{number}/__init__.py": ""}
            )
        )
    home = folder / "operator"
    home.mkdir()
    with running(folder / "index") as url:
        stack = Up(home, history, free_ports(3))
        assert stack.run("init", "--index", url, "--yes").returncode == 0
        try:
            yield stack
        finally:
            if stack.process and stack.process.poll() is None:
                stack.process.kill()
                stack.process.wait()
            stack.run("up", "--stop")


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with operated(tmp_path, PROJECTS) as stack:
        yield stack


def answers(stack: Up) -> dict[str, Any]:
    """Return answers of all kinds that must not change."""
    return {
        "module": stack.answer("module", "module7"),
        "dependents": stack.answer("dependents", "project199", "--transitive"),
        "project": stack.answer("project", "project7==1.0"),
    }


@pytest.mark.nightly
def test_up_answers_and_recovers_from_a_kill_of_each_process(up: Up):
    up.start()
    up.seen.append(("first answer", up.until(lambda: up.answer("module", "module7"), FIRST_ANSWER_WITHIN_S)))
    up.until(up.is_well)
    expected = answers(up)
    assert all(expected.values())
    assert len(expected["dependents"]) == PROJECTS - 1

    names = [row["name"] for row in up.rows()]
    assert names == ["postgres", "code", "daemon", "webserver", "follower", "service", "metrics"]
    for number, name in enumerate(names):
        killed = up.pids()[name]
        assert killed
        os.kill(killed, signal.SIGKILL)
        up.upload("later", f"{number + 1}.0")
        back = up.until(lambda name=name, killed=killed: up.is_well() and up.pids()[name] != killed)
        up.until(lambda number=number: up.knows("later", f"{number + 1}.0"))
        up.seen.append((f"kill -9 of {name}", back))
        assert answers(up) == expected

    supervisor = int((up.folder / ".pypi-assets" / "stack" / "supervisord.pid").read_text())
    before = up.pids()
    os.kill(supervisor, signal.SIGKILL)
    up.seen.append(("kill -9 of supervisord", up.until(lambda: up.is_well() and up.pids() != before)))
    assert answers(up) == expected

    before = up.pids()
    up.signal(signal.SIGKILL)
    assert up.pids() == before
    up.start()
    up.until(lambda: (up.folder / "up.log").read_text().count("Dagster's UI") == 2)
    assert up.pids() == before

    assert up.signal(signal.SIGINT) == 0
    assert up.rows() == []
    up.start()
    up.until(up.is_well)
    assert answers(up) == expected
    assert up.run("up", "--stop").returncode == 0
    assert up.process is not None
    assert up.process.wait(BACK_WITHIN_S) == 0
    sys.stdout.write("".join(f"{what}: {seconds:.0f} s\n" for what, seconds in up.seen))


def test_up_is_restored_from_a_backup(tmp_path: Path):
    with operated(tmp_path, 3) as up:
        up.start()
        up.until(lambda: up.answer("dependents", "project2"))
        expected = up.answer("dependents", "project2", "--transitive")
        assert len(expected) == 2
        up.script("backup", tmp_path / "backup")  # while the stack runs
        assert up.signal(signal.SIGTERM) == 0
        shutil.rmtree(up.home)
        up.options = ("--only-database",)
        up.start()
        up.until(lambda: [(row["name"], row["answers"]) for row in up.rows()] == [("postgres", True)])
        up.script("restore", tmp_path / "backup")
        assert up.run("admin", "restore").returncode == 0
        assert up.signal(signal.SIGINT) == 0
        up.options = ()
        up.start()
        up.until(up.is_well)
        assert up.answer("dependents", "project2", "--transitive") == expected
        up.upload("later", "1.0")
        up.until(lambda: up.knows("later", "1.0"))
        assert up.signal(signal.SIGTERM) == 0


@pytest.mark.nightly
def test_up_with_celery_on_sqlite_the_sensors_follow(up: Up):
    assert shutil.which("redis-server")
    up.options = ("--with", "celery", "--database", "sqlite", "--no-follower")
    up.set(sensor_interval_s="5", log_format="json")
    up.start()
    up.until(lambda: up.answer("module", "module7"))
    up.until(up.is_well)
    states = {row["name"]: row["state"] for row in up.rows()}
    assert list(states) == ["redis", "worker", "code", "daemon", "webserver", "first", "service", "metrics"]
    assert states["first"] == "exited"
    assert "postgres" not in states
    up.upload("later", "1.0")
    up.until(lambda: up.knows("later", "1.0"))
    path = up.folder / ".pypi-assets" / "stack" / "logs" / "worker.log"
    succeeded = re.compile(r'^\{.*"logger": "celery\..* succeeded .*\}$', re.MULTILINE)
    up.until(lambda: succeeded.search(path.read_text()))  # the run ends after the answer
    assert up.signal(signal.SIGTERM) == 0
    assert up.rows() == []


@pytest.mark.nightly
def test_up_with_bucket_storage_keeps_no_dumps_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with s3_server(monkeypatch), operated(tmp_path, 3) as up:
        up.environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        up.set(storage_url=f"s3://{BUCKET}/pypi-assets", log_format="json")
        up.start()
        up.until(lambda: up.answer("module", "module2"))
        up.until(up.is_well)
        up.upload("later", "1.0")
        up.until(lambda: up.knows("later", "1.0"))
        assert not (up.folder / ".pypi-assets" / "storage").exists()
        assert up.signal(signal.SIGTERM) == 0
        logs = up.folder / ".pypi-assets" / "stack" / "logs"
        for name in ("code", "daemon", "webserver", "follower", "service", "metrics"):
            lines = (logs / f"{name}.log").read_text().splitlines()
            assert [line for line in lines if not is_json(line) and line != MADE_AT_ONCE] == [], name
            assert lines, name


def is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except json.JSONDecodeError:
        return False


@pytest.mark.nightly
def test_up_with_several_indexes_each_is_followed(tmp_path: Path):
    with operated(tmp_path, 3) as up, served_index(tmp_path / "company") as company:
        company.wheel("of-us", "1.0", files={"of_us/__init__.py": ""})
        url = dotenv_values(up.folder / ".env")["PYPI_ASSETS_INDEX_URL"]
        (up.folder / "indexes.toml").write_text(
            f'[public]\nurl = "{url}"\ndefault = true\n[our-company]\nurl = "{company.url}"\nprivate = true\n'
        )
        (up.folder / ".env").write_text("PYPI_ASSETS_INDEXES=indexes.toml\n")
        up.start()
        up.until(lambda: up.answer("module", "module2"))
        up.until(lambda: up.answer("module", "of_us", "--index", "our-company"))
        up.until(up.is_well)
        codes = ["code", "code-pypi-assets-our-company"]
        followers = ["follower", "follower-our-company"]
        expected = ["postgres", *codes, "daemon", "webserver", *followers, "service", "metrics"]
        assert [row["name"] for row in up.rows()] == expected
        company.wheel("of-us", "2.0", files={"of_us/__init__.py": ""})
        up.until(lambda: up.answer("project", "of-us==2.0", "--index", "our-company"))
        assert not up.answer("module", "of_us")
        assert up.signal(signal.SIGTERM) == 0
