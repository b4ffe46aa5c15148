"""Periodic work. Nothing asks an index by itself until a person turns it on."""

import dagster as dg

from pypi_assets.defs.jobs import (
    audit,
    clean_up_job,
    compact_dumps_job,
    export_parquet_job,
    full_dump_job,
    retry_failures,
)

daily_retry = dg.ScheduleDefinition(
    name="daily_retry",
    job=retry_failures,
    cron_schedule="17 4 * * *",
    execution_timezone="UTC",
    description="Tries again, once a day, what was given up.",
)
weekly_full_dump = dg.ScheduleDefinition(
    name="weekly_full_dump",
    job=full_dump_job,
    cron_schedule="41 5 * * 0",
    execution_timezone="UTC",
    description="A new full dump once a week, so that chains of ranges stay short.",
)
hourly_compaction = dg.ScheduleDefinition(
    name="hourly_compaction",
    job=compact_dumps_job,
    cron_schedule="47 * * * *",
    execution_timezone="UTC",
    description="Joins small dumps once an hour, where it pays.",
)
daily_parquet = dg.ScheduleDefinition(
    name="daily_parquet",
    job=export_parquet_job,
    cron_schedule="53 7 * * *",
    execution_timezone="UTC",
    description="Exports Parquet once a day, where the dumps reach further than the day before.",
)
daily_clean_up = dg.ScheduleDefinition(
    name="daily_clean_up",
    job=clean_up_job,
    cron_schedule="11 9 * * *",
    execution_timezone="UTC",
    description="Deletes once a day what has been superseded for long enough.",
)
weekly_audit = dg.ScheduleDefinition(
    name="weekly_audit",
    job=audit,
    cron_schedule="23 2 * * 6",
    execution_timezone="UTC",
    description="Compares the catalog with the index's list of projects once a week.",
)
SCHEDULES = [daily_retry, weekly_full_dump, hourly_compaction, daily_parquet, daily_clean_up, weekly_audit]
