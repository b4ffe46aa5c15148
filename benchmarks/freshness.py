"""Measure the time from an upload to the answer, and of each step in between.

    make demo
    make ui                                             # and in another terminal:
    . demo/env && python -m benchmarks.freshness [--uploads 20]
    python -m benchmarks.freshness --follower [--uploads 20]   # needs neither

Uploads wheels to the demo's index, one after the other, and looks each up in the newest LevelDBs until `modules` and
`depgraph` have it. The times of the steps in between come from the catalog, Dagster's runs and the storage. Seconds are
by the clock.

With `--follower`, `pypi-assets follow` follows a new index, with the default intervals. It measures the time until the
index record and the content record of each upload are in the journal, and until it is answered.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import recent_ranges
from pypi_assets.catalog.publications.allocated_names import allocated_versions
from pypi_assets.catalog.publications.dump_registry import committed_dumps
from pypi_assets.components import catalog_from, storage_from
from pypi_assets.defs.policy import PARTITION_TAG
from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets.journal.record_reader import Journal
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import input_list_path, published_versions, version_name
from pypi_assets.lookup.latest import open_latest
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import Storage, open_storage

INDEX = Path(__file__).parent.parent / ".demo" / "index"
LOOK_EVERY_S = 0.2
DEADLINE_S = 600.0
STEPS = (
    "a sensor requests the range",
    "its run has begun",
    "the range is crawled",
    "its dump is committed",
    "a sensor requests the version",
    "its run has begun",
    "all datasets are published",
    "it is answered",
)
FOLLOWED = ("its index record", "its content record", "it is answered")
PROGRAM = (sys.executable, "-c", "from pypi_assets.cli import main; main()")


@dataclass(frozen=True)
class Upload:
    """A file, the serial of its upload, and the times of its upload and its answer (unix seconds)."""

    serial: int
    uploaded_at: float
    answered_at: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uploads", type=int, default=20)
    parser.add_argument("--index", type=Path, default=INDEX, help="folder of the followed index")
    parser.add_argument("--follower", action="store_true", help="measure `pypi-assets follow`, on a new index")
    arguments = parser.parse_args()
    if arguments.follower:
        measure_follower(arguments.uploads)
        return
    settings = load_settings()
    catalog, storage, history = catalog_from(settings), storage_from(settings), History(arguments.index)
    uploads = [upload(history, storage, number) for number in range(arguments.uploads)]
    with dg.DagsterInstance.get() as instance:
        moments = [steps(one, catalog, storage, instance) for one in uploads]
    catalog.close()
    waited = sorted(one.answered_at - one.uploaded_at for one in uploads)
    print(f"{len(waited)} uploads: median {median(waited):.0f} s, worst {waited[-1]:.0f} s\n")
    print("| until | median s | worst s |\n|---|---|---|")
    for step, seconds in zip(STEPS, zip(*moments, strict=True), strict=True):
        print(f"| {step} | {median(seconds):.1f} | {max(seconds):.1f} |")


def measure_follower(uploads: int) -> None:
    """Print the percentiles of the times in FOLLOWED, over uploads at random moments."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder, "index")) as url:
        root, history = Path(folder), History(Path(folder, "index"))
        history.add(make_wheel(root, "first"))
        environment = os.environ | {"PYPI_ASSETS_HOME": str(root / "home"), "PYPI_ASSETS_INDEX_URL": url}
        environment |= {"PYPI_ASSETS_ENV_FILE": os.devnull}
        for work in (("crawl", "full"), ("dump", "full", "--shards", "1"), ("leveldb", "update")):
            subprocess.run([*PROGRAM, *work], env=environment, check=True, capture_output=True)
        storage = open_storage((root / "home" / "storage").as_uri(), read_only=True)
        with subprocess.Popen([*PROGRAM, "follow"], env=environment, stdout=subprocess.DEVNULL) as process:
            try:
                upload_and_wait(history, storage, root, 0)  # once the follower has started
                waited = [upload_and_wait(history, storage, root, number) for number in range(1, uploads + 1)]
            finally:
                process.terminate()
    print(f"{uploads} uploads, seconds\n\n| until | median | 90 % | 95 % | worst |\n|---|---|---|---|---|")
    for what, seconds in zip(FOLLOWED, zip(*waited, strict=True), strict=True):
        ordered = sorted(seconds)
        shares = [ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in (0.9, 0.95)]
        print(f"| {what} | {median(ordered):.1f} | {shares[0]:.1f} | {shares[1]:.1f} | {ordered[-1]:.1f} |")


