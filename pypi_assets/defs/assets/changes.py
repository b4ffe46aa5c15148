"""Following the index: its changelog in serial ranges, the projects that changed, and their distributions."""

from typing import Any

import dagster as dg
from dagster import ResourceParam

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.incremental_crawl import read_range, store_changelog, visit_range
from pypi_assets.defs.assets.crawl import INDEX_POOL, OWNERS, RETRIES, failure_counts
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.marking import mark_each_range, progress_log
from pypi_assets.defs.partitions import serial_ranges
from pypi_assets.defs.parts import Parts
from pypi_assets.distributions.record import EXTRACTOR_VERSION

GROUP = "incremental_crawl"
RANGES_IN_ONE_RUN = 20


@dg.asset(
    group_name=GROUP,
    partitions_def=serial_ranges,
    backfill_policy=dg.BackfillPolicy.multi_run(RANGES_IN_ONE_RUN),
    kinds={"python", "sqlalchemy"},
    owners=OWNERS,
    pool=INDEX_POOL,
    retry_policy=RETRIES,
    code_version="1",
)
def changelog(context: dg.AssetExecutionContext, parts: ResourceParam[Parts]) -> dg.MaterializeResult[None]:
    """The index's events, stored as they came.

    A partition is a serial range `A-B` of the catalog's ledger: the events with A < serial <= B. Other keys are
    refused.
    """
    crawler = _crawler(context, parts)

    def store(serials: SerialRange) -> dict[str, Any]:
        events = store_changelog(crawler, serials)
        return {
            "dagster/partition_row_count": events.events,
            "serials": serials.end - serials.start,
            "unknown_events": events.unknown,
            "changed_projects": events.changed_projects,
        }

    mark_each_range(context, store)
    return dg.MaterializeResult()


@dg.asset(
    group_name=GROUP,
    deps=[changelog],
    partitions_def=serial_ranges,
    backfill_policy=dg.BackfillPolicy.multi_run(RANGES_IN_ONE_RUN),
    kinds={"python", "sqlalchemy"},
    owners=OWNERS,
    pool=INDEX_POOL,
    retry_policy=RETRIES,
    code_version="1",
)
def changed_distributions(context: dg.AssetExecutionContext, parts: ResourceParam[Parts]) -> dg.MaterializeResult[None]:
    """The pages of the projects that changed, visited and judged.

    A partition is a serial range `A-B` of the ledger: every project of which an event in it changes files. One that is
    complete already is visited once more.
    """
    crawler = _crawler(context, parts)

    def visit(serials: SerialRange) -> dict[str, Any]:
        visits = visit_range(crawler, serials)
        return {
            "projects": visits.total,
            "visited": visits.done,
            "gave_up": visits.exhausted,
        }

    mark_each_range(context, visit)
    return dg.MaterializeResult()


@dg.asset(
    group_name=GROUP,
    deps=[changed_distributions],
    partitions_def=serial_ranges,
    backfill_policy=dg.BackfillPolicy.multi_run(RANGES_IN_ONE_RUN),
    kinds={"python", "sqlalchemy"},
    owners=OWNERS,
    pool=INDEX_POOL,
    retry_policy=RETRIES,
    code_version=str(EXTRACTOR_VERSION),
)
def changed_distribution_data(
    context: dg.AssetExecutionContext, parts: ResourceParam[Parts]
) -> dg.MaterializeResult[None]:
    """What the new distributions of the projects that changed say of themselves.

    A partition is a serial range `A-B` of the ledger. It is complete once each of its projects was visited or given up
    and each of their distributions has an outcome.
    """
    crawler = _crawler(context, parts)

    def read(serials: SerialRange) -> dict[str, Any]:
        reads = read_range(crawler, serials)
        return {
            "read": reads.data,
            **failure_counts(reads.failures),
            "unsupported": reads.unsupported,
            "vanished": reads.vanished,
            "bytes_fetched": reads.bytes_fetched,
            "requests": reads.requests,
        }

    mark_each_range(context, read)
    return dg.MaterializeResult()


def _crawler(context: dg.AssetExecutionContext, parts: Parts) -> Crawler:
    with expected_errors_as_failures():
        return parts.crawler(progress_log(context), context.log.warning)
