"""Measure the cost of the next version of a LevelDB after few changes, compared with a build from scratch.

    python -m benchmarks.leveldb_update [FOLDER] [--rows 1000000] [--changed 1000 10000] [--updates 20 6]
    python -m benchmarks.leveldb_update [FOLDER] --percent 1 5 20 100 [--rows 1000000] [--largest]

Takes the full dump below FOLDER/ROWS, or generates it (see generated.py), and builds a version of each dataset from it:
the rebuild. Then come ranges with `--changed` rows each, and a version after each, built on the previous one: 20 with
1,000 rows, then 6 with 10,000. LevelDB merges small tables into larger ones now and then, so versions differ: the mean
and the worst are printed. The changed rows are new releases, with all their files, of projects that are drawn evenly,
and about one tombstone in ten rows (see generated.changed_rows).

Everything is measured twice: on a local folder, and on an S3 server on loopback (moto, in memory), where the server
counts requests and the bytes of their bodies, by kind. The parts of a multipart upload are requests. Versions on S3 are
built with a warm cache folder from the previous build, and the last one again with an empty folder.

Each build runs in a new process, which measures only the build: by the clock, and of the processor, with its child
processes. The server's processor time is not counted, but it makes the clock on S3 of little use. Ratios are to the
rebuild on the same store.

With `--percent`, one range changes this share of the rows, evenly or in the largest projects. The update is compared
with a build from scratch from the same dumps, and the last columns have what the rule for rebuilds chooses. The rule is
off for all other builds.
"""

import argparse
import json
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any
from urllib.parse import parse_qs

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from benchmarks.generated import SERIAL, Project, changed_rows, generate_projects, release_rows, write_range_dump
from benchmarks.leveldb_build import dumped
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.build_need import is_rebuild_cheaper
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.s3_server import BUCKET, s3_server

MB = 1e6
RowsOf = Callable[[Sequence[Project], int, int], list[Row]]


@dataclass
class Cost:
    """The cost of one build: seconds, and for S3 the requests by kind and the bytes in each direction."""

    seconds: float = 0.0
    processor: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    fetched: int = 0

    @property
    def puts(self) -> int:
        return sum(count for kind, count in self.requests.items() if kind not in {"GET", "HEAD", "LIST"})


class Door:
    """Counts the requests to the S3 servers of this process."""

    def __init__(self, environment: pytest.MonkeyPatch) -> None:
        self.cost = Cost()
        answer = DomainDispatcherApplication.__call__

        def counted(
            app: DomainDispatcherApplication, environ: dict[str, Any], start_response: Callable[..., Any]
        ) -> Iterable[bytes]:
            kind = _kind(environ["REQUEST_METHOD"], parse_qs(environ["QUERY_STRING"], keep_blank_values=True))
            self.cost.requests[kind] += 1
            self.cost.sent += int(environ.get("CONTENT_LENGTH") or 0)

            def started(status: str, headers: list[tuple[str, str]], *rest: object) -> object:
                if environ["REQUEST_METHOD"] != "HEAD":
                    self.cost.fetched += sum(int(value) for name, value in headers if name.lower() == "content-length")
                return start_response(status, headers, *rest)

            return answer(app, environ, started)

        environment.setattr(DomainDispatcherApplication, "__call__", counted)


@dataclass(frozen=True)
class Bench:
    """A storage with a full dump, its catalog, and a folder for builds."""

    storage: Storage
    catalog: Catalog
    folder: Path
    projects: list[Project]
    door: Door

    def change(self, changed: int, rows_of: RowsOf = changed_rows) -> None:
        """Commit the next range, with `changed` changed rows."""
        start = max(int(name.partition("-")[2]) for name in restore_index(self.catalog, self.storage).restored)
        serials = SerialRange(start, start + changed)
        rows = rows_of(self.projects, changed, serials.end)
        write_range_dump(self.storage, rows, serials, sequence=serials.end)
        restore_index(self.catalog, self.storage)

    def build(self, dataset: str, *, from_scratch: bool = False, empty: bool = False) -> Cost:
        """Build a version in a new process."""
        work = self.folder / "work"
        if empty:
            shutil.rmtree(work / dataset, ignore_errors=True)
        self.door.cost = Cost()
        command = [sys.executable, "-m", "benchmarks.leveldb_update", "--build", dataset, self.storage.url]
        command += [self.catalog.engine.url.render_as_string(hide_password=False), str(work), str(int(from_scratch))]
        reported = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        cost, self.door.cost = self.door.cost, Cost()
        cost.seconds, cost.processor = reported["seconds"], reported["processor"]
        if self.storage.root is not None:
            folder = self.storage.root / dataset / "leveldbs" / reported["directory"]
            cost.sent = sum(path.stat().st_size for path in folder.iterdir())
        return cost


