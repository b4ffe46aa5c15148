"""Measure how fast all LevelDBs are built from scratch, in how much memory, and how many bytes are written.

    python -m benchmarks.leveldb_build [FOLDER] [--rows 200000 1000000 2000000] [--repeats 3] [--datasets modules ...]

Takes full dumps below FOLDER/ROWS, and generates missing ones (see generated.py). Builds and publishes a version of
each dataset from them, each in a new process that is measured from outside: the time from before the build to the
published version, the peak memory of all processes together (resident, with shared memory counted for each process),
and the bytes that they wrote. The baseline decodes the same gzipped files row by row with orjson, in one process on one
core; the ratio is to its rows a second of processor time. Prints the median of the repeats. The constant cost is
estimated from the line through the first two sizes. The last lines are of builds of all datasets together, which read
the dump once: their processor time is compared with the separate builds, one after the other. The rate by the clock is
followed by the rate for each second of processor time of all processes, including interpreters, which depends less on
other work on the machine.

The bytes written are the bytes that reached the file system, minus the bytes of files that were deleted before they
reached the disk, as the kernel counts them. The first number is also shown. LevelDB's log makes the difference: it
holds all records uncompressed until their table is written.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.generated import generate_projects, write_full_dump
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.dumps.dump_manifest import committed_directories
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.build.loading import MEMORY_BYTES
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.shared_reading import SharedReading
from pypi_assets.storage.store import Storage, open_storage

MIB = 1024**2
SAMPLED_S = 0.02
PYPI_ROWS = 20_000_000


class Measured(NamedTuple):
    """Seconds, by the clock and of processor time, and bytes."""

    seconds: float
    processor: float
    memory: int
    to_files: int
    to_disk: int
    kept: int


def build(names: Sequence[str], storage: Storage, memory_bytes: int) -> dict[str, float]:
    """Build a version of each dataset in this process, together, and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_catalog(f"sqlite:///{Path(folder) / 'catalog.sqlite'}")
        open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())
        restore_index(catalog, storage)
        before = int(_read_io("cancelled_write_bytes"))
        started = time.monotonic()
        with SharedReading(names) as shared:
            results = [
                build_version(
                    name, storage=storage, catalog=catalog, from_scratch=True, memory_bytes=memory_bytes, shared=shared
                )
                for name in names
            ]
        seconds = time.monotonic() - started
        catalog.close()
    published = [read_published(storage, result.dataset, result.version).manifest for result in results]
    kept = sum(file.size for manifest in published for file in manifest.files)
    return {"seconds": seconds, "cancelled": int(_read_io("cancelled_write_bytes")) - before, "kept": kept}


def measure(names: Sequence[str], folder: Path, memory_bytes: int) -> Measured:
    """Build a version of each dataset in a new process, together, and delete them again."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "benchmarks.leveldb_build", str(folder), "--memory", str(memory_bytes)]
    with subprocess.Popen([*command, "--build", *names], stdout=subprocess.PIPE) as process:
        memory = 0
        while process.poll() is None:
            memory = max(memory, resident(process.pid))
            time.sleep(SAMPLED_S)
        assert process.stdout is not None
        reported = json.loads(process.stdout.read())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    to_files = (used.ru_oublock - before.ru_oublock) * 512
    for path in (path for name in names for path in (folder / name).glob("*/*")):
        subprocess.run(["rm", "-r", str(path)], check=True)
    return Measured(
        reported["seconds"], processor, memory, to_files, int(to_files - reported["cancelled"]), int(reported["kept"])
    )


def resident(process: int) -> int:
    """Return the bytes that a process and all its descendants hold in their own memory.

    Pages of files, which LevelDB maps, belong to the system, and several processes can share them.
    """
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()
        total = (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # the process has just ended
        return 0
    return total + sum(resident(int(child)) for child in children)


def decode(storage: Storage) -> float:
    """Return the seconds of processor time."""
    started = time.process_time()
    for directory in committed_directories(storage):
        for _ in iter_dump(storage, directory):
            pass
    return time.process_time() - started


def dumped(folder: Path, rows: int) -> Storage:
    (folder / str(rows)).mkdir(parents=True, exist_ok=True)
    storage = open_storage((folder / str(rows)).resolve().as_uri())
    if not committed_directories(storage):
        write_full_dump(storage, generate_projects(rows))
    return storage


def _read_io(name: str) -> str:
    return dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(tempfile.gettempdir()) / "pypi-assets-dumps")
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000, 2_000_000])
    parser.add_argument(
        "--repeats", type=int, default=3, help="repeats of the smallest size; the others build as many rows in total"
    )
    parser.add_argument("--memory", type=int, default=MEMORY_BYTES, help="memory of a build in bytes")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument(
        "--build", nargs="+", choices=DATASETS, help="only build and measure these datasets from the dumps in FOLDER"
    )
    options = parser.parse_args()
    if options.build:
        storage = open_storage(options.folder.resolve().as_uri())
        print(json.dumps(build(options.build, storage, options.memory)))
        return
    storages = {rows: dumped(options.folder, rows) for rows in options.rows}
    least = min(options.rows)
    decoded = median(least / decode(storages[least]) for _ in range(options.repeats))
    print(f"decoding alone, one core: {decoded:.0f} rows/s of processor time; {os.cpu_count()} cores")
    print(f"{'':10}{'rows':>10}{'seconds':>9}{'rows/s':>9}{'a core':>8}{'ratio':>7}{'MiB':>6}{'kept MB':>9}", end="")
    print(f"{'written':>9}{'to files':>10}")
    estimate = 0.0
    separate = dict.fromkeys(options.rows, 0.0)
    groups = [[name] for name in options.datasets]
    for names in groups + ([options.datasets] if len(groups) > 1 else []):
        dataset, slowest, taken = names[0] if len(names) == 1 else "together", 0.0, []
        for rows in options.rows:
            repeats = max(1, options.repeats * least // rows)
            found = [measure(names, options.folder / str(rows), options.memory) for _ in range(repeats)]
            seconds = median(one.seconds for one in found)
            a_core = median(rows / one.processor for one in found)
            last = max(found, key=lambda one: one.memory)
            slowest = max(slowest, seconds / rows)
            taken.append((rows, seconds))
            print(
                f"{dataset:10}{rows:10}{seconds:9.1f}{rows / seconds:9.0f}{a_core:8.0f}{rows / seconds / decoded:7.2f}"
                f"{last.memory / MIB:6.0f}{last.kept / 1e6:9.0f}{last.to_disk / last.kept:9.2f}"
                f"{last.to_files / last.kept:10.2f}",
                flush=True,
            )
            if len(names) == 1:
                separate[rows] += rows / a_core
            else:
                print(f"{dataset:10}{rows:10}: {rows / a_core / separate[rows]:.2f} of the separate builds")
        if len(taken) > 1:
            (rows, seconds), (more_rows, more_seconds) = taken[:2]
            fixed = seconds - rows * (more_seconds - seconds) / (more_rows - rows)
            print(f"{dataset:10}of each build {fixed:.1f} s do not grow with the rows")
        estimate += slowest * PYPI_ROWS * (len(names) == 1)
    print(f"{PYPI_ROWS} rows at the lowest of these rates, one dataset after the other: {estimate / 60:.1f} minutes")


if __name__ == "__main__":
    main()
