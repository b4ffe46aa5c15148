"""Measure the cost of a full crawl in which a tenth of all requests fail, and check that its result is exact.

    python -m benchmarks.faults [FOLDER] [--seed 1] [--connections 8]

Crawls an index of the real files in `FOLDER` (default .corpora; it contains `closure` and `pairs`, which `python -m
benchmarks.corpora.download` fetches), served on loopback from this process: undisturbed, disturbed by the fault plan
below, and undisturbed again. All three use the settings' deadlines, except for the seconds to wait for a server that
hangs. It fails unless each catalog equals the pages of the index, all catalogs describe each file identically, and no
retries are exhausted.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from benchmarks.corpora.download import FOLDER
from pypi_assets.catalog.publications.dump_registry import full_dump_rows, open_full_dump
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.components import catalog_from, crawler_from, index_from, readers_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.faults import FaultPlan
from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.settings import load_settings

READ_TIMEOUT_S = 2.0
PLAN = """
seed = {seed}
fault = [
  {{kind = "status", rate = 0.01}},
  {{kind = "status", status = 502, retry_after = 1, rate = 0.005}},
  {{kind = "status", status = 429, retry_after = 1, retry_after_as = "date", rate = 0.005}},
  {{kind = "reset", rate = 0.01}},
  {{kind = "reset", sent = 0.5, rate = 0.01}},
  {{kind = "truncated", rate = 0.01}},
  {{kind = "html", rate = 0.01}},
  {{kind = "hang", rate = 0.005}},
  {{kind = "slow", bytes_per_second = 10, rate = 0.005}},
  {{kind = "xmlrpc-fault", reset = 1, rate = 0.02}},
  {{kind = "xmlrpc-fault", code = -32403, rate = 0.01}},
  {{kind = "stale", serials = 50, rate = 0.01}},
  {{kind = "gzip", broken = true, on = ["index", "page", "legacy"], rate = 0.01}},
  {{kind = "status", status = 404, on = ["page", "sidecar"], rate = 0.01}},
  {{kind = "no-ranges", rate = 0.01}},
  {{kind = "wrong-bytes", rate = 0.01}},
  {{kind = "wrong-size", on = ["file", "sidecar"], rate = 0.01}},
  {{kind = "redirect", on = ["file", "range"], rate = 0.01}},
]
"""


@dataclass(frozen=True)
class Crawl:
    seconds: float
    rows: list[dict[str, object]]
    """The rows of a full dump, except `live_since`, which is more precise if a list was stale."""


def fill(index: Path, files: list[Path]) -> History:
    """Create an index of all `files` whose names are new to it, with every tenth release yanked."""
    history = History(index)
    for path in files:
        try:
            history.add(path)
        except OperationRefusedError as error:
            print(f"skipped: {error}")
    projects = list(history.state().projects.values())
    for project in projects[::10]:
        for release in list(project.releases.values()):
            history.yank(project.name, release.version)
    return history


def crawl(folder: Path, url: str, connections: int) -> Crawl:
    settings = load_settings(
        home=folder,
        index_url=url,
        requests_per_second=10_000,
        max_connections=connections,
        read_timeout_s=READ_TIMEOUT_S,
    )
    catalog = catalog_from(settings)
    with index_from(settings) as client, readers_from(settings) as readers:
        crawler = crawler_from(settings, client, catalog, storage_from(settings), readers)
        started = time.monotonic()
        crawl_full(crawler)
        seconds = time.monotonic() - started
    status = catalog_status(catalog)
    assert (status.failed_visits, status.outcomes["gave up"], status.outcomes["pending"]) == (0, 0, 0), status
    dumped = map(as_dumped, full_dump_rows(catalog, open_full_dump(catalog, 1), 0))
    rows = [{name: value for name, value in row.items() if name != "live_since"} for row in dumped]
    assert len(rows) == len(list(live_files(catalog)))
    catalog.close()
    return Crawl(seconds, rows)


def shown(history: History) -> dict[str, bool]:
    """Return the filenames on the index's pages, and whether they are yanked."""
    return {
        filename: release.yanked
        for project in history.state().projects.values()
        for release in project.visible_releases()
        for filename in release.files
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    found = {path.name: path for part in ("closure", "pairs") for path in sorted((options.folder / part).glob("*.*"))}
    if not found:
        parser.error(f"no files in {options.folder}: python -m benchmarks.corpora.download fetches them")
    hook: list[Callable[[Request], Response | None]] = []
    plan = FaultPlan(PLAN.format(seed=options.seed))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        history = fill(folder / "index", list(found.values()))
        expected = shown(history)
        with running(folder / "index", faults=lambda request: hook[0](request) if hook else None) as url:
            before = crawl(folder / "before", url, options.connections)
            hook.append(plan)
            disturbed = crawl(folder / "disturbed", url, options.connections)
            hook.clear()
            after = crawl(folder / "after", url, options.connections)
    for one in (before, disturbed, after):
        assert {row["filename"]: row["yanked"] for row in one.rows} == expected
        assert one.rows == before.rows
    undisturbed = (before.seconds + after.seconds) / 2
    print(f"{len(expected)} files, {options.connections} connections, {os.cpu_count()} cores, seed {options.seed}")
    print("| | seconds | ratio |\n|---|---|---|")
    for what, seconds in (("undisturbed (mean of two)", undisturbed), ("disturbed", disturbed.seconds)):
        print(f"| {what} | {seconds:.2f} | {seconds / undisturbed:.2f} |")
    met = ", ".join(f"{kind} {count}" for kind, count in plan.met.most_common())
    print(f"{plan.met.total()} of {plan.seen} requests met a fault ({plan.met.total() / plan.seen:.1%}): {met}")
    print("each catalog equals what the index shows, and all describe each file identically")


if __name__ == "__main__":
    main()