def build(dataset: str, storage_url: str, catalog_url: str, work_dir: Path, *, from_scratch: bool) -> dict[str, Any]:
    """Build one version in this process."""
    DATASETS[dataset] = replace(DATASETS[dataset], update_cost=0)  # without the rule for rebuilds
    catalog, storage = open_catalog(catalog_url), open_storage(storage_url)
    began, started = _processor_s(), time.monotonic()
    result = build_version(dataset, storage=storage, catalog=catalog, work_dir=work_dir, from_scratch=from_scratch)
    reported = {"seconds": time.monotonic() - started, "processor": _processor_s() - began}
    assert result.published
    assert (result.base_version is None) == from_scratch, result.rebuilt_because
    catalog.close()
    return reported | {"directory": f"{result.version:05}"}


def _processor_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _kind(method: str, query: dict[str, list[str]]) -> str:
    if "uploads" in query:
        return "multipart begun"
    if "uploadId" in query:
        return {"PUT": "part", "POST": "multipart ended"}.get(method, method)
    return "LIST" if "list-type" in query else method


def storages(names: list[str], dumps: Storage, folder: Path, environment: pytest.MonkeyPatch) -> Iterator[Storage]:
    """Yield the stores to measure, each with the dumps."""
    if "local" in names:
        assert dumps.root is not None
        shutil.copytree(dumps.root / "data_dumps", folder / "storage" / "data_dumps", copy_function=os.link)
        yield open_storage((folder / "storage").as_uri())
    if "s3" in names:
        with s3_server(environment):
            storage = open_storage(f"s3://{BUCKET}/root")
            for stored in dumps.list("data_dumps"):
                storage.put(stored.path, dumps.get(stored.path))
            yield storage


def show(name: str, costs: list[Cost], rebuilt: Cost) -> None:
    """Print a line with the mean of some builds, a line with the worst of each, and their ratios."""
    requests = sum((cost.requests for cost in costs), Counter[str]())
    kinds = ", ".join(f"{count / len(costs):.1f} {kind}" for kind, count in sorted(requests.items()))
    for what, join in (("mean", mean), ("worst", max)) if len(costs) > 1 else (("", max),):
        print(f"{name:22}{what:7}", end="")
        for column, digits in (("seconds", 2), ("processor", 2), ("sent", 1), ("fetched", 1), ("puts", 1), ("all", 1)):
            value, whole = (join([_column(cost, column) for cost in some]) for some in (costs, [rebuilt]))
            print(f"{value:9.{digits}f}{value / whole if whole else 0:7.1%}", end="")
        print(f"  {kinds if what != 'worst' else ''}", flush=True)


def _column(cost: Cost, name: str) -> float:
    if name == "all":
        return cost.requests.total()
    value = float(getattr(cost, name))
    return value / MB if name in {"sent", "fetched"} else value


def new_releases(projects: Sequence[Project], changed: int, serial: int) -> list[Row]:
    """Return `changed` rows of new releases of the projects in this order, and again of all if that is not enough."""
    rows: list[Row] = []
    numbered = ((project, project.releases + number) for number in count() for project in projects)
    while len(rows) < changed:
        project, release = next(numbered)
        rows += [row | {"live_since": serial} for row in release_rows(project, release, serial)]
    return sorted(rows[:changed], key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))


