"""Periodic work. No schedule sends requests to an index until a person or `PYPI_ASSETS_SENSORS_ON` turns it on.

Schedules depend only on time. Sensors request work that should be done at once.
"""

from collections.abc import Iterable, Iterator

import dagster as dg

from pypi_assets.defs.attempts import unended_run
from pypi_assets.defs.jobs import (
    Schedule,
    compact_dumps_job,
    export_parquet_job,
    full_dump_job,
    health_job,
    update_tables_job,
)
from pypi_assets.defs.maintenance_jobs import audit_catalog, clean_up_storage, retry_exhausted, verify_newest_versions
from pypi_assets.defs.naming import Naming
from pypi_assets.upkeep.due import audit_hindrance


def _one_run(_: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    yield dg.RunRequest()


def _audit_if_possible(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    if hindrance := audit_hindrance(context.resources.catalog.get()):
        yield dg.SkipReason(hindrance)
    else:
        yield dg.RunRequest()


_SCHEDULES = (
    Schedule(
        "quarter_hourly_health",
        health_job,
        "*/15 * * * *",
        "Checks four times an hour how fresh the data is, and how much of it could not be read.",
    ),
    Schedule(
        "daily_retry",
        retry_exhausted,
        "17 4 * * *",
        "Retries, once a day, pages and files that could not be fetched.",
    ),
    Schedule(
        "weekly_full_dump",
        full_dump_job,
        "41 5 * * 0",
        "Writes a new full dump once a week, so that few small dumps of changes follow it.",
    ),
    Schedule("hourly_compaction", compact_dumps_job, "47 * * * *", "Joins small dumps once an hour, if worthwhile."),
    Schedule(
        "daily_clean_up",
        clean_up_storage,
        "11 9 * * *",
        "Deletes, once a day, files that were superseded long enough ago.",
    ),
    Schedule(
        "weekly_audit",
        audit_catalog,
        "23 2 * * 6",
        "Compares the catalog with the package index once a week.",
        _audit_if_possible,
        needs=frozenset({"catalog"}),
    ),
    Schedule(
        "weekly_verification",
        verify_newest_versions,
        "31 10 * * 3",
        "Rebuilds the newest databases once a week, and compares them.",
    ),
)
_DAILY_PARQUET = Schedule(
    "daily_parquet",
    export_parquet_job,
    "53 7 * * *",
    "Exports Parquet once a day, if the dumps have changes.",
)
_HOURLY_TABLES = Schedule(
    "hourly_tables",
    update_tables_job,
    "29 * * * *",
    "Brings the Apache Iceberg tables up to date once an hour.",
)


def build_schedules(naming: Naming, more: Iterable[Schedule] = (), *, on: bool) -> list[dg.ScheduleDefinition]:
    """Return all schedules and `more`.

    `on` says whether they are on from the start, or only once a person turns them on. The schedules of Parquet and of
    tables, which need an extra, are never on from the start.
    """
    always = [_definition(naming, schedule, on=on) for schedule in (*_SCHEDULES, *more)]
    return [*always, *(_definition(naming, schedule, on=False) for schedule in (_DAILY_PARQUET, _HOURLY_TABLES))]


def _definition(naming: Naming, schedule: Schedule, *, on: bool) -> dg.ScheduleDefinition:
    job = naming.job(schedule.job)
    requests = schedule.requests or _one_run

    def runs_or_skip(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        # While a run is stuck, runs of later ticks would only queue up.
        if run := unended_run(context.instance, job.name):
            yield dg.SkipReason(f"the run {run.run_id} of the job {job.name} has not ended: it is {run.status.value}")
        else:
            yield from requests(context)

    return dg.ScheduleDefinition(
        name=naming.name(schedule.name),
        job=job,
        cron_schedule=schedule.cron,
        execution_timezone="UTC",
        execution_fn=runs_or_skip,
        description=schedule.description,
        default_status=dg.DefaultScheduleStatus.RUNNING if on else dg.DefaultScheduleStatus.STOPPED,
        required_resource_keys=set(schedule.needs) or None,
    )
