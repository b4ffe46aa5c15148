"""Tells of runs and checks that failed, in words: which, and why. In the log, and to whom the settings name."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import dropwhile

import dagster as dg
from dagster import ResourceParam
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord
from dagster._core.storage.tags import WILL_RETRY_TAG

from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.partitions import PARTITION_TAG, RANGE_START_TAG
from pypi_assets.defs.parts import Parts
from pypi_assets.notices import send_notice

REPORTED_TAG = "pypi-assets/told"
"""Of a failed run of which a notice was sent."""
ONE_NOTICE_IN = timedelta(hours=1)
_GOES_ON = "launch it again: it goes on where it stopped"
_RUN_AGAIN = "its process was lost: it is run again by itself, and goes on where it stopped"
_ASKED_AGAIN = "it is asked for again by the sensor {}, after a minute first, and after an hour at last"
_OF_NONE = "it needs a partition: the sensor asks for each that is due, and the UI for any other"
_NEED_PARTITIONS = {"incremental_crawl", "update_leveldbs"}
_NEXT = {
    "full_crawl": _ASKED_AGAIN.format("failed_full_crawl"),
    "full_dump": f"the schedule weekly_full_dump runs it again; or {_GOES_ON}",
    "redump": _GOES_ON,
    "reprocess_distributions": _GOES_ON,
    "incremental_crawl": _ASKED_AGAIN.format("new_serial_range"),
    "update_leveldbs": _ASKED_AGAIN.format("new_leveldb_version"),
    "compact_dumps": "the schedule hourly_compaction runs it again",
    "clean_up": "the schedule daily_clean_up runs it again",
    "export_parquet": "the schedule daily_parquet runs it again, where it is on",
    "retry_failures": "the schedule daily_retry runs it again",
    "audit": "the schedule weekly_audit goes on with it",
    "health": "the schedule quarter_hourly_health runs it again",
    "verify_leveldbs": "build the version anew: `pypi-assets leveldb update --from-scratch`",
}
_REASON_CHARACTERS = 1_000
_TELLS_NOTHING = "marked as failed from outside"
"""What Dagster says of a run that it was told has failed, without a reason."""


def build_failed_run_sensor(*, on: bool) -> dg.SensorDefinition:
    """The sensor that tells of failed runs; where nobody is named, in its log alone."""

    @dg.run_failure_sensor(
        name="failed_run",
        default_status=dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED,
        minimum_interval_seconds=30,
        description="Tells in its log, and to PYPI_ASSETS_NOTIFY_URLS, which run failed, why, and what comes next.",
    )
    def failed_run(context: dg.RunFailureSensorContext, parts: ResourceParam[Parts]) -> None:
        run = context.dagster_run
        what = describe_run(run)
        text = f"{reason_of(context)}\n\nWhat comes next: {what_comes_next(run)}."
        context.log.error(f"{what} failed: {text}")
        with expected_errors_as_failures():
            urls = parts.settings.notify_urls
        if not urls:
            return
        if told_lately(context.instance, run.job_name):
            context.log.info(f"a notice of {run.job_name} was sent within the last hour, so none is sent of this run")
            return
        problems = send_notice(urls, f"pypi-assets: {what} failed", f"{text}\n\nRun {run.run_id} in Dagster.")
        for problem in problems:
            context.log.error(problem)
        if len(problems) < len(urls):
            context.instance.add_run_tags(run.run_id, {REPORTED_TAG: "true"})

    return failed_run


def build_failed_check_sensor(checks: Sequence[dg.AssetChecksDefinition], *, on: bool) -> dg.SensorDefinition:
    """The sensor that tells of checks that fail, each once until it does not any more. Its cursor names those."""
    keys = [key for check in checks for key in check.check_keys]

    @dg.sensor(
        name="failed_check",
        default_status=dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED,
        minimum_interval_seconds=60,
        description="Tells in its log, and to PYPI_ASSETS_NOTIFY_URLS, which check fails, and why; not of warnings.",
    )
    def failed_check(context: dg.SensorEvaluationContext, parts: ResourceParam[Parts]) -> dg.SensorResult:
        with expected_errors_as_failures():
            urls = parts.settings.notify_urls
        records = context.instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
        found = {key.name: evaluation for key, record in records.items() if (evaluation := _evaluated(record))}
        told = set(json.loads(context.cursor or "[]"))
        failing = {
            name for name, one in found.items() if not one.passed and one.severity == dg.AssetCheckSeverity.ERROR
        }
        still = {name for name in told if name in failing or name not in found}  # one that is being made may fail again
        for name in sorted(failing - told):
            text = f"{found[name].asset_key.to_user_string()}: {found[name].description or 'no reason given'}"
            context.log.error(f"the check {name} fails: {text}")
            problems = send_notice(urls, f"pypi-assets: the check {name} fails", text)
            for problem in problems:
                context.log.error(problem)
            if not urls or len(problems) < len(urls):
                still.add(name)
        return dg.SensorResult(
            cursor=json.dumps(sorted(still)), skip_reason=f"checks that fail: {', '.join(sorted(failing)) or 'none'}"
        )

    return failed_check


def _evaluated(record: AssetCheckExecutionRecord) -> dg.AssetCheckEvaluation | None:
    """What came of a check; None while it is being made."""
    event = record.event.dagster_event if record.event else None
    is_made = event is not None and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION
    return event.asset_check_evaluation_data if event and is_made else None


def describe_run(run: dg.DagsterRun) -> str:
    """The job, and the partition if it has one."""
    key = run.tags.get(PARTITION_TAG)
    return f"{run.job_name} of {key}" if key else run.job_name


def what_comes_next(run: dg.DagsterRun) -> str:
    """Who runs it again, or what a person is to do."""
    if run.tags.get(WILL_RETRY_TAG) == "true":
        return _RUN_AGAIN
    if run.job_name in _NEED_PARTITIONS and not {PARTITION_TAG, RANGE_START_TAG} & run.tags.keys():
        return _OF_NONE
    return _NEXT.get(run.job_name, "nothing by itself")


def reason_of(context: dg.RunFailureSensorContext) -> str:
    """What the steps that failed say, without a traceback; where none has, what Dagster says of the run itself."""
    reasons = []
    for event in context.get_step_failure_events():
        data = event.step_failure_data
        if data.user_failure_data is not None:
            text = data.user_failure_data.description
        else:
            error = data.error and (data.error.cause or data.error)
            text = error.message if error else data.error_display_string
        reasons.append(f"{event.step_key}: {(text or 'no reason given').strip()}"[:_REASON_CHARACTERS])
    message = str(context.failure_event.message)
    return "\n".join(reasons or [*(_last_told(context) if _TELLS_NOTHING in message else ()), message])


def _last_told(context: dg.RunFailureSensorContext) -> list[str]:
    """What Dagster itself has told last before the run failed: of a process that was killed, by which signal."""
    told, failed = dg.DagsterEventType.ENGINE_EVENT, dg.DagsterEventType.RUN_FAILURE
    records = context.instance.get_records_for_run(context.dagster_run.run_id, of_type={told, failed}, ascending=False)
    events = [record.event_log_entry.get_dagster_event() for record in records.records]
    before = dropwhile(lambda event: event.event_type != failed, events)
    return [event.message or "" for event in before if event.event_type == told][:1]


def told_lately(instance: dg.DagsterInstance, job: str) -> bool:
    """Whether a notice of a run of `job` that ended within the last hour was sent."""
    since = datetime.now(UTC) - ONE_NOTICE_IN
    told = dg.RunsFilter(job_name=job, tags={REPORTED_TAG: "true"}, updated_after=since)
    return bool(instance.get_runs(told, limit=1))
