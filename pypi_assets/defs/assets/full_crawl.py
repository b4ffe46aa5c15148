"""The assets of the full crawl, which lists, visits and reads every project of the index, in 100 parts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import dagster as dg

from pypi_assets.catalog.observed.projects import SHARDS_IN_A_PART, project_part_key
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.failures import RecordedFailure, failed_reads_of_shard
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import FinishedShard, crawl_of_shards, list_index, read_each_shard, visit_each_shard
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import crawl_asset
from pypi_assets.defs.policy import project_parts, shards_of_parts
from pypi_assets.defs.reporting import (
    SHOWN_FAILURES,
    failure_counts,
    failure_table,
    marking,
    progress_log,
    total_metadata,
)
from pypi_assets.defs.resources import CrawlerResource
from pypi_assets.distributions.record import EXTRACTOR_VERSION


@crawl_asset(deps=["package_index"])
def project_listing(context: dg.AssetExecutionContext, crawler: CrawlerResource) -> dg.MaterializeResult[None]:
    """The names of all projects on the package index, as of one serial, the number of the index's newest event.

    A run joins an incomplete full crawl, or begins a new one.
    """
    with expected_errors_as_failures():
        crawl, listing = list_index(crawler.get(progress_log(context), context.log.warning))
    return dg.MaterializeResult(
        data_version=dg.DataVersion(str(crawl.serial)),
        metadata={
            "serial": crawl.serial,
            "projects": listing.projects,
            "selected_but_missing": len(listing.missing),
            "missing": dg.MetadataValue.text(", ".join(listing.missing[:50]) or "none"),
        },
    )


@crawl_asset(partitions=project_parts, deps=["project_listing"])
def crawled_projects(context: dg.AssetExecutionContext, crawler: CrawlerResource) -> dg.MaterializeResult[None]:
    """The page of every project: its files, with their hashes and URLs.

    A partition is one of 100 parts of the projects, by the SHA-256 of the normalized name; `pypi-assets admin where
    PROJECT` prints a project's part. A run does its part of an incomplete full crawl. If there is none, it visits its
    projects again, and completes nothing.
    """
    with marking(context) as mark:
        shards = shards_of_parts(context.partition_keys)
        opened = crawler.get(progress_log(context), context.log.warning)
        mark.data_version = str(crawl_of_shards(opened).serial)
        for part in _finished_parts(visit_each_shard(opened, shards)):
            mark(
                project_part_key(part[0].shard),
                {
                    "projects": sum(one.visits.total for one in part),
                    "visited": sum(one.visits.done for one in part),
                    "gave_up": sum(one.visits.exhausted for one in part),
                    "seconds_of_group": _seconds(part),
                },
            )
    return mark.result()


@crawl_asset(partitions=project_parts, deps=["crawled_projects"], code_version=str(EXTRACTOR_VERSION))
def crawled_distribution_data(
    context: dg.AssetExecutionContext, crawler: CrawlerResource
) -> dg.MaterializeResult[None]:
    """The contents and requirements of every file on the index, or why they are unknown.

    These are the modules, commands, requirements and more of each wheel, sdist and egg. No code of them is run. A
    partition is one of 100 parts of the projects, by the SHA-256 of the normalized name. The last part completes the
    full crawl. If no full crawl is open, a run reads pending files, of which there are usually none.
    """
    with marking(context) as mark:
        shards = shards_of_parts(context.partition_keys)
        opened = crawler.get(progress_log(context), context.log.warning)
        mark.data_version = str(crawl_of_shards(opened).serial)
        for part in _finished_parts(read_each_shard(opened, shards)):
            mark(project_part_key(part[0].shard), _read_metadata(opened, part))
        return mark.result(total_metadata(opened.catalog))


def _finished_parts(shards: Iterator[FinishedShard]) -> Iterator[list[FinishedShard]]:
    """Yield the shards of each part once all of them are finished. The shards must be in order, and of whole parts."""
    while part := list(islice(shards, SHARDS_IN_A_PART)):
        yield part


def _seconds(part: Sequence[FinishedShard]) -> float:
    """Return the longest duration of a group that contains some of the part's shards."""
    return round(max(one.seconds for one in part), 3)


def _read_metadata(crawler: Crawler, part: Sequence[FinishedShard]) -> dict[str, Any]:
    outcomes, failures = Counter[str](), Counter[str]()
    shown: list[RecordedFailure] = []
    with crawler.catalog.read() as connection:
        for one in part:
            outcomes.update(one.reads.outcomes)
            failures.update(one.reads.failures)
            if one.reads.failures and len(shown) < SHOWN_FAILURES:
                shown += failed_reads_of_shard(connection, one.shard, crawler.max_attempts, SHOWN_FAILURES)
    return {
        **failure_table(shown, failures.total()),
        "dagster/partition_row_count": outcomes.total(),
        "read": outcomes[ReadOutcome.DATA],
        **failure_counts(failures),
        "unsupported": outcomes[ReadOutcome.UNSUPPORTED],
        "vanished": outcomes[ReadOutcome.VANISHED],
        "bytes_fetched": sum(one.reads.bytes_fetched for one in part),
        "requests": sum(one.reads.requests for one in part),
        "seconds_of_group": _seconds(part),
    }
