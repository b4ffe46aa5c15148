"""Periodic work. No schedule contacts an index until a person turns it on, or `PYPI_ASSETS_SENSORS_ON` does.

Schedules go by time alone; what is due at once is requested by sensors.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC

import dagster as dg

from pypi_assets.defs.attempts import unended_run
from pypi_assets.defs.jobs import (
    compact_dumps_job,
    export_parquet_job,
    full_dump_job,
    health_job,
    solve_days_job,
)
from pypi_assets.defs.maintenance_jobs import audit, clean_up_job, retry_failures, verify_leveldbs
from pypi_assets.defs.naming import Job, Naming
from pypi_assets.resolve.solvability import due_days
from pypi_assets.upkeep.due import audit_hindrance

_SCHEDULES = (
    (
        "quarter_hourly_health",
        health_job,
        "*/15 * * * *",
        "Checks four times an hour how fresh the data is, and how much of it could not be read.",
    ),
    (
        "daily_retry",
        retry_failures,
        "17 4 * * *",
        "Tries again, once a day, pages and files that could not be fetched.",
    ),
    (
        "weekly_full_dump",
        full_dump_job,
        "41 5 * * 0",
        "Writes a new full dump once a week, so that few small dumps of changes follow it.",
    ),
    ("hourly_compaction", compact_dumps_job, "47 * * * *", "Joins small dumps once an hour, where it pays."),
    (
        "daily_clean_up",
        clean_up_job,
        "11 9 * * *",
        "Deletes once a day files that newer ones have replaced for long enough.",
    ),
    (
        "daily_solvability",
        solve_days_job,
        "29 5 * * *",
        "Finds out once a day which of the most-required projects can no longer be installed.",
    ),
    ("weekly_audit", audit, "23 2 * * 6", "Compares what is stored with the package index once a week."),
    (
        "weekly_verification",
        verify_leveldbs,
        "31 10 * * 3",
        "Builds the newest databases again once a week, and compares them.",
    ),
)
_DAILY_PARQUET = (
    "daily_parquet",
    export_parquet_job,
    "53 7 * * *",
    "Exports Parquet once a day, where the dumps have anything new.",
)


Schedule = tuple[str, Job, str, str]
"""Name, job, when (UTC), and what for."""


def build_schedules(naming: Naming, more: Iterable[Schedule] = (), *, on: bool) -> list[dg.ScheduleDefinition]:
    """All schedules and `more`, `on` from the start or once a person turns them on; Parquet, which needs an extra, only
    then.
    """
    schedules: list[Schedule] = [*_SCHEDULES, *more]
    always = [_schedule(naming, *schedule, on=on) for schedule in schedules]
    return [*always, _schedule(naming, *_DAILY_PARQUET, on=False)]


def _schedule(
    naming: Naming, name: str, of_job: Job, cron: str, description: str, *, on: bool
) -> dg.ScheduleDefinition:
    job = naming.job(of_job)
    needs_list, is_of_days = of_job is audit, of_job is solve_days_job

    def runs_or_skip(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        # Runs of later ticks would queue after a run that is stuck.
        if run := unended_run(context.instance, job.name):
            yield dg.SkipReason(f"the run {run.run_id} of the job {job.name} has not ended: it is {run.status.value}")
        elif needs_list and (hindrance := audit_hindrance(context.resources.catalog.get())):
            yield dg.SkipReason(hindrance)
        elif is_of_days:
            yield from _runs_of_days(context)
        else:
            yield dg.RunRequest()

    return dg.ScheduleDefinition(
        name=naming.name(name),
        job=job,
        cron_schedule=cron,
        execution_timezone="UTC",
        execution_fn=runs_or_skip,
        description=description,
        default_status=dg.DefaultScheduleStatus.RUNNING if on else dg.DefaultScheduleStatus.STOPPED,
        required_resource_keys={"catalog"} if needs_list else _OF_DAYS if is_of_days else None,
    )


_OF_DAYS = {"settings", "catalog", "storage"}


def _runs_of_days(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """A run of each day that is due."""
    if not context.resources.settings.get().solvability_projects:
        yield dg.SkipReason("PYPI_ASSETS_SOLVABILITY_PROJECTS is 0")
        return
    today = context.scheduled_execution_time.astimezone(UTC).date()
    due = due_days(context.resources.catalog.get(), context.resources.storage.get(), today)
    if not due:
        yield dg.SkipReason("each of the last days was made, or the catalog has no exact answer about it")
    at = context.scheduled_execution_time.isoformat()  # or else a day that failed would never run again
    yield from (dg.RunRequest(run_key=f"{day} at {at}", partition_key=day.isoformat()) for day in due)
