"""A crawl of an index where a tenth of all requests fail in various ways ends unattended and exact."""

import random

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.publications.dump_registry import full_dump_rows, open_full_dump
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.devindex.faults import FaultPlan
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.index.transport import Retries, Timeouts
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex, live

NOISE = random.Random(1).randbytes(60_000).hex()  # so that wheels are large enough to be read in parts

PLAN = """
fault = [
  {kind = "status", rate = 0.01},
  {kind = "status", status = 502, retry_after = 0, rate = 0.005},
  {kind = "status", status = 429, retry_after = 0, retry_after_as = "date", rate = 0.005},
  {kind = "reset", rate = 0.01},
  {kind = "reset", sent = 0.5, rate = 0.01},
  {kind = "truncated", rate = 0.01},
  {kind = "html", rate = 0.01},
  {kind = "hang", rate = 0.005},
  {kind = "slow", bytes_per_second = 1, rate = 0.005},
  {kind = "xmlrpc-fault", reset = 0, rate = 0.02},
  {kind = "xmlrpc-fault", code = -32403, rate = 0.01},
  {kind = "stale", serials = 5, rate = 0.01},
  {kind = "gzip", broken = true, on = ["index", "page", "legacy"], rate = 0.01},
  {kind = "status", status = 404, on = ["page", "sidecar"], rate = 0.01},
  {kind = "no-ranges", rate = 0.01},
  {kind = "wrong-bytes", rate = 0.01},
  {kind = "wrong-size", on = ["file", "sidecar"], rate = 0.01},
  {kind = "redirect", on = ["file", "range"], rate = 0.01},
]
"""


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_crawl_with_a_tenth_of_requests_failing_is_exact(index: ServedIndex, catalog: Catalog, tmp_path, seed):
    undisturbed = index.crawler(open_catalog(sqlite_database(tmp_path / "undisturbed.sqlite")))
    plan = FaultPlan(f"seed = {seed}\n{PLAN}")
    client = index.client(retries=Retries(6, 0.001), timeouts=Timeouts(read_s=0.25))
    disturbed = index.crawler(catalog, index=client, retry_deadline_s=60)
    for upload, crawl in ((fill, crawl_full), (change, crawl_incremental)):
        upload(index)
        crawl(undisturbed)
        index.faults = plan
        crawl(disturbed)
        index.faults = None
        assert live(disturbed.catalog) == live(undisturbed.catalog) == index.shown()
        assert rows(disturbed) == rows(undisturbed)
    status = catalog_status(catalog)
    assert (status.failed_visits, status.outcomes["gave up"], status.outcomes["error"]) == (0, 0, 0)
    assert plan.met.total() > plan.seen * 0.03
    assert len(plan.met) > 2
    undisturbed.catalog.close()


def fill(index: ServedIndex) -> None:
    for number in range(10):
        index.wheel(f"project-{number}", "1.0", requires_dist=["other>1"], files={f"package{number}/big.py": NOISE})
        index.sdist(f"project-{number}", "1.0")


def change(index: ServedIndex) -> None:
    for number in range(10):
        index.wheel(f"project-{number}", "2.0", files={f"package{number}/big.py": NOISE})
        index.sdist(f"new-{number}", "1.0")
    for project in ("project-1", "project-2"):
        index.history.yank(project, "1.0", "broken")
    index.history.remove_release("project-3", "1.0")
    index.history.remove_project("project-4")
    index.history.quarantine("project-5")


def rows(crawler: Crawler) -> list[dict[str, object]]:
    """Return all rows of a full dump, without `live_since`.

    If the list was stale, the events after it are stored, so that serials before the full crawl are known; otherwise
    they are not.
    """
    dumped = map(as_dumped, full_dump_rows(crawler.catalog, open_full_dump(crawler.catalog, 1), 0))
    return [{name: value for name, value in row.items() if name != "live_since"} for row in dumped]
