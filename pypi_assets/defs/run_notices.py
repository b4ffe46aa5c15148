"""Reports failed runs and checks as sentences, in the log and to the services that the settings name.

The jobs, sensors and schedules determine the next step after a failure. `notices.py` sends the notices.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import dropwhile

import dagster as dg

from pypi_assets.dagster_instance.activity import IS_RETRIED
from pypi_assets.defs.expected_errors import expected_errors_of_ticks
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.policy import NOTICE_OF, ON_FAILURE, PARTITION_TAG, RANGE_START_TAG, REPORTED_TAG
from pypi_assets.defs.resources import SettingsResource
from pypi_assets.notices import send_notice

_FAILED_RUN_EVERY_S, _FAILED_CHECK_EVERY_S = 30, 60
ONE_NOTICE_IN = timedelta(hours=1)
_RUN_AGAIN = "its process was lost: Dagster runs it again, and the new run continues where it stopped"
_LAUNCH_AGAIN = "launch it again: it continues where it stopped"
_BY_SENSOR = "the sensor {} requests it again, after pauses that grow from a minute to an hour"
_BY_SCHEDULE = "the schedule {} runs it again"
_NEEDS_PARTITION = "it needs a partition: the sensor requests all partitions that are due, and the UI can run others"
_REASON_CHARACTERS = 1_000
_OF = ": "
_NO_REASON = "marked as failed from outside"
"""Dagster's text for a run that was reported as failed without a reason."""


def next_steps(
    jobs: Iterable[dg.JobDefinition], sensors: Iterable[dg.SensorDefinition], schedules: Iterable[dg.ScheduleDefinition]
) -> dict[str, str]:
    """Return the next step after a failed run of each job, by job name.

    That is the advice of the job for a person if it has one, or else the sensor or schedule that runs it again, or else
    that it can be launched again.
    """
    steps = {job.name: _LAUNCH_AGAIN for job in jobs}
    for schedule in schedules:
        is_on = schedule.default_status == dg.DefaultScheduleStatus.RUNNING
        steps[schedule.job_name] = _BY_SCHEDULE.format(schedule.name) + ("" if is_on else ", if it is on")
    for sensor in sensors:
        names = [job.name for job in sensor.jobs] if sensor.has_jobs else [sensor.job_name]
        steps |= {name: _BY_SENSOR.format(sensor.name) for name in names if name is not None}
    return steps | {job.name: step for job in jobs if (step := _step_of(job))}


def _step_of(job: dg.JobDefinition) -> str | None:
    step = (job.metadata or {}).get(ON_FAILURE)
    return str(step.value if isinstance(step, dg.MetadataValue) else step) if step else None


def build_failed_run_sensor(
    naming: Naming, steps: Mapping[str, str], of_one_partition: Iterable[dg.JobDefinition], *, on: bool
) -> dg.SensorDefinition:
    """Return the sensor that reports failed runs, in its log and to the services that the settings name.

    `steps` has the next step after a failure, by job. Runs of the jobs `of_one_partition` need a partition.
    """
    partitioned_jobs = {job.name for job in of_one_partition}

    @dg.run_failure_sensor(
        name=naming.name("failed_run"),
        default_status=dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED,
        minimum_interval_seconds=_FAILED_RUN_EVERY_S,
        description="Reports failed runs in its log and to PYPI_ASSETS_NOTIFY_URLS, with the reason and the next step.",
    )
    def failed_run(context: dg.RunFailureSensorContext, settings: SettingsResource) -> None:
        run = context.dagster_run
        what = describe_run(run)
        lacks_partition = run.job_name in partitioned_jobs and not {PARTITION_TAG, RANGE_START_TAG} & run.tags.keys()
        step = _NEEDS_PARTITION if lacks_partition else steps.get(run.job_name, "nothing happens by itself")
        if run.tags.items() >= IS_RETRIED.items():
            step = _RUN_AGAIN
        text = f"{reason_of(context)}\n\nWhat comes next: {step}."
        context.log.error(f"{what} failed: {text}")
        with expected_errors_of_ticks(_FAILED_RUN_EVERY_S):
            urls = settings.get().notify_urls
        if not urls:
            return
        if reported_recently(context.instance, run.job_name):
            context.log.info(f"no notice is sent: a notice about {run.job_name} was sent within the last hour")
            return
        problems = send_notice(urls, f"pypi-assets: {what} failed", f"{text}\n\nRun {run.run_id} in Dagster.")
        for problem in problems:
            context.log.error(problem)
        if len(problems) < len(urls):
            context.instance.add_run_tags(run.run_id, {REPORTED_TAG: "true"})

    return failed_run


