"""Crawls in separate processes, built from settings like real ones, for tests that kill them."""

import signal
from functools import partial
from multiprocessing.context import ForkServerProcess

from pypi_assets.components import catalog_from, crawler_from, index_from, readers_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.scope_crawl import run_ready_scopes
from pypi_assets.settings import load_settings
from pypi_assets_tests.forked import processes
from pypi_assets_tests.served_index import ServedIndex

WORKS = {
    "full": crawl_full,
    "trial": partial(crawl_full, limit=5),
    "incremental": crawl_incremental,
    "scopes": run_ready_scopes,
}


def crawl_process(index: ServedIndex, database_url: str, work: str, **more: object) -> ForkServerProcess:
    """Return an unstarted process that does one of the WORKS. `more` adds to the common settings."""
    settings = {"index_url": index.url, "database_url": database_url, "storage_url": index.storage.url} | more
    return processes.Process(target=_crawl, args=(work, settings))


def _crawl(work: str, more: dict[str, object]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = load_settings(requests_per_second=10_000, max_connections=2, request_attempts=1, **more)
    catalog = catalog_from(settings)
    with readers_from(settings) as readers:
        WORKS[work](crawler_from(settings, index_from(settings, catalog), catalog, storage_from(settings), readers))
