"""Jobs of one op each: verification, clean-up, retries, audits and reprocessing.

Other packages decide what each job does. Clean-up also deletes old partitions and runs from Dagster, whose database
grows with the events of each run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import dagster as dg
from pydantic import Field

from pypi_assets.catalog.reports.failures import VISIT
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.requested import run_requested
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.defs.checks import MATCHES_INPUT_LIST, verification_result
from pypi_assets.defs.confusion import confusion_job
from pypi_assets.defs.expected_errors import describe_error, expected_errors_as_failures
from pypi_assets.defs.factories import op_job
from pypi_assets.defs.health import (
    check_drift,
    check_exhausted,
    few_are_exhausted,
    nothing_drifted,
    record_check,
)
from pypi_assets.defs.jobs import MANY_RUNS
from pypi_assets.defs.naming import BARE, Naming
from pypi_assets.defs.policy import (
    BUILDING,
    CRAWLING,
    ENDS_IN_TIME,
    INDEX_POOL,
    ONE_AT_A_TIME_TAG,
    leveldb_versions,
    serial_ranges,
)
from pypi_assets.defs.reporting import count_log, markdown_table, progress_log
from pypi_assets.defs.resources import (
    CatalogResource,
    CrawlerResource,
    ReadersResource,
    SettingsResource,
    StorageResource,
)
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.extracts.reprocess import PROCESSES, reprocess
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.sanitize import inert_lines
from pypi_assets.upkeep.deletion import DeletionChain, Pruning, kept_from
from pypi_assets.upkeep.live_totals import recount
from pypi_assets.upkeep.old_partitions import OldPartitions
from pypi_assets.upkeep.transient import is_transient


def pruning_of(instance: dg.DagsterInstance, jobs: Iterable[str], naming: Naming = BARE) -> Pruning:
    """Return the functions that delete old partitions, and old runs of `jobs` (bare names), from the instance."""
    return Pruning(
        partitions=partial(prune_partitions, instance, naming),
        runs=partial(prune_runs, instance, [naming.name(job) for job in jobs]),
    )


def prune_partitions(instance: dg.DagsterInstance, naming: Naming, old: OldPartitions) -> int:
    """Delete these partitions, and return their count. Other partitions are kept, also if they were added by hand."""
    ranges, versions = naming.partitions(serial_ranges), naming.partitions(leveldb_versions)
    starts, ends = ({key.split("-")[place] for key in old.ranges} for place in (0, -1))

    def is_old(key: str) -> bool:
        """Check whether a partition is old. A partition of joined ranges is old once all of its ranges are."""
        start, _, end = key.partition("-")
        return start in starts and end in ends

    return _prune(instance, ranges, is_old) + _prune(instance, versions, old.versions.__contains__)


def prune_runs(instance: dg.DagsterInstance, jobs: Iterable[str], before: float) -> int:
    """Delete the runs of `jobs` that succeeded before a time (unix seconds), with events and logs. Return their count.

    The newest run of each job is kept, so that its results are not shown as missing. Failed runs are kept, since
    sensors count attempts by them.
    """
    pruned, until = 0, datetime.fromtimestamp(before, UTC)
    for job in jobs:
        succeeded = [dg.DagsterRunStatus.SUCCESS]
        newest = instance.get_run_ids(dg.RunsFilter(job_name=job, statuses=succeeded), limit=1)
        old = instance.get_run_ids(dg.RunsFilter(job_name=job, statuses=succeeded, updated_before=until))
        for run in {*old} - {*newest}:
            instance.compute_log_manager.delete_logs(prefix=[run])
            instance.delete_run(run)
            pruned += 1
    return pruned


def _prune(
    instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition, is_old: Callable[[str], bool]
) -> int:
    name = str(partitions.name)
    pruned = [key for key in instance.get_dynamic_partitions(name) if is_old(key)]
    for key in pruned:
        instance.delete_dynamic_partition(name, key)
    return len(pruned)


@op_job(
    "verify_leveldbs",
    "Rebuilds the newest database (LevelDB) of each dataset, and compares every record. Fails if a record differs."
    " Publishes nothing.",
    on_failure="build the version from scratch: `pypi-assets leveldb update --from-scratch`",
    tags=ENDS_IN_TIME | BUILDING | {ONE_AT_A_TIME_TAG: "verify_leveldbs"},
)
def verify_newest_versions(
    context: dg.OpExecutionContext, settings: SettingsResource, storage: StorageResource
) -> None:
    """Rebuild the newest version of each dataset from its dumps, and compare both versions record by record.

    The result is recorded as a result of the dataset's check `..._matches_input_list`.
    """
    problems: list[str] = []
    with expected_errors_as_failures():
        for dataset in DATASETS:
            for version in published_versions(storage.get(), dataset)[-1:]:
                verified = verify(
                    dataset,
                    version,
                    storage=storage.get(),
                    deep=True,
                    work_dir=settings.get().leveldbs_dir,
                    progress=partial(count_log, context),
                )
                problems += verified.problems
                result = verification_result(verified, f"version {version} equals a rebuild from its dumps")
                record_check(context, settings.naming, MATCHES_INPUT_LIST[dataset], result)
                context.log.info(f"version {version} of {dataset}: {verified.records} records were compared")
    if problems:
        raise dg.Failure("; ".join(problems[:10]), allow_retries=False)


@op_job(
    "clean_up",
    "Deletes superseded files, and Dagster's old partitions and runs. Settings decide how long they are kept. The"
    " files are LevelDB versions, dumps, Parquet exports, packs, and incomplete files of stopped runs.",
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "clean_up"},
)
def clean_up_storage(
    context: dg.OpExecutionContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> None:
    """Delete superseded files that no reader can have open any more, incomplete files of stopped runs, and Dagster's
    old partitions and runs.

    A failing part does not stop the others. The run fails once all are done, names the failed parts, and shows the
    numbers of the others.
    """
    jobs = [*(job.name for job in MANY_RUNS), *(job.name for job in MAINTENANCE_JOBS), confusion_job.name]
    with expected_errors_as_failures():
        chain = DeletionChain(catalog.get(), storage.get(), kept_from(settings.get()))
        cleaned = chain.clean_all(pruning_of(context.instance, jobs, settings.naming), count_log(context, "deletions"))
    if cleaned.failures:
        reasons = "; ".join(f"{name}: {describe_error(error)}" for name, error in cleaned.failures.items())
        errors = list(cleaned.failures.values())
        text = f"the clean-up failed in part: {reasons}"
        raise dg.Failure(text, cleaned.counts, allow_retries=all(map(is_transient, errors))) from errors[0]
    context.add_output_metadata(cleaned.counts)


class RetryConfig(dg.Config):
    """The failures to retry."""

    kinds: list[str] = Field(
        default=[VISIT, "transient", "gone"],
        description="error kinds; by default the kinds of abandoned visits and reads; an empty list means all failures",
    )


@op_job(
    "retry_failures",
    "Retries abandoned work: pages that could not be visited, and files that could not be downloaded. With `kinds: []`"
    " in its config, also retries files that could not be read.",
    tags=CRAWLING,
    op="retry_given_up",
    pool=INDEX_POOL,
)
def retry_exhausted(
    context: dg.OpExecutionContext,
    config: RetryConfig,
    settings: SettingsResource,
    catalog: CatalogResource,
    crawler: CrawlerResource,
) -> None:
    """Retry failed visits and reads, and run pending ones."""
    with expected_errors_as_failures():
        opened = crawler.get(progress_log(context), context.log.warning)
        for kind in config.kinds or (None,):
            result = retry(opened, kind)
            reads = result.reads
            context.log.info(
                f"{kind or 'all kinds'}: {result.retried_visits} visits and {result.retried_reads} reads retried;"
                f" {result.exhausted_visits} visits and {reads.exhausted} reads were abandoned, {reads.errors} failed"
            )
    record_check(context, settings.naming, few_are_exhausted, check_exhausted(settings, catalog))


@op_job(
    "visit_requested",
    "Visits the pages of projects that people requested (`pypi-assets visit`, `POST /v1/visits`), and reads new files.",
    tags=CRAWLING | {ONE_AT_A_TIME_TAG: "visit_requested"},
    op="make_requested_visits",
    pool=INDEX_POOL,
)
def visit_requested(context: dg.OpExecutionContext, crawler: CrawlerResource) -> None:
    """Make the requested visits that are due, and log how many requests have ended."""
    with expected_errors_as_failures():
        ended = run_requested(crawler.get(progress_log(context), context.log.warning))
    context.add_output_metadata({"ended": ended})


class Auditing(dg.Config):
    """The share of the index to visit."""

    share_percent: float | None = Field(
        default=None,
        description="percentage of all projects to visit in any case; by default PYPI_ASSETS_AUDIT_SHARE_PERCENT",
    )


@op_job(
    "audit",
    "Compares the catalog with the package index, corrects differences, and reports their causes. It compares each"
    " project with the index's list, and visits the projects that differ and a share of the others.",
    tags=CRAWLING | {ONE_AT_A_TIME_TAG: "audit"},
    pool=INDEX_POOL,
)
def audit_catalog(
    context: dg.OpExecutionContext,
    config: Auditing,
    settings: SettingsResource,
    catalog: CatalogResource,
    crawler: CrawlerResource,
) -> None:
    """Compare every project with the index's list, and visit the projects that differ and a share of the others."""
    with expected_errors_as_failures():
        share = settings.get().audit_share_percent if config.share_percent is None else config.share_percent
        result = audit_index(crawler.get(progress_log(context), context.log.warning), share)
        recounted = recount(catalog.get())
    findings = result.audit.findings
    context.add_output_metadata(
        {
            "serial": result.audit.serial,
            "visited": result.visits.done,
            "gave_up": result.visits.exhausted,
            "drift": sum(findings.counts.values()),
            **findings.counts,
            "corrected_counts": len(recounted),
            "examples": dg.MetadataValue.md(_example_table(findings.examples)),
        }
    )
    record_check(context, settings.naming, nothing_drifted, check_drift(catalog))