def build_failed_check_sensor(
    naming: Naming, checks: Sequence[dg.AssetChecksDefinition], *, on: bool
) -> dg.SensorDefinition:
    """Return the sensor that reports each failing check once until it passes again.

    Its cursor has the reported checks.
    """
    keys = [key for check in checks for key in check.check_keys]

    @dg.sensor(
        name=naming.name("failed_check"),
        default_status=dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED,
        minimum_interval_seconds=_FAILED_CHECK_EVERY_S,
        description="Reports failing checks, with the reason, in its log and to PYPI_ASSETS_NOTIFY_URLS; not warnings.",
    )
    def failed_check(context: dg.SensorEvaluationContext, settings: SettingsResource) -> dg.SensorResult:
        with expected_errors_of_ticks(_FAILED_CHECK_EVERY_S):
            urls = settings.get().notify_urls
        records = context.instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
        evaluations = {
            key.name: evaluation for key, record in records.items() if (evaluation := _evaluated(record.event))
        }
        found = {_identity(name, one): one for name, one in evaluations.items()}
        reported = set(json.loads(context.cursor or "[]"))
        failing = {
            name for name, one in found.items() if not one.passed and one.severity == dg.AssetCheckSeverity.ERROR
        }
        running = {name for name in reported if _bare(name) not in evaluations}  # their result is not known yet
        still = (reported & failing) | running
        for name in sorted(failing - reported):
            text = f"{found[name].asset_key.to_user_string()}: {found[name].description or 'no reason given'}"
            check = naming.name(_bare(name))
            context.log.error(f"the check {check} fails: {text}")
            problems = send_notice(urls, f"pypi-assets: the check {check} fails", text)
            for problem in problems:
                context.log.error(problem)
            if not urls or len(problems) < len(urls):
                still.add(name)
        names = ", ".join(sorted({_bare(name) for name in failing}))
        return dg.SensorResult(cursor=json.dumps(sorted(still)), skip_reason=f"checks that fail: {names or 'none'}")

    return failed_check


def _identity(name: str, evaluation: dg.AssetCheckEvaluation) -> str:
    """Return the name of a check, with the subject of its failure if it may fail for several things."""
    of = evaluation.metadata.get(NOTICE_OF)
    return name if of is None or not of.value else f"{name}{_OF}{of.value}"


def _bare(identity: str) -> str:
    """Return the name of the check in an identity."""
    return identity.partition(_OF)[0]


def _evaluated(entry: dg.EventLogEntry | None) -> dg.AssetCheckEvaluation | None:
    """Return the result of a check from its last event; None while it is running."""
    event = entry.dagster_event if entry else None
    is_made = event is not None and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION
    return event.asset_check_evaluation_data if event and is_made else None


def describe_run(run: dg.DagsterRun) -> str:
    """Return the job of a run, with its partition if it has one."""
    key = run.tags.get(PARTITION_TAG)
    return f"{run.job_name} of {key}" if key else run.job_name


def reason_of(context: dg.RunFailureSensorContext) -> str:
    """Return the messages of failed steps, without tracebacks.

    If no step failed, return Dagster's message of the run.
    """
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
    return "\n".join(reasons or [*(_last_message(context) if _NO_REASON in message else ()), message])


def _last_message(context: dg.RunFailureSensorContext) -> list[str]:
    """Return Dagster's own last message before the run failed. For a killed process, it names the signal."""
    engine, failed = dg.DagsterEventType.ENGINE_EVENT, dg.DagsterEventType.RUN_FAILURE
    records = context.instance.get_records_for_run(
        context.dagster_run.run_id, of_type={engine, failed}, ascending=False
    )
    events = [record.event_log_entry.get_dagster_event() for record in records.records]
    before = dropwhile(lambda event: event.event_type != failed, events)
    return [event.message or "" for event in before if event.event_type == engine][:1]


def reported_recently(instance: dg.DagsterInstance, job: str) -> bool:
    """Return whether a notice was sent about a run of `job` that ended within the last hour."""
    since = datetime.now(UTC) - ONE_NOTICE_IN
    reported = dg.RunsFilter(job_name=job, tags={REPORTED_TAG: "true"}, updated_after=since)
    return bool(instance.get_runs(reported, limit=1))
