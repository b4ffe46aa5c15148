"""Measure the cost of a backfill of hundreds of partitions, and check that every failure is visible.

    python -m benchmarks.backfills [--ranges 500] [--projects 1000] [--parts 100] [--no-failures]

Starts an index on loopback with `--projects` projects of one wheel each, and Dagster's webserver, daemon and code
server over SQLite, configured as in dagster.yaml. Launches backfills by GraphQL, as the UI does: all 100 parts of the
projects in an open full crawl, then `--ranges` ranges of one upload each. The baseline is the same work from the
command line, into another catalog. The overhead is the additional time of Dagster, divided by the number of partitions.
Seconds are by the clock and of the processor. The processor time is of all processes that Dagster or the command line
has started, without the index.

Then come failures. The index answers 500 to the pages of three projects, in another full crawl and in 40 more ranges.
The catalog rejects three of 40 more ranges, first their events and then their dumps. Prints which partitions are shown
as failed or count a failure, and which failures remain after the cause is fixed and only those partitions ran again.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from sqlalchemy import text
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from benchmarks.many_partitions import tree_processor_s
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import project_part_key, project_shard
from pypi_assets.catalog.reports.range_states import ShownState, range_statuses
from pypi_assets.crawl.full_crawl import list_index
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges
from pypi_assets.defs.policy import project_parts
from pypi_assets.defs.resources import build_resources
from pypi_assets.settings import Settings, load_settings
from pypi_assets_tests.served_dagster import RANGE_ASSETS, served_dagster
from pypi_assets_tests.served_index import ServedIndex, served_index

EVENTS_AN_UPLOAD = 4  # events of a new project: create, add owner, new release, add file
PART_ASSETS = ("crawled_projects", "crawled_distribution_data")
FAULTY_RANGES = 40
SPOILED = (3, 17, 25)
"""The indexes of the faulty ranges: two in the first run, and one in the second."""
PATIENCE_S = 3_600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranges", type=int, default=500)
    parser.add_argument("--projects", type=int, default=1_000)
    parser.add_argument("--parts", type=int, default=100, help="number of the 100 parts to backfill")
    parser.add_argument("--no-failures", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, served_index(Path(folder) / "served") as index:
        for number in range(options.projects):
            index.wheel(f"old-{number}", "1.0")
        with Bench(Path(folder), index).opened() as bench:
            print("| partitions | runs | s, command line | s, Dagster | overhead, ms each | processor s | overhead |")
            print("|---|---|---|---|---|---|---|", flush=True)
            bench.measure_parts(options.parts)
            bench.measure_ranges(options.ranges)
            if not options.no_failures:
                bench.show_exhausted()
                bench.show_failures()


class Bench:
    """Two catalogs that follow the same index: one belongs to Dagster, the other to the command line."""

    def __init__(self, folder: Path, index: ServedIndex) -> None:
        self.index = index
        self.plain = self._settings(folder / "plain")
        self.settings = self._settings(folder / "home")
        self.resources = build_resources(self.settings)
        self.dagster_home = folder / "dagster"

    @contextmanager
    def opened(self) -> Iterator["Bench"]:
        self.dagster_home.mkdir()
        os.environ["DAGSTER_HOME"] = str(self.dagster_home)  # the storage of dagster.yaml keeps its files there
        with served_dagster(self.dagster_home, variables(self.settings)) as self.dagster:
            with dg.DagsterInstance.from_config(str(self.dagster_home)) as self.instance:
                yield self
            self.resources.close()

    def measure_parts(self, count: int) -> None:
        alone = timed(lambda: self.run_commands("crawl full"))
        list_index(self.resources.crawler.get())
        parts = project_parts.get_partition_keys()
        self.measure(PART_ASSETS, parts[:count], alone)
        if count < len(parts):  # ranges require a complete crawl
            run_command(self.settings, "crawl full")
        for settings in (self.plain, self.settings):
            run_command(settings, "dump full")

    def measure_ranges(self, count: int) -> None:
        keys = self.new_ranges(count, "new")
        alone = timed(lambda: self.run_commands("crawl incremental", "dump incremental"))
        self.measure(RANGE_ASSETS, keys, alone)
        standing = self.states()
        print(f"\n{len(keys)} ranges: all {', '.join(sorted({standing[key] for key in keys}))}\n", flush=True)

    def measure(self, assets: Sequence[str], keys: Sequence[str], alone: tuple[float, float]) -> None:
        """Print a line of the table: a backfill of these partitions, and `alone`, the same work without Dagster."""
        began = time.monotonic(), tree_processor_s(self.dagster.process)
        backfill = self.finished(self.dagster.backfill(assets, keys))
        seconds = time.monotonic() - began[0], tree_processor_s(self.dagster.process) - began[1]
        more = [1000 * (with_it - without) / len(keys) for with_it, without in zip(seconds, alone, strict=True)]
        print(
            f"| {len(keys):,} of {len(assets)} assets | {self.count_runs(backfill)} | {alone[0]:.1f} | {seconds[0]:.1f}"
            f" | {more[0]:.0f} | {alone[1]:.1f} and {seconds[1]:.1f} | {more[1]:.0f} |",
            flush=True,
        )

    def show_exhausted(self) -> None:
        list_index(self.resources.crawler.get())
        keys = project_parts.get_partition_keys()
        projects = [f"old-{number}" for number in SPOILED]
        self.exhaust(PART_ASSETS, keys, {project: project_part_key(project_shard(project)) for project in projects})
        keys = self.new_ranges(FAULTY_RANGES, "broken")
        self.exhaust(RANGE_ASSETS, keys, {f"broken-{number}": keys[number] for number in SPOILED})

    def exhaust(self, assets: Sequence[str], keys: Sequence[str], spoiled: Mapping[str, str]) -> None:
        """Run a backfill in which the index answers 500 to the pages of the `spoiled` projects, and print the remaining
        failures.

        These projects are in the partitions `keys`.
        """
        visits = next(name for name in assets if name in {"crawled_projects", "changed_distributions"})
        paths = {f"/simple/{project}/" for project in spoiled}

        def refuse(request: Request) -> Response | None:
            return PlainTextResponse("spoiled", 500) if request.url.path in paths else None

        listed = ", ".join(f"{project} ({key})" for project, key in spoiled.items())
        print(f"{len(keys):,} of {len(assets)} assets, the index answers 500 to the pages of {listed}:")
        self.index.faults = refuse
        backfill = self.finished(self.dagster.backfill(assets, keys))
        exhausted = [key for key in keys if self.number(visits, key, "gave_up")]
        print(f"  {self.dagster.backfill_ended(backfill)}: exhausted in {', '.join(exhausted)}")
        self.index.faults = None
        self.finished(self.dagster.backfill(assets, exhausted))
        left = [key for key in keys if self.number(visits, key, "gave_up")]
        print(f"  after another backfill of these: in {', '.join(left) or 'none'}", flush=True)

    def show_failures(self) -> None:
        for table, asset in (("serial_ranges", "changelog"), ("dumps", "incremental_dump")):
            keys = self.new_ranges(FAULTY_RANGES, f"refused-{table.replace('_', '-')}")
            spoiled = [keys[number] for number in SPOILED]
            print(f"the catalog refuses rows of {table} of {', '.join(spoiled)}:")
            with self.refusing(table, spoiled):
                backfill = self.finished(self.dagster.backfill(RANGE_ASSETS, keys))
                self.show_failed(asset, backfill)
                backfill = self.finished(self.dagster.backfill_from_failure(backfill))
                self.show_failed(asset, backfill)
            self.show_failed(asset, self.finished(self.dagster.backfill_from_failure(backfill)))
            standing = self.states()
            print(f"  ranges: all {', '.join(sorted({standing[key] for key in keys}))}", flush=True)

    def show_failed(self, asset: str, backfill: str) -> None:
        failed = {name: self.dagster.failed_partitions(name) for name in RANGE_ASSETS}
        others = ", ".join(f"{len(keys)} of {name}" for name, keys in failed.items() if name != asset)
        print(
            f"  {self.dagster.backfill_ended(backfill)}, {self.count_runs(backfill)} runs: failed are"
            f" {', '.join(failed[asset]) or 'none'} of {asset}, {others}"
        )

    @contextmanager
    def refusing(self, table: str, keys: Sequence[str]) -> Iterator[None]:
        starts = ", ".join(str(SerialRange.parse(key).start) for key in keys)
        event = "INSERT" if table == "dumps" else "UPDATE"
        statement = f"CREATE TRIGGER spoiled BEFORE {event} ON {table} WHEN NEW.start IN ({starts})"
        with self.resources.catalog.get().write() as connection:
            connection.execute(text(f"{statement} BEGIN SELECT RAISE(ABORT, 'spoiled'); END"))
        yield
        with self.resources.catalog.get().write() as connection:
            connection.execute(text("DROP TRIGGER spoiled"))

    def new_ranges(self, count: int, name: str) -> list[str]:
        """Upload `count` projects. Each is a range of the ledger and a partition. Return the keys."""
        for number in range(count):
            self.index.wheel(f"{name}-{number}", "1.0")
        keys = [serials.key for serials in allocate_next_ranges(self.resources.crawler.get())]
        assert len(keys) == count
        self.instance.add_dynamic_partitions("serial_ranges", keys)
        return keys

    def finished(self, backfill: str) -> str:
        self.dagster.until(lambda: self.dagster.backfill_ended(backfill), PATIENCE_S)
        return backfill

    def count_runs(self, backfill: str) -> int:
        return self.instance.get_runs_count(dg.RunsFilter(tags={"dagster/backfill": backfill}))

    def number(self, asset: str, key: str, name: str) -> Any:
        """Return the number `name` from the metadata of a partition's newest materialization."""
        wanted = dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[key])
        [record] = self.instance.fetch_materializations(wanted, limit=1).records
        assert record.asset_materialization is not None
        return record.asset_materialization.metadata[name].value

    def states(self) -> dict[str, ShownState]:
        catalog = self.resources.catalog.get()
        with catalog.read() as connection:
            return {one.serials.key: one.state for one in range_statuses(connection, catalog.clock())}

    def run_commands(self, *commands: str) -> None:
        for command in commands:
            run_command(self.plain, command)

    def _settings(self, home: Path) -> Settings:
        return load_settings(
            home=home,
            index_url=self.index.url,
            requests_per_second=10_000,
            range_events=EVENTS_AN_UPLOAD,
            revisit_share=0,
            retry_pause_s=0.1,
            retry_deadline_s=2,
        )


def run_command(settings: Settings, command: str) -> None:
    program = Path(sys.executable).with_name("pypi-assets")
    environment = os.environ | variables(settings)
    subprocess.run([program, *command.split()], env=environment, capture_output=True, check=True)


def variables(settings: Settings) -> dict[str, str]:
    """Return the settings that differ from the defaults, as environment variables."""
    changed = settings.model_dump(mode="json", exclude_defaults=True)
    values = {name: value if isinstance(value, str) else json.dumps(value) for name, value in changed.items()}
    return {f"PYPI_ASSETS_{name.upper()}": value for name, value in values.items()}


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds by the clock, and the processor time of the processes that it waited for."""
    began = time.monotonic(), children_s()
    work()
    return time.monotonic() - began[0], children_s() - began[1]


def children_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
