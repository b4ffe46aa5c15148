"""Measure Dagster's pages, the sensors and the command line with the partitions of a year.

    python -m benchmarks.many_partitions [FOLDER] [--ranges 52560] [--shown 52560 20000 KEPT] [--no-browser]

FOLDER gets a year of ranges (see benchmarks/year_of_ranges.py; some 5 GB, kept for the next time; the default is a
temporary folder). First it measures work that does not depend on the pages: ticks, as the daemon evaluates them,
without a cursor and with one; compaction; a check; `pypi-assets`; and the pruning of one day's partitions. Then, for
each number of `--shown` newest ranges that remain as partitions, it measures in Chromium with an empty profile: the
seconds until a page is complete, the processor time of Dagster's webserver, and the slowest of the page's queries. The
baseline is the same page of an asset with 256 partitions, in the same run. KEPT is the number that the settings keep.

Needs selenium, chromium and chromedriver.
"""

import argparse
import json
import math
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dagster._core.storage.event_log.schema import DynamicPartitionsTable

from benchmarks.year_of_ranges import PAUSE_S, ROOT, Year, opened_year
from pypi_assets.catalog.ledger.range_ledger import ledger
from pypi_assets.catalog.reports.catalog_status import ledger_faults
from pypi_assets.defs.attempts import attempts
from pypi_assets.defs.maintenance_jobs import prune_partitions
from pypi_assets.defs.naming import BARE
from pypi_assets.dumps.compaction import compact
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import newest_serials, version_name
from pypi_assets.upkeep.old_partitions import old_partitions, shown_ranges, shown_versions

DAY_S = 24 * 3600.0
PATIENCE_S = 600.0
TIMES = 3
BASELINE = 256
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Page:
    """A page. `shows` returns the text (a regular expression) of the complete page for a number of partitions."""

    name: str
    path: str
    shows: Callable[[int], str]


def selected(count: int) -> str:
    return rf"(?s){count:,} Partitions Selected.*Materialized \((?!0\))"