class Reprocessing(dg.Config):
    """The records to make again."""

    older_than_version: int = Field(
        default=EXTRACTOR_VERSION,
        ge=1,
        description="reprocess records of extractors older than this version; by default, older than the current one",
    )
    project: str = Field(default="", description="reprocess only records of this project")
    processes: int = Field(default=PROCESSES, ge=1, description="number of reader processes, of about 100 MB each")


@op_job(
    "reprocess_distributions",
    "Makes the records of files again by the newest rules, from stored extracts, without the package index. By default,"
    " it remakes only records that older rules made, and does nothing if there are none.",
    tags=ENDS_IN_TIME | CRAWLING | {ONE_AT_A_TIME_TAG: "reprocess_distributions"},
)
def reprocess_extracts(
    context: dg.OpExecutionContext,
    config: Reprocessing,
    catalog: CatalogResource,
    storage: StorageResource,
    readers: ReadersResource,
) -> None:
    """Make records again from stored extracts, without a request to the package index."""
    with expected_errors_as_failures():
        result = reprocess(
            catalog.get(),
            storage.get(),
            readers.get(),
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
            "examples": dg.MetadataValue.md(_example_table(result.examples)),
        }
    )
    for problem in result.problems:
        context.log.warning(inert_lines(problem))


def _example_table(found: Mapping[str, Sequence[str]]) -> str:
    rows = [(sort, example) for sort, examples in found.items() for example in examples]
    return markdown_table(("what", "example"), rows)


MAINTENANCE_JOBS = [
    clean_up_storage,
    verify_newest_versions,
    retry_exhausted,
    audit_catalog,
    visit_requested,
    reprocess_extracts,
]
