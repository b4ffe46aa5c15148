"""Rule 7: kill -9 at any moment loses nothing that was committed, and running again ends in the same state."""

import threading

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.crawl.test_exactness import content
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.forked import ForkedProgram
from pypi_assets_tests.served_index import ServedIndex, live

CRAWL = """
import sys
from pypi_assets.assembly import catalog_from, crawler_from, index_from, readers_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.scope_crawl import run_ready_scopes
from pypi_assets.settings import load_settings

url, database_url, storage_url, work = sys.argv[1:]
settings = load_settings(
    index_url=url,
    database_url=database_url,
    storage_url=storage_url,
    requests_per_second=1000,
    max_connections=2,
    request_attempts=1,
)
catalog = catalog_from(settings)
{"full": crawl_full, "incremental": crawl_incremental, "scopes": run_ready_scopes}[work](
    crawler_from(settings, index_from(settings, catalog), catalog, storage_from(settings), readers_from(settings))
)
"""


def kill_at(index: ServedIndex, catalog: Catalog, work: str, path: str, request_number: int) -> None:
    """Runs the crawl in a process of its own, and kills it at its `request_number`-th request for `path`."""
    reached, killed = threading.Event(), threading.Event()
    seen = []

    def hold(request):
        if path in request.url.path and not killed.is_set():
            seen.append(request)
            if len(seen) >= request_number:
                reached.set()
                killed.wait(120)

    index.faults = hold
    database_url = catalog.engine.url.render_as_string(hide_password=False)
    with ForkedProgram(CRAWL, index.url, database_url, index.storage.url, work) as process:
        assert reached.wait(120)
        process.kill()
        assert process.wait(120) == -9
    killed.set()
    index.faults = None


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("path", "request_number"), [("/simple/project", 3), ("/simple/project", 12), ("/packages/", 9)]
)
def test_killed_in_a_full_crawl(index: ServedIndex, catalog: Catalog, tmp_path, path: str, request_number: int):
    for number in range(12):
        index.wheel(f"project{number}", "1.0")
        index.sdist(f"project{number}", "1.0")
    kill_at(index, catalog, "full", path, request_number)
    undisturbed = open_catalog(sqlite_database(tmp_path / "undisturbed.sqlite"))
    for each in (catalog, undisturbed):
        crawl_full(index.crawler(each))
    assert content(catalog) == content(undisturbed)
    undisturbed.close()
    assert live(catalog) == index.shown()


@pytest.mark.parametrize(("path", "request_number"), [("/pypi", 2), ("/simple/project", 3), ("/packages/", 4)])
def test_killed_in_a_range(index: ServedIndex, catalog: Catalog, tmp_path, path: str, request_number: int):
    for number in range(8):
        index.wheel(f"project{number}", "1.0")
    undisturbed = open_catalog(sqlite_database(tmp_path / "undisturbed.sqlite"))
    for each in (catalog, undisturbed):
        crawl_full(index.crawler(each))
    for number in range(8):
        index.sdist(f"project{number}", "1.0")
    index.history.remove_project("project3")
    index.history.yank("project4", "1.0")
    kill_at(index, catalog, "incremental", path, request_number)
    for each in (catalog, undisturbed):
        crawl_incremental(index.crawler(each))
    assert content(catalog) == content(undisturbed)
    undisturbed.close()
    assert live(catalog) == index.shown()
