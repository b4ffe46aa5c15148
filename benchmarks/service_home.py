"""The common parts of the service's benchmarks: a home with published versions, the service as a process, and wrk.

wrk is the load generator: `apt-get install wrk`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import requests

from benchmarks.generated import generate_projects, release_rows, write_full_dump_of, write_range_dump
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.storage.store import Storage, open_storage

FIRST_SERIAL = 1_000
_ROW = next(release_rows(next(iter(generate_projects(1))), 0))


def row_of(project: str, serial: int = FIRST_SERIAL, **columns: object) -> dict[str, object]:
    """Return a row of a dump: one wheel of `project`, version 1.0."""
    own = {
        "project": project,
        "normalized": project,
        "version": "1.0",
        "filename": f"{project}-1.0-py3-none-any.whl",
        "live_since": serial,
        "requires_dist": [],
        "modules": [project.replace("-", "_")],
    }
    return {**_ROW, **own, **columns}


def in_order(rows: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the rows in the order of dumps."""
    return sorted(rows, key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))


class Home:
    """A home with a storage in which versions of all datasets are published. The service needs no catalog."""

    def __init__(self, folder: Path, rows: Iterable[Mapping[str, object]]) -> None:
        self.folder, self.serial, self._sequence = folder, FIRST_SERIAL, 1
        self.storage: Storage = open_storage((folder / "storage").as_uri())
        self._catalog: Catalog = open_catalog(f"sqlite:///{folder / 'builds.sqlite'}")
        open_crawl(self._catalog, 1, 1, "https://index.example.org/simple/", Selection())
        write_full_dump_of(self.storage, rows, serial=FIRST_SERIAL)
        self._build()

    def publish(self, rows: Iterable[Mapping[str, object]]) -> int:
        """Publish the next version of each dataset, which adds these rows; return its serial."""
        before, self.serial = self.serial, self.serial + 10
        self._sequence += 1
        write_range_dump(self.storage, rows, SerialRange(before, self.serial), sequence=self._sequence)
        self._build()
        return self.serial

    def close(self) -> None:
        self._catalog.close()

    def _build(self) -> None:
        restore_index(self._catalog, self.storage)
        for dataset in DATASETS:
            build_version(dataset, storage=self.storage, catalog=self._catalog)


@contextmanager
def home_of(rows: Iterable[Mapping[str, object]]) -> Iterator[Home]:
    """Yield such a home in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="pypi-assets-service-") as folder:
        home = Home(Path(folder), rows)
        try:
            yield home
        finally:
            home.close()


@contextmanager
def process(
    command: Sequence[str], environment: Mapping[str, str], core: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a command, on the given core if any; end it with the block."""
    pinned = ["taskset", "--cpu-list", str(core)] if core is not None and shutil.which("taskset") else []
    started = subprocess.Popen(
        [*pinned, *command],
        env=os.environ | dict(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.terminate()
        started.communicate(timeout=60)


@contextmanager
def served(folder: Path, *options: str, core: int | None = None, **settings: object) -> Iterator[tuple[str, int]]:
    """Run the service over a home as a process; yield its URL and its process id."""
    environment = {"PYPI_ASSETS_HOME": str(folder), "PYPI_ASSETS_ENV_FILE": os.devnull}
    environment |= {f"PYPI_ASSETS_{name.upper()}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-c", "from pypi_assets.cli import main; main()", "serve", "--port", "0", *options]
    with process(command, environment, core) as started:
        assert started.stderr is not None
        url = re.search(r"http://\S+", started.stderr.readline())
        assert url is not None, "the service did not start"
        wait_for(f"{url[0]}readyz")
        yield url[0], started.pid


def wait_for(url: str, seconds: float = 60) -> None:
    """Wait until `url` answers with status 200."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            if requests.get(url, timeout=5).status_code == 200:
                return
        except requests.RequestException:
            pass
        time.sleep(0.1)
    raise TimeoutError(url)


def wrk(
    url: str,
    seconds: int,
    *,
    connections: int = 64,
    rate: float | None = None,
    core: int | None = None,
    script: Path | None = None,
) -> dict[str, float]:
    """Return wrk's report: `requests`, `rps`, `p99_ms`, and `failed` responses.

    With `rate`, its connections pause so that together they send about that many requests a second. With `script`, it
    runs this script.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as own:
        own.write(script.read_text() if script else "")
        if rate is not None:
            own.write(f"function delay() return math.random() * {2_000 * connections / rate:.3f} end\n")
        own.flush()
        pinned = ["taskset", "--cpu-list", str(core)] if core is not None and shutil.which("taskset") else []
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "--latency", "-s", own.name]
        text = subprocess.run([*pinned, "wrk", *options, url], check=True, capture_output=True, text=True).stdout
    rps, p99, unit = re.search(r"Requests/sec:\s+([\d.]+)", text), *_p99(text)
    count = re.search(r"(\d+) requests in", text)
    failed = re.findall(r"Non-2xx or 3xx responses: (\d+)|(?:connect|read|write|timeout) (\d+)", text)
    assert rps is not None, text
    assert count is not None, text
    return {
        "requests": int(count[1]),
        "rps": float(rps[1]),
        "p99_ms": p99 * unit,
        "failed": sum(int(one or other) for one, other in failed),
    }


def _p99(text: str) -> tuple[float, float]:
    found = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    assert found is not None, text
    return float(found[1]), {"us": 0.001, "ms": 1.0, "s": 1_000.0}[found[2]]


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) / 1_000 if found else 0.0  # the process has ended


def processor_s(pid: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def some_projects(rows: int) -> Iterator[dict[str, object]]:
    """Yield this many rows of generated projects."""
    projects = (row for project in generate_projects(rows) for row in islice(release_rows(project, 0), 1))
    return (dict(row) | {"live_since": FIRST_SERIAL} for row in islice(projects, rows))
