"""The full crawl: every project of the index is listed, visited and read, in 1,000 shards."""

from typing import Any

import dagster as dg

from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reports.failures import failed_reads_of_shard
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import list_index
from pypi_assets.crawl.run_size import SHARDS_IN_ONE_RUN
from pypi_assets.crawl.shards import FinishedShard, crawl_of_shards, read_each_shard, visit_each_shard
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.marking import failure_counts, marking, progress_log
from pypi_assets.defs.partitions import parse_shards, project_shards
from pypi_assets.defs.policy import crawl_asset
from pypi_assets.defs.read_results import SHOWN_FAILURES, failure_table, total_metadata
from pypi_assets.defs.resources import CrawlerResource
from pypi_assets.distributions.record import EXTRACTOR_VERSION


@crawl_asset(deps=["package_index"])
def project_listing(context: dg.AssetExecutionContext, crawler: CrawlerResource) -> dg.MaterializeResult[None]:
    """The names of all projects that the package index has, as of one moment.

    That moment is a serial, the number of the index's newest event. A run joins the full crawl that is not complete
    yet, or begins one.
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


@crawl_asset(project_shards, SHARDS_IN_ONE_RUN, deps=["project_listing"])
def crawled_projects(context: dg.AssetExecutionContext, crawler: CrawlerResource) -> dg.MaterializeResult[None]:
    """The page of every project: which files it has, with their hashes and addresses.

    A partition is one of 1,000 shards of the projects, by sha256 of the normalized name; `pypi-assets where PROJECT`
    prints which one a project is in. A run does its part of the full crawl that is not complete yet. Where there is
    none, it visits its projects once more, and completes nothing.
    """
    with marking(context) as mark:
        shards = parse_shards(project_shards, context.partition_keys)
        opened = crawler.get(progress_log(context), context.log.warning)
        mark.data_version = str(crawl_of_shards(opened).serial)
        for finished in visit_each_shard(opened, list(shards)):
            visits = finished.visits
            mark(
                shards[finished.shard],
                {
                    "projects": visits.total,
                    "visited": visits.done,
                    "gave_up": visits.exhausted,
                    "seconds_of_group": round(finished.seconds, 3),
                },
            )
    return mark.result()


@crawl_asset(project_shards, SHARDS_IN_ONE_RUN, deps=["crawled_projects"], code_version=str(EXTRACTOR_VERSION))
def crawled_distribution_data(
    context: dg.AssetExecutionContext, crawler: CrawlerResource
) -> dg.MaterializeResult[None]:
    """What every file of the index contains and requires, or why that is unknown.

    Modules, commands, requirements and the like of each wheel, sdist and egg, of which no code is run. A partition is
    one of 1,000 shards of the projects, by sha256 of the normalized name. The last one completes the full crawl. Where
    none is under way, a run reads what is left over, which is mostly nothing.
    """
    with marking(context) as mark:
        shards = parse_shards(project_shards, context.partition_keys)
        opened = crawler.get(progress_log(context), context.log.warning)
        mark.data_version = str(crawl_of_shards(opened).serial)
        for finished in read_each_shard(opened, list(shards)):
            mark(shards[finished.shard], _failures_of(opened, finished) | _read_metadata(finished))
        return mark.result(total_metadata(opened.catalog))


def _failures_of(crawler: Crawler, finished: FinishedShard) -> dict[str, dg.MetadataValue[Any]]:
    count = sum(finished.reads.failures.values())
    if not count:
        return {}
    with crawler.catalog.read() as connection:
        failures = failed_reads_of_shard(connection, finished.shard, crawler.max_attempts, SHOWN_FAILURES)
    return failure_table(failures, count)


def _read_metadata(finished: FinishedShard) -> dict[str, Any]:
    outcomes = finished.reads.outcomes
    return {
        "dagster/partition_row_count": sum(outcomes.values()),
        "read": outcomes.get(Outcome.DATA, 0),
        **failure_counts(finished.reads.failures),
        "unsupported": outcomes.get(Outcome.UNSUPPORTED, 0),
        "vanished": outcomes.get(Outcome.VANISHED, 0),
        "bytes_fetched": finished.reads.bytes_fetched,
        "requests": finished.reads.requests,
        "seconds_of_group": round(finished.seconds, 3),
    }
