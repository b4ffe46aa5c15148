"""Periodic work. Nothing asks an index by itself until a person turns it on, or the settings do."""

import dagster as dg

from pypi_assets.defs.jobs import (
    audit,
    clean_up_job,
    compact_dumps_job,
    export_parquet_job,
    full_dump_job,
    health_job,
    retry_failures,
    verify_leveldbs,
)

_SCHEDULES = (
    ("quarter_hourly_health", health_job, "*/15 * * * *", "Checks four times an hour how things stand."),
    ("daily_retry", retry_failures, "17 4 * * *", "Tries again, once a day, what was given up."),
    ("weekly_full_dump", full_dump_job, "41 5 * * 0", "A new full dump a week, so that chains of ranges stay short."),
    ("hourly_compaction", compact_dumps_job, "47 * * * *", "Joins small dumps once an hour, where it pays."),
    ("daily_clean_up", clean_up_job, "11 9 * * *", "Deletes once a day what has been superseded for long enough."),
    ("weekly_audit", audit, "23 2 * * 6", "Compares the catalog with the index's list of projects once a week."),
    ("weekly_verification", verify_leveldbs, "31 10 * * 3", "Compares the newest versions with a rebuild once a week."),
)
"""Name, job, when (UTC), and what for."""


def build_schedules(*, on: bool) -> list[dg.ScheduleDefinition]:
    """All schedules, `on` from the start or once a person turns them on; Parquet, which needs an extra, only then."""
    schedules = [
        dg.ScheduleDefinition(
            name=name,
            job=job,
            cron_schedule=cron,
            execution_timezone="UTC",
            description=description,
            default_status=dg.DefaultScheduleStatus.RUNNING if on else dg.DefaultScheduleStatus.STOPPED,
        )
        for name, job, cron, description in _SCHEDULES
    ]
    daily_parquet = dg.ScheduleDefinition(
        name="daily_parquet",
        job=export_parquet_job,
        cron_schedule="53 7 * * *",
        execution_timezone="UTC",
        description="Exports Parquet once a day, where the dumps reach further than the day before.",
    )
    return [*schedules, daily_parquet]
