"""Servers that delay requests as long as possible can affect only their own projects and files."""

import time
from contextlib import ExitStack

import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.index.transport import Timeouts
from pypi_assets_tests.index.hostile_servers import HOLDS, holding
from pypi_assets_tests.served_index import ServedIndex, live

TIMEOUT_S = 0.5
TEN = [
    "dripped headers",
    "dripped chunk size",
    "endless 100 Continue",
    "endless empty deflate blocks",
    "dripped gzip name",
    "dripped body",
    "dripped trailers",
    "a flood of headers",
    "endless 103 Early Hints",
    "slow redirects",
]


@pytest.mark.nightly
def test_ten_servers_that_hold_requests_do_not_stop_a_crawl(index: ServedIndex, catalog: Catalog) -> None:
    """They serve the pages of ten projects and the files of ten others, all of which come before the good projects."""
    with ExitStack() as stack:
        urls = [stack.enter_context(holding(HOLDS[name])).url for name in TEN]
        for number in range(10):
            index.wheel(f"a-page-{number}", "1.0")
            index.wheel(f"b-file-{number}", "1.0")
            index.wheel(f"good-{number}", "1.0")

        def fault(request: Request) -> Response | None:
            held, _, number = request.url.path.removeprefix("/simple/").strip("/").rpartition("-")
            if held == "a-page":
                return RedirectResponse(f"{urls[int(number)]}/simple/demo/")
            name = request.url.path.rpartition("/")[2]
            if name.startswith("b_file_"):
                return RedirectResponse(f"{urls[int(name[7])]}/{name}")
            return None

        index.faults = fault
        started = time.monotonic()
        client = index.client(timeouts=Timeouts(TIMEOUT_S, TIMEOUT_S), max_connections=10)
        result = crawl_full(index.crawler(catalog, index=client, connections=10))
        seconds = time.monotonic() - started
    good = {f"good_{number}-1.0-py3-none-any.whl" for number in range(10)}
    held = {f"b_file_{number}-1.0-py3-none-any.whl" for number in range(10)}
    assert {name for name, _ in live(catalog)} == good | held
    assert (result.visits.done, result.visits.exhausted) == (20, 10)
    assert (result.reads.data, result.reads.errors + result.reads.exhausted) == (10, 10)
    assert seconds < 60 * TIMEOUT_S