def upload_and_wait(history: History, storage: Storage, folder: Path, number: int) -> list[float]:
    """Upload a wheel, and return the seconds until each step of FOLLOWED."""
    time.sleep(random.uniform(0.0, 4.0))
    name = f"fresh_{time.time_ns():x}_{number}"
    history.add(make_wheel(folder, name))
    uploaded_at, serial, journal = time.monotonic(), history.state().last_serial or 0, Journal(storage)
    found: dict[str, float] = {}
    checks = (
        lambda: number == 0 or journal.through(("index",)) >= serial,
        lambda: number == 0 or journal.through(("content",)) >= serial,
        lambda: is_answered(storage, name),
    )
    while len(found) < len(FOLLOWED):
        for what, is_true in zip(FOLLOWED, checks, strict=True):
            if what not in found and is_true():
                found[what] = time.monotonic() - uploaded_at
        if time.monotonic() - uploaded_at > DEADLINE_S:
            raise SystemExit(f"{name} is not answered after {DEADLINE_S:.0f} s")
        time.sleep(0.1)
    return [found[what] for what in FOLLOWED]


def upload(history: History, storage: Storage, number: int) -> Upload:
    """Upload a wheel, and wait until it is answered."""
    name = f"fresh_{time.time_ns():x}_{number}"
    with tempfile.TemporaryDirectory() as folder:
        history.add(make_wheel(Path(folder), name))
    uploaded_at = time.time()
    while not is_answered(storage, name):
        if time.time() - uploaded_at > DEADLINE_S:
            raise SystemExit(f"{name} is not answered after {DEADLINE_S:.0f} s: does `make ui` run?")
        time.sleep(LOOK_EVERY_S)
    return Upload(history.state().last_serial or 0, uploaded_at, time.time())


def make_wheel(folder: Path, name: str) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def is_answered(storage: Storage, name: str) -> bool:
    with open_latest("modules", storage) as modules, open_latest("depgraph", storage) as depgraph:
        return bool(modules.module(name).results and depgraph.project(name).results)


def steps(one: Upload, catalog: Catalog, storage: Storage, instance: dg.DagsterInstance) -> list[float]:
    """Return the duration of each of STEPS."""
    with catalog.read() as connection:
        entry = next(entry for entry in recent_ranges(connection, beyond=one.serial - 1))
    dump = next(dump for dump in committed_dumps(catalog) if dump.serials == entry.serials)
    version = next(version for version in allocated_versions(catalog) if version.serial >= one.serial)
    moments = [
        one.uploaded_at,
        entry.requested_at,
        began(instance, "incremental_crawl", entry.serials.key),
        entry.completed_at or 0.0,
        dump.committed_at or 0.0,
        version.requested_at,
        began(instance, "update_leveldbs", version_name(version.version)),
        max(published_at(storage, dataset, version.version) for dataset in DATASETS),
        one.answered_at,
    ]
    return [later - earlier for earlier, later in pairwise(moments)]


def began(instance: dg.DagsterInstance, job: str, key: str) -> float:
    """Return the start of the last run of the partition."""
    records = instance.get_run_records(dg.RunsFilter(job_name=job, tags={PARTITION_TAG: key}), limit=1)
    return records[0].start_time or 0.0


def published_at(storage: Storage, dataset: str, version: int) -> float:
    found = next(one for one in published_versions(storage, dataset) if one >= version)
    return storage.head(input_list_path(dataset, found)).last_modified.timestamp()


if __name__ == "__main__":
    main()
