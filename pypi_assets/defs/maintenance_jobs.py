"""Jobs made of ops: verification, clean-up, retries, audits and reprocessing. What each does is decided elsewhere.

Clean-up also removes old partitions and runs from Dagster, whose database grows with the events of each run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import dagster as dg
from pydantic import Field

from pypi_assets.catalog.reports.failures import VISIT
from pypi_assets.crawl.index_audit import audit_index
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
    """How old partitions, and old runs of `jobs`, are removed from the instance. `jobs` are bare names."""
    return Pruning(
        partitions=partial(prune_partitions, instance, naming),
        runs=partial(prune_runs, instance, [naming.name(job) for job in jobs]),
    )


def prune_partitions(instance: dg.DagsterInstance, naming: Naming, old: OldPartitions) -> int:
    """Removes the partitions that are named, and returns their count. Others stay, whoever added them."""
    ranges, versions = naming.partitions(serial_ranges), naming.partitions(leveldb_versions)
    starts, ends = ({key.split("-")[place] for key in old.ranges} for place in (0, -1))

    def is_old(key: str) -> bool:
        """Also of ranges that were joined, once all of them are old."""
        start, _, end = key.partition("-")
        return start in starts and end in ends

    return _prune(instance, ranges, is_old) + _prune(instance, versions, old.versions.__contains__)


def prune_runs(instance: dg.DagsterInstance, jobs: Iterable[str], before: float) -> int:
    """Deletes the runs of `jobs` that succeeded before then (unix seconds), with events and logs; returns their count.

    The newest run of each job stays, so that what it made is not shown as missing. Runs that failed stay too: sensors
    count the attempts by them.
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
    "Builds the newest database (LevelDB) of each dataset again, and compares every record. Fails where"
    " they differ. Publishes nothing.",
    on_failure="build the version from scratch: `pypi-assets leveldb update --from-scratch`",
    tags=ENDS_IN_TIME | BUILDING | {ONE_AT_A_TIME_TAG: "verify_leveldbs"},
)
def verify_newest_versions(
    context: dg.OpExecutionContext, settings: SettingsResource, storage: StorageResource
) -> None:
    """Rebuild the newest version of each dataset from its dumps, and compare the two record by record.

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
    "Deletes files that newer ones have replaced, and Dagster's old partitions and runs. What stays, and"
    " for how long, is in the settings. Files are LevelDB versions, dumps, Parquet exports, packs, and what stopped"
    " runs left.",
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "clean_up"},
)
def clean_up_storage(
    context: dg.OpExecutionContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> None:
    """Deletes files that newer ones have replaced, once no reader can have them open, and what stopped attempts have
    left; removes old partitions and runs from Dagster.

    A part that fails stops no other one: the run fails once they are done, names it, and shows the numbers of the rest.
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
    """What to try again."""

    kinds: list[str] = Field(
        default=[VISIT, "transient", "gone"],
        description="error kinds; by default those of what was abandoned; an empty list means every failure",
    )


@op_job(
    "retry_failures",
    "Tries again what was abandoned: pages that could not be visited, files that could not be fetched. With"
    " `kinds: []` in its config, also files that could not be read.",
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
    """Visits pages and reads files again that failed, and those that nothing has tried yet."""
    with expected_errors_as_failures():
        opened = crawler.get(progress_log(context), context.log.warning)
        for kind in config.kinds or (None,):
            result = retry(opened, kind)
            reads = result.reads
            context.log.info(
                f"{kind or 'all kinds'}: {result.retried_visits} visits and {result.retried_reads} reads tried again;"
                f" {result.exhausted_visits} visits and {reads.exhausted} reads were abandoned, {reads.errors} failed"
            )
    record_check(context, settings.naming, few_are_exhausted, check_exhausted(settings, catalog))


class Auditing(dg.Config):
    """The share of the index to visit."""

    share_percent: float | None = Field(
        default=None,
        description="percent of all projects that are visited in any case; by default PYPI_ASSETS_AUDIT_SHARE_PERCENT",
    )


@op_job(
    "audit",
    "Compares what is stored with the package index, corrects what differs, and reports why. It compares"
    " each project with the index's list, and visits those that differ and a share of the others.",
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
    """Compares every project with the package index's list, and visits those that differ and some others."""
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
    """Which records to make again."""

    older_than_version: int = Field(
        default=EXTRACTOR_VERSION,
        ge=1,
        description="those that an extractor older than this version made; by default, older than the current one",
    )
    project: str = Field(default="", description="only those of this project")
    processes: int = Field(default=PROCESSES, ge=1, description="the count of reader processes, of some 100 MB each")


@op_job(
    "reprocess_distributions",
    "Reads all files again by the newest rules, from what was stored of them, without the package index. By"
    " default only those that older rules have read, so it does nothing where none were.",
    tags=ENDS_IN_TIME | CRAWLING | {ONE_AT_A_TIME_TAG: "reprocess_distributions"},
)
def reprocess_extracts(
    context: dg.OpExecutionContext,
    config: Reprocessing,
    catalog: CatalogResource,
    storage: StorageResource,
    readers: ReadersResource,
) -> None:
    """Makes what is known of files again, from what was stored of them, without a request to the package index."""
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


MAINTENANCE_JOBS = [clean_up_storage, verify_newest_versions, retry_exhausted, audit_catalog, reprocess_extracts]
