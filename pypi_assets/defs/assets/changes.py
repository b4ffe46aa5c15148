"""Following the index: its changelog in serial ranges, the projects that changed, and their distributions."""

import time

import dagster as dg
from dagster import ResourceParam

from pypi_assets.crawl.incremental import read_range, store_changelog, visit_range
from pypi_assets.defs.assets.crawl import INDEX_POOL, OWNERS, RETRIES
from pypi_assets.defs.marking import marking, progress_log
from pypi_assets.defs.partitions import parse_ranges, serial_ranges
from pypi_assets.defs.parts import Parts
from pypi_assets.distributions.models import EXTRACTOR_VERSION

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
    with marking(context) as mark:
        crawler = parts.crawler(progress_log(context), context.log.warning)
        for serials in parse_ranges(list(context.partition_keys)):
            started = time.monotonic()
            events = store_changelog(crawler, serials)
            mark(
                serials.key,
                {
                    "dagster/partition_row_count": events.events,
                    "serials": serials.end - serials.start,
                    "unknown_events": events.unknown,
                    "changed_projects": events.changed_projects,
                    "seconds": round(time.monotonic() - started, 3),
                },
            )
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
    with marking(context) as mark:
        crawler = parts.crawler(progress_log(context), context.log.warning)
        for serials in parse_ranges(list(context.partition_keys)):
            started = time.monotonic()
            visits = visit_range(crawler, serials)
            mark(
                serials.key,
                {
                    "projects": visits.total,
                    "visited": visits.done,
                    "gave_up": visits.gave_up,
                    "seconds": round(time.monotonic() - started, 3),
                },
            )
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
    with marking(context) as mark:
        crawler = parts.crawler(progress_log(context), context.log.warning)
        for serials in parse_ranges(list(context.partition_keys)):
            reads = read_range(crawler, serials)
            mark(
                serials.key,
                {
                    "read": reads.data,
                    "failed": reads.errors + reads.gave_up,
                    "unsupported": reads.unsupported,
                    "vanished": reads.vanished,
                    "bytes_fetched": reads.bytes_fetched,
                    "requests": reads.requests,
                    "seconds": round(reads.seconds, 3),
                },
            )
    return dg.MaterializeResult()
