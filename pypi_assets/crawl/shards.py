"""Visits and reads a full crawl shard by shard; where none is open, it visits the shards' projects again.

Shards are processed in groups, so that many small ones cost no more than one large one. The steps of the crawl itself
are in `full_crawl.py`.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.observed.projects import projects_in_shards
from pypi_assets.catalog.reads.read_outcomes import ShardReads, reads_by_shard
from pypi_assets.catalog.work.finished_workloads import forget_visits, queue_again
from pypi_assets.catalog.work.full_crawls import FullCrawl, complete_crawl, find_open_crawl, require_last_crawl
from pypi_assets.catalog.work.visit_queue import (
    WorkloadProgress,
    progress_by_shard,
    shards_with_projects,
    workload_progress,
)
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.draining import claiming
from pypi_assets.crawl.full_crawl import require_open_crawl, visit_shards
from pypi_assets.crawl.reading import in_groups, read_workload

_GROUP_PROJECTS = 500


@dataclass(frozen=True, slots=True)
class FinishedShard:
    """One finished shard: the state of its visits and reads, and the seconds that its group took."""

    shard: int
    visits: WorkloadProgress
    reads: ShardReads
    seconds: float


def crawl_of_shards(crawler: Crawler) -> FullCrawl:
    """The open full crawl, else the last completed one. Raises CatalogError where there is neither."""
    with crawler.catalog.read() as connection:
        if find_open_crawl(connection) is None:
            return require_last_crawl(connection, crawler.index.index_url, crawler.selection)
    return require_open_crawl(crawler)


def visit_each_shard(crawler: Crawler, shards: Sequence[int]) -> Iterator[FinishedShard]:
    """Visits the projects that the open full crawl has left in `shards`, and yields each shard when it is finished.

    Where no crawl is open, every known project in `shards` is visited once more; a call that was stopped is resumed.
    """
    crawl = crawl_of_shards(crawler)
    if crawl.completed_at is not None:
        _queue_again(crawler, crawl, shards)
    with claiming(crawler, crawl.workload):  # so that no other process forgets the visits before they are counted
        for group in _groups(crawler, crawl, shards):
            started = time.monotonic()
            visit_shards(crawler, crawl, group)
            yield from _finished(crawler, crawl, group, started)


def read_each_shard(crawler: Crawler, shards: Sequence[int]) -> Iterator[FinishedShard]:
    """Reads what is pending in `shards`, yields each shard when it is finished, and completes a crawl without rest."""
    crawl = crawl_of_shards(crawler)
    workload = crawl.workload if crawl.completed_at is None else None
    with claiming(crawler, crawl.workload):
        for group in _groups(crawler, crawl, shards):
            started = time.monotonic()
            read_workload(crawler, workload, group)
            yield from _finished(crawler, crawl, group, started)
        complete_crawl(crawler.catalog, crawl)
    forget_visits(crawler.catalog, crawl.workload)


def _queue_again(crawler: Crawler, crawl: FullCrawl, shards: Sequence[int]) -> None:
    def queue(connection: Connection) -> None:
        if workload_progress(connection, crawl.workload, shards).todo:
            return
        known = projects_in_shards(connection, shards)
        queue_again(connection, crawl.workload, [(project_id, shard, 0) for project_id, shard in known], shards)

    crawler.catalog.transact(queue)


def _groups(crawler: Crawler, crawl: FullCrawl, shards: Sequence[int]) -> Iterator[list[int]]:
    with crawler.catalog.read() as connection:
        sizes = shards_with_projects(connection, crawl.workload)
    return in_groups(shards, sizes, _GROUP_PROJECTS)


def _finished(crawler: Crawler, crawl: FullCrawl, group: Sequence[int], started: float) -> Iterator[FinishedShard]:
    with crawler.catalog.read() as connection:
        visits = progress_by_shard(connection, crawl.workload, group)
        reads = reads_by_shard(connection, group)
    seconds = time.monotonic() - started
    for shard in group:
        yield FinishedShard(shard, visits[shard], reads[shard], seconds)
