"""The jobs. `full_crawl` and `full_dump` take all their partitions in one run unless told otherwise."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

import dagster as dg
from dagster import ResourceParam
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from pydantic import Field

from pypi_assets.catalog.reports.failures import VISIT
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.retry import retry
from pypi_assets.defs.assets.changes import (
    changed_distribution_data,
    changed_distributions,
    changelog,
)
from pypi_assets.defs.assets.crawl import INDEX_POOL, crawled_distribution_data, crawled_projects, project_listing
from pypi_assets.defs.assets.dumps import FROM_SCRATCH_TAG, compacted_dump, full_dump, incremental_dump
from pypi_assets.defs.assets.leveldbs import depgraph_leveldb, modules_leveldb
from pypi_assets.defs.assets.parquet import parquet_export
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.health import HEALTH_CHECKS
from pypi_assets.defs.markdown import markdown_table
from pypi_assets.defs.marking import count_log, progress_log
from pypi_assets.defs.partitions import all_of, dump_shards, project_shards
from pypi_assets.defs.parts import Parts
from pypi_assets.defs.pods import BUILDING, CRAWLING, DUMPING, EXPORTING
from pypi_assets.defs.pruning import DAY_S, prune_partitions, prune_runs
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.dumps.unused_dumps import Reason, Removal
from pypi_assets.extracts.reprocess import PROCESSES, reprocess
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.unused_versions import clean_up
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.parquet.unused_exports import clean_exports

ONE_AT_A_TIME_TAG = "pypi-assets/one-at-a-time"
_ENDS_IN_TIME = {"dagster/max_runtime": str(12 * 3600)}  # a run whose machine died counts as failed then


def _assets(*assets: dg.AssetsDefinition) -> dg.AssetSelection:
    """The assets with their checks, but without those of how things stand, which have a job of their own."""
    return dg.AssetSelection.assets(*assets) - dg.AssetSelection.checks(*HEALTH_CHECKS)


full_crawl_job = dg.define_asset_job(
    "full_crawl",
    selection=_assets(project_listing, crawled_projects, crawled_distribution_data),
    tags=all_of(project_shards) | CRAWLING | {ONE_AT_A_TIME_TAG: "full_crawl"},
    description="Lists the index, visits every project and reads every distribution; goes on with an open full crawl.",
)
full_dump_job = dg.define_asset_job(
    "full_dump",
    selection=[full_dump],
    tags=all_of(dump_shards) | _ENDS_IN_TIME | DUMPING | {ONE_AT_A_TIME_TAG: "full_dump"},
    description="Dumps what is live at the complete serial, all 256 shards.",
)
redump_job = dg.define_asset_job(
    "redump",
    selection=[full_dump],
    tags=all_of(dump_shards) | _ENDS_IN_TIME | DUMPING | {ONE_AT_A_TIME_TAG: "full_dump", FROM_SCRATCH_TAG: "true"},
    description="Dumps anew what is live at the complete serial, for what a reprocess has changed.",
)
_OF_SHARDS = (full_crawl_job, full_dump_job, redump_job)
"""Few, and what they have made is shown for as long as nothing newer is."""

compact_dumps_job = dg.define_asset_job(
    "compact_dumps",
    selection=[compacted_dump],
    tags=_ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "compact_dumps"},
    description="Joins dumps of ranges that follow each other, so that there are few to read.",
)
incremental_crawl_job = dg.define_asset_job(
    "incremental_crawl",
    selection=_assets(changelog, changed_distributions, changed_distribution_data, incremental_dump),
    tags=_ENDS_IN_TIME | CRAWLING,
    description="Follows the changelog over one serial range, and dumps what changed.",
)
update_leveldbs_job = dg.define_asset_job(
    "update_leveldbs",
    selection=_assets(modules_leveldb, depgraph_leveldb),
    tags=_ENDS_IN_TIME | BUILDING,
    description="Builds and publishes one version of both LevelDB datasets from the dumps.",
)

export_parquet_job = dg.define_asset_job(
    "export_parquet",
    selection=[parquet_export],
    tags=_ENDS_IN_TIME | EXPORTING | {ONE_AT_A_TIME_TAG: "export_parquet"},
    description="Exports what is live at the end of the dumps as Parquet, where anything is new.",
)

health_job = dg.define_asset_job(
    "health",
    selection=dg.AssetSelection.checks(*HEALTH_CHECKS),
    tags=_ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "health"},
    description="Checks how far behind the index things are, how much was given up, and what an audit found.",
)


@dg.op
def verify_newest_versions(context: dg.OpExecutionContext, parts: ResourceParam[Parts]) -> None:
    """Builds the newest version of each dataset anew from its input list, and compares them record by record."""
    problems: list[str] = []
    with expected_errors_as_failures():
        for dataset in DATASETS:
            for version in published_versions(parts.storage, dataset)[-1:]:
                verified = verify(
                    dataset,
                    version,
                    storage=parts.storage,
                    deep=True,
                    work_dir=parts.settings.leveldbs_dir,
                    progress=partial(count_log, context),
                )
                problems += verified.problems
                context.log.info(f"version {version} of {dataset}: {verified.records} records were compared")
    if problems:
        raise dg.Failure("; ".join(problems[:10]), allow_retries=False)


@dg.job(
    tags=_ENDS_IN_TIME | BUILDING | {ONE_AT_A_TIME_TAG: "verify_leveldbs"},
    description="Compares the newest LevelDB version of each dataset with a rebuild. Fails where they differ.",
)
def verify_leveldbs() -> None:
    verify_newest_versions()


@dg.op
def clean_up_storage(context: dg.OpExecutionContext, parts: ResourceParam[Parts]) -> None:
    """Deletes what was superseded and what stopped attempts have left, once nobody reads it; prunes old partitions and
    runs.
    """
    with expected_errors_as_failures():
        catalog, storage, settings = parts.catalog, parts.storage, parts.settings
        grace_s = settings.superseded_kept_hours * 3600
        progress = count_log(context, "deletions")
        removed: list[Removal] = []
        for removal in chain(
            clean_up(catalog, storage, grace_s=grace_s, versions_kept=settings.leveldb_versions_kept),
            clean_exports(catalog, storage, grace_s=grace_s, kept=settings.parquet_exports_kept),
        ):
            removed.append(removal)
            progress(len(removed))
        days = settings.partitions_kept_days
        partitions = prune_partitions(context.instance, catalog, days)
        without_end = [job.name for job in JOBS if job not in _OF_SHARDS]
        runs = prune_runs(context.instance, without_end, catalog.clock() - days * DAY_S)
    context.add_output_metadata(
        {reason.value: sum(one.reason == reason for one in removed) for reason in Reason}
        | {"files": sum(one.files for one in removed), "bytes": sum(one.size for one in removed)}
        | {"partitions": partitions, "runs": runs}
    )


@dg.job(
    name="clean_up",
    tags=_ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "clean_up"},
    description="Deletes what was superseded and what stopped attempts have left; prunes old partitions and runs.",
)
def clean_up_job() -> None:
    clean_up_storage()


class Retries(dg.Config):
    """What to try again."""

    kinds: list[str] = Field(
        default=[VISIT, "transient", "gone"],
        description="error kinds; by default those of what was given up; an empty list means every failure",
    )


@dg.op(pool=INDEX_POOL)
def retry_given_up(context: dg.OpExecutionContext, config: Retries, parts: ResourceParam[Parts]) -> None:
    """Visits and reads again what failed, and reads whatever is pending."""
    with expected_errors_as_failures():
        crawler = parts.crawler(progress_log(context), context.log.warning)
        for kind in config.kinds or (None,):
            result = retry(crawler, kind)
            reads = result.reads
            context.log.info(
                f"{kind or 'all kinds'}: {result.retried_visits} visits and {result.retried_reads} reads tried again;"
                f" {result.exhausted_visits} visits and {reads.exhausted} reads were given up, {reads.errors} failed"
            )


@dg.job(
    tags=CRAWLING,
    description="Tries again what was given up: pages that could not be visited, files that could not be fetched.",
)
def retry_failures() -> None:
    retry_given_up()


class Auditing(dg.Config):
    """How much of the index to visit."""

    share_percent: float | None = Field(
        default=None,
        description="percent of all projects that are visited in any case; by default, as the settings say",
    )


@dg.op(pool=INDEX_POOL)
def audit_catalog(context: dg.OpExecutionContext, config: Auditing, parts: ResourceParam[Parts]) -> None:
    """Compares every project's serial with the index's list, and visits those that differ and some others."""
    share = parts.settings.audit_share_percent if config.share_percent is None else config.share_percent
    with expected_errors_as_failures():
        result = audit_index(parts.crawler(progress_log(context), context.log.warning), share)
    findings = result.audit.findings
    context.add_output_metadata(
        {
            "serial": result.audit.serial,
            "visited": result.visits.done,
            "gave_up": result.visits.exhausted,
            "drift": sum(findings.counts.values()),
            **findings.counts,
            "examples": dg.MetadataValue.md(_told_examples(findings.examples)),
        }
    )


@dg.job(
    tags=CRAWLING | {ONE_AT_A_TIME_TAG: "audit"},
    description="Compares the catalog with the index's list of projects, visits what differs, reports drift by cause.",
)
def audit() -> None:
    audit_catalog()


class Reprocessing(dg.Config):
    """Which records to make anew."""

    older_than_version: int = Field(
        default=EXTRACTOR_VERSION,
        ge=1,
        description="those that an extractor older than this made; by default, than the one of today",
    )
    project: str = Field(default="", description="only those of this project")
    processes: int = Field(default=PROCESSES, ge=1, description="how many read at once, of some 100 MB each")


@dg.op
def reprocess_extracts(context: dg.OpExecutionContext, config: Reprocessing, parts: ResourceParam[Parts]) -> None:
    """Makes records anew from what was kept of the distributions, without a request to the index."""
    with expected_errors_as_failures():
        result = reprocess(
            parts.catalog,
            parts.storage,
            parts.readers,
            older_than=config.older_than_version,
            project=config.project or None,
            processes=config.processes,
            report=progress_log(context),
        )
    context.add_output_metadata(
        {
            "looked_at": result.looked_at,
            "changed": result.changed,
            "gained_modules": result.gained_modules,
            "lost_modules": result.lost_modules,
            "changed_requirements": result.changed_requirements,
            "changed_errors": result.changed_errors,
            "overtaken": result.overtaken,
            "unread": result.unread,
            "not_supplied": result.not_supplied,
            "broken_packs": len(result.broken_packs),
            "seconds": round(result.seconds, 3),
            "examples": dg.MetadataValue.md(_told_examples(result.examples)),
        }
    )
    for problem in result.problems:
        context.log.warning(problem)


def _told_examples(found: Mapping[str, Sequence[str]]) -> str:
    rows = [(sort, example) for sort, examples in found.items() for example in examples]
    return markdown_table(("what", "example"), rows)


@dg.job(
    tags=_ENDS_IN_TIME | CRAWLING | {ONE_AT_A_TIME_TAG: "reprocess_distributions"},
    description="Makes records anew from stored extracts, after the rules of reading have changed. Asks no index.",
)
def reprocess_distributions() -> None:
    reprocess_extracts()


JOBS: list[dg.JobDefinition | UnresolvedAssetJobDefinition] = [
    full_crawl_job,
    full_dump_job,
    redump_job,
    compact_dumps_job,
    incremental_crawl_job,
    update_leveldbs_job,
    export_parquet_job,
    clean_up_job,
    health_job,
    verify_leveldbs,
    retry_failures,
    audit,
    reprocess_distributions,
]
