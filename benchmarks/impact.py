"""Measure the search for the dependents of the most-required project of a large index, in time and memory.

    python -m benchmarks.impact [--projects 200000] [--storage FOLDER]

An index of this many projects is generated and published in FOLDER, if it is not there yet; the default is a temporary
folder. Half of the projects require `base` directly. They have six releases on average, and require five others, the
older ones more often. Requirements accept the newest release or exclude it, some with a marker or an extra. Each line
runs in its own process. Bare reading reads the same records of the same LevelDB without decoding: the dependents of
each project that is found, and the files of each dependent.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from packaging.version import Version

from benchmarks.generated import write_full_dump_of
from benchmarks.lookups import bare_leveldb
from benchmarks.service_home import row_of
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.datasets.depgraph import dependents
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records as depgraph
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import scan
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup import DepgraphReader, open_latest
from pypi_assets.lookup.newest_requirements import breadth_first
from pypi_assets.lookup.release_impact import Impact, breaks, impact
from pypi_assets.storage.store import Storage, open_storage

BASE, SERIAL = "base", 1_000
_SPECIFIERS = ("", ">=1", ">=1.0,<99", ">1,!=2.0", "<2")
_MARKERS = (*("",) * 8, "; python_version < '3.9'", "; extra == 'test'")
_MOST_RELEASES, _REQUIRED = 40, 5
COLUMNS = ("projects", "first, ms", "all, s", "processor s", "bare reading, s", "ratio", "peak MB", "before, MB")
QUERIES: dict[str, tuple[Callable[..., Iterator[Impact]], dict[str, object]]] = {
    "direct, by any version": (impact, {}),
    "direct, by one version": (impact, {"version": Version("2.0")}),
    "direct, that exclude it": (breaks, {"version": Version("2.0")}),
    "transitive, by any version": (impact, {"transitive": True}),
    "transitive, by one version": (impact, {"version": Version("2.0"), "transitive": True}),
}


def rows(projects: int) -> Iterator[dict[str, object]]:
    """Yield one file for each release, in the order of dumps."""
    yield row_of(BASE, version="2.0", filename=f"{BASE}-2.0.zip", requires_dist=[])
    for number in range(projects):
        draw = Random(number)
        required = [BASE] if number % 2 else []
        required += [name_of(int(number * draw.random() ** 3)) for _ in range(_REQUIRED) if number]
        lines = [f"{name}{draw.choice(_SPECIFIERS)}{draw.choice(_MARKERS)}" for name in required]
        count = min(_MOST_RELEASES, max(1, round(draw.lognormvariate(math.log(4), 0.9))))
        name = name_of(number)
        for version in sorted(f"{release + 1}.{draw.randrange(9)}" for release in range(count)):
            some = lines[: len(lines) - draw.randrange(2)] if int(version.partition(".")[0]) < count else lines
            yield row_of(name, version=version, filename=f"{name}-{version}.zip", requires_dist=some)


def name_of(number: int) -> str:
    return f"project-{number:06}"


def publish(storage: Storage, projects: int) -> None:
    """Publish a version of `depgraph` with the generated index."""
    write_full_dump_of(storage, rows(projects), serial=SERIAL)
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_catalog(f"sqlite:///{Path(folder) / 'catalog.sqlite'}")
        open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())
        restore_index(catalog, storage)
        build_version("depgraph", storage=storage, catalog=catalog)
        catalog.close()


def measure(storage: Storage, query: str) -> dict[str, float]:
    """Return the cost of one query in this process."""
    function, options = QUERIES[query]
    is_direct = not options.get("transitive")
    with open_latest(DepgraphReader, storage, check_hashes=False) as reader:
        before_mb = peak_mb()
        begun, used = time.perf_counter(), time.process_time()
        found = function(reader, project=BASE, **options)
        next(found)
        first_ms = (time.perf_counter() - begun) * 1_000
        count = 1 + sum(1 for _ in found)
        seconds, used = time.perf_counter() - begun, time.process_time() - used
        after_mb = peak_mb()
    with bare_leveldb("depgraph", storage) as db:
        bare = time.process_time()
        bare_reads(db, 1 if is_direct else None)
        bare = time.process_time() - bare
    return {
        "count": count,
        "first_ms": first_ms,
        "seconds": seconds,
        "used": used,
        "bare": bare,
        "before_mb": before_mb,
        "peak_mb": after_mb,
    }


def bare_reads(db: Database, depth: int | None) -> int:
    """Read the dependents of each project that is found, and their files; return the number of projects."""

    def direct(required: str, found: object) -> Iterator[tuple[str, None]]:
        start = dependents.dependents_prefix(required)
        for record_key, _ in scan(db, start):
            project = record_key[len(start) :].decode()
            if project not in found:  # type: ignore[operator]
                depgraph.project_records(db, project)
                yield project, None

    return sum(1 for _ in breadth_first(direct, BASE, depth))


def peak_mb() -> float:
    """Return the peak memory of this process. It is not from `getrusage`, which begins with the parent's peak."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1_000 if found else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=200_000)
    parser.add_argument("--storage", type=Path)
    parser.add_argument("--measure", choices=QUERIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(open_storage(options.storage.absolute().as_uri()), options.measure)))
        return
    with tempfile.TemporaryDirectory(prefix="pypi-assets-impact-") as temporary:
        folder = (options.storage or Path(temporary)).absolute()
        storage = open_storage(folder.as_uri())
        if not published_versions(storage, "depgraph"):
            publish(storage, options.projects)
        print(f"| what requires `base` | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
        for query in QUERIES:
            command = [sys.executable, "-m", "benchmarks.impact", "--storage", str(folder), "--measure", query]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            ratio = found["used"] / found["bare"]
            cells = [f"{found['count']:,}", f"{found['first_ms']:.0f}"]
            cells += [f"{one:.1f}" for one in (found["seconds"], found["used"], found["bare"], ratio)]
            cells += [f"{found['peak_mb']:.0f}", f"{found['before_mb']:.0f}"]
            print(f"| {query} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