def compare(options: argparse.Namespace, dumps: Storage, projects: list[Project]) -> None:
    """Print the processor time and the bytes of updates, compared with rebuilds from the same dumps."""
    print(f"{options.rows} rows; ratios are to the rebuild from the same dumps, in processor time and in bytes")
    print(f"{'':10}{'%':>4}{'changed':>9}{'rebuild s':>11}{'MB':>7}{'update s':>10}{'ratio':>7}{'MB':>7}", end="")
    print(f"{'ratio':>7}{'µs a row':>10}  {'the rule takes':16}{'ratio':>7}")
    ordered = sorted(projects, key=lambda project: -project.files)
    if not options.largest:
        Random(0).shuffle(ordered)
    for dataset in options.datasets:
        for percent in options.percent:
            with tempfile.TemporaryDirectory(dir=options.folder) as name, pytest.MonkeyPatch.context() as environment:
                [storage] = storages(["local"], dumps, Path(name), environment)
                catalog = open_catalog(f"sqlite:///{Path(name) / 'catalog.sqlite'}")
                open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())
                restore_index(catalog, storage)
                bench = Bench(storage, catalog, Path(name), ordered, Door(environment))
                bench.build(dataset, from_scratch=True)
                changed = options.rows * percent // 100
                bench.change(changed, new_releases)
                update, rebuilt = bench.build(dataset), bench.build(dataset, from_scratch=True)
                catalog.close()
            total = options.rows + changed
            is_rebuilt = is_rebuild_cheaper(DATASETS[dataset], changed, lambda total=total: total)
            ratio = update.processor / rebuilt.processor
            print(
                f"{dataset:10}{percent:4}{changed:9}{rebuilt.processor:11.2f}{rebuilt.sent / MB:7.1f}"
                f"{update.processor:10.2f}{ratio:7.2f}{update.sent / MB:7.1f}{update.sent / rebuilt.sent:7.2f}"
                f"{update.processor / changed * 1e6:10.0f}  {'a rebuild' if is_rebuilt else 'the update':16}"
                f"{1.0 if is_rebuilt else ratio:7.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(tempfile.gettempdir()) / "pypi-assets-dumps")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--updates", type=int, nargs="+", default=[20, 6], help="number of versions of each size")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--stores", nargs="+", choices=["local", "s3"], default=["local", "s3"])
    parser.add_argument("--percent", type=int, nargs="+", help="only compare updates of these shares with rebuilds")
    parser.add_argument("--largest", action="store_true", help="with --percent: the largest projects change")
    parser.add_argument("--build", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build:
        dataset, storage_url, catalog_url, work_dir, from_scratch = options.build
        print(
            json.dumps(build(dataset, storage_url, catalog_url, Path(work_dir), from_scratch=bool(int(from_scratch))))
        )
        return
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the server logs a line for each request
    dumps, projects = dumped(options.folder, options.rows), list(generate_projects(options.rows))
    if options.percent:
        compare(options, dumps, projects)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name, pytest.MonkeyPatch.context() as environment:
        folder, door = Path(name), Door(environment)
        for storage in storages(options.stores, dumps, folder, environment):
            store = "local" if storage.root else "s3"
            print(f"{options.rows} rows, {store}; every second column is the ratio to the rebuild")
            print(f"{'':29}{'seconds':>9}{'':7}{'process.':>9}{'':7}{'MB sent':>9}{'':7}{'fetched':>9}", end="")
            print(f"{'':7}{'puts':>9}{'':7}{'requests':>9}")
            for dataset in options.datasets:
                catalog = open_catalog(f"sqlite:///{folder / f'{store}-{dataset}.sqlite'}")
                open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())
                bench = Bench(storage, catalog, folder, projects, door)
                for path in [one.path for one in storage.list("data_dumps") if f"/0-{SERIAL}/" not in one.path]:
                    storage.delete(path)
                restore_index(catalog, storage)
                rebuilt = bench.build(dataset, from_scratch=True)
                show(f"{dataset} rebuilt", [rebuilt], rebuilt)
                for changed, updates in zip(options.changed, options.updates, strict=True):
                    costs = []
                    for _ in range(updates):
                        bench.change(changed)
                        costs.append(bench.build(dataset))
                    show(f"{changed} rows", costs, rebuilt)
                    if store == "s3":
                        bench.change(changed)
                        show(f"{changed} rows, no cache", [bench.build(dataset, empty=True)], rebuilt)
                catalog.close()


if __name__ == "__main__":
    main()