BASELINE_PAGE = Page("full_dump, partitions", "/assets/full_dump?view=partitions", "{:,} Partitions Selected".format)
PAGES = (
    Page("incremental_dump, partitions", "/assets/incremental_dump?view=partitions", selected),
    Page("changelog, partitions", "/assets/changelog?view=partitions", selected),
    Page("graph of data_dumps", "/locations/pypi-assets/asset-groups/data_dumps", "{:,} partitions".format),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--ranges", type=int, default=52_560, help="at least 2")
    parser.add_argument("--shown", type=int, nargs="+")
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as away:
        folder = (options.folder or Path(away)).resolve()
        folder.mkdir(exist_ok=True)
        with opened_year(folder, options.ranges) as year:
            ranges = [serials.key for serials in shown_ranges(year.catalog, math.inf)]
            keys = {
                "serial_ranges": ranges,
                "leveldb_versions": [version_name(version) for version in shown_versions(year.catalog, math.inf)],
            }
            leave(year, keys, len(ranges))
            kept = len(shown_ranges(year.catalog, year.settings.partitions_kept_days))
            print(f"{len(ranges):,} ranges; the settings keep {kept:,}, {year.settings.partitions_kept_days:.0f} days")
            print("\n| | processor s | seconds |\n|---|---|---|")
            measure_processes(year, ranges)
            if not options.no_browser:
                measure_pages(year, folder / "dagster", keys, options.shown or [len(ranges), 20_000, kept])
            leave(year, keys, len(ranges))


def measure_processes(year: Year, keys: Sequence[str]) -> None:
    end = keys[-1].partition("-")[2]
    held = newest_serials(year.storage, DATASETS)
    line("new_serial_range, no cursor", lambda: year.tick("new_serial_range"))
    line("new_serial_range", lambda: year.tick("new_serial_range", end))
    line("first_full_dump", lambda: year.tick("first_full_dump"))
    line("new_leveldb_version", lambda: year.tick("new_leveldb_version"))
    line("runs of a range so far", lambda: attempts(year.instance, "incremental_crawl", keys[-1]))
    line("compaction, nothing to join", lambda: list(compact(year.catalog, year.storage, held=held)))
    with year.catalog.read() as connection:
        line("the ledger, as `ledger` has it", lambda: ledger(connection))
        line("check of the ledger", lambda: ledger_faults(connection))
    for command in (("status",), ("admin", "ranges")):
        line(f"pypi-assets {' '.join(command)}", partial(run_command, year, command))
    days = len(keys) * PAUSE_S / DAY_S
    began = time.monotonic(), time.process_time()
    pruned = prune_partitions(year.instance, BARE, old_partitions(year.catalog, days - 1))
    processor, seconds = time.process_time() - began[1], time.monotonic() - began[0]
    print(f"| pruning of {pruned} partitions | {processor:.2f} | {seconds:.2f} |", flush=True)


def line(name: str, work: Callable[[], object]) -> None:
    """Print the lowest processor time, of this process and its awaited child processes, and the lowest time by the
    clock.
    """
    found = []
    for _ in range(TIMES):
        began = time.monotonic(), processor_s()
        work()
        found.append((processor_s() - began[1], time.monotonic() - began[0]))
    print(f"| {name} | {min(found)[0]:.3f} | {min(one[1] for one in found):.3f} |", flush=True)


def processor_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def run_command(year: Year, command: tuple[str, ...]) -> None:
    program = Path(sys.executable).with_name("pypi-assets")
    subprocess.run([program, *command], env=environment(year), capture_output=True, check=False)


def environment(year: Year) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYPI_ASSETS_")}
    return kept | {
        "PYPI_ASSETS_HOME": str(year.settings.home),
        "PYPI_ASSETS_INDEX_URL": year.settings.index_url,
        "PYTHONWARNINGS": "ignore",
    }


def leave(year: Year, keys: dict[str, list[str]], count: int) -> None:
    """Keep only the newest `count` of `keys`, of ranges and of versions, as partitions, in their order."""
    table = DynamicPartitionsTable
    with year.instance.event_log_storage.index_connection() as connection:  # type: ignore[attr-defined]
        connection.execute(table.delete())
        for name, some in keys.items():
            rows = [{"partitions_def_name": name, "partition": key} for key in some[-count:]]
            connection.execute(table.insert(), rows)


def measure_pages(year: Year, dagster_home: Path, keys: dict[str, list[str]], shown: Sequence[int]) -> None:
    for count in shown:
        leave(year, keys, count)
        with webserver(year, dagster_home) as (process, url):
            see(url, process, BASELINE_PAGE, BASELINE)  # a first time, to fill the server's caches
            for page in (BASELINE_PAGE, *PAGES):
                see(url, process, page, BASELINE if page is BASELINE_PAGE else count, show=True)


def see(url: str, process: int, page: Page, count: int, *, show: bool = False) -> None:
    """Print how long the page took, and its slowest query, if `show`."""
    with chromium() as browser:
        began = time.monotonic(), tree_processor_s(process)
        browser.get(url + page.path)
        shows = re.compile(page.shows(count))
        while not shows.search(text_of(browser)):
            if time.monotonic() - began[0] > PATIENCE_S:
                raise SystemExit(f"{page.name}: not there after {PATIENCE_S:.0f} s:\n{text_of(browser)[:2000]}")
            time.sleep(0.1)
        seconds, processor = time.monotonic() - began[0], tree_processor_s(process) - began[1]
        slowest, query_s, size = max(queries(browser), key=lambda one: one[1])
    if show:
        print(
            f"{page.name:<30} {count:>6,} partitions: {seconds:>6.1f} s; the webserver's processor {processor:>5.2f} s;"
            f" {slowest} {query_s:.2f} s, {size / 1e6:.2f} MB",
            flush=True,
        )


def text_of(browser: Any) -> str:
    return str(browser.execute_script("return document.body.innerText"))


def queries(browser: Any) -> Iterator[tuple[str, float, int]]:
    """Yield the answered GraphQL queries: name, seconds, and bytes that were sent."""
    sent: dict[str, tuple[str, float]] = {}
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        parameters = message["params"]
        if message["method"] == "Network.requestWillBeSent" and "/graphql" in parameters["request"]["url"]:
            name = json.loads(parameters["request"].get("postData", "{}")).get("operationName", "?")
            sent[parameters["requestId"]] = name, parameters["timestamp"]
        elif message["method"] == "Network.loadingFinished" and parameters["requestId"] in sent:
            name, began = sent[parameters["requestId"]]
            yield name, parameters["timestamp"] - began, int(parameters["encodedDataLength"])


@contextmanager
def chromium() -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server"):
        options.add_argument(option)
    options.add_argument("--window-size=1500,1100")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    options.binary_location = str(shutil.which("chromium"))
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


@contextmanager
def webserver(year: Year, dagster_home: Path) -> Iterator[tuple[int, str]]:
    """Yield Dagster's webserver: its process, and its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    program = Path(sys.executable).with_name("dagster-webserver")
    command = [program, "--host", "127.0.0.1", "--port", port, "--workspace", ROOT / "workspace.yaml"]
    settings = environment(year) | {"DAGSTER_HOME": str(dagster_home), "PYTHONPATH": str(ROOT)}
    with (dagster_home / "webserver.log").open("wb") as log:
        process = subprocess.Popen(command, env=settings, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        until_it_answers(f"{url}/server_info")
        yield process.pid, url
    finally:
        process.terminate()
        process.wait()


def until_it_answers(url: str) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with direct.open(url, timeout=10):
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def tree_processor_s(root: int) -> float:
    """Return the processor time of a process and its descendants, including those that have ended."""
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        parents[int(folder.name)], used[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    below = {root}
    while more := {one for one, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(used.get(one, 0) for one in below) / TICKS_PER_SECOND


if __name__ == "__main__":
    main()
