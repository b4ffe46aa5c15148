"""Reports to Dagster how a run goes: which of its partitions are done, with their numbers, and its progress.

Dagster shows a partition as failed where a run was to materialize it, did not, and failed. After a step that fails it
starts no later step. So a step in which some ranges fail marks the others and ends well, if a later step of the run
processes the same ranges: that step goes on with the others, and the last one fails the run.

The work itself does not belong here.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs.expected_errors import (
    EXPECTED,
    ExpectedError,
    describe_error,
    expected_errors_as_failures,
)
from pypi_assets.progress import Progress
from pypi_assets.upkeep.transient import is_transient

PROGRESS_EVERY_S = 30.0
_SHOWN_FAILURES = 10
_FAILURE = "failure"
"""The metadata of an observation: why a partition was left out."""

_DATA_VERSION = "dagster/data_version"
"""The tag of a materialization that Dagster compares to find out whether what follows is out of date."""


class Marks:
    """Collects the partitions that a step has finished.

    `data_version` names the state of the data in them, such as the serial of the full crawl. Partitions that follow are
    shown as out of date once it changes. None leaves it to Dagster, which derives it from code and inputs.
    """

    def __init__(self) -> None:
        self.done: dict[str, Mapping[str, Any]] = {}
        self.data_version: str | None = None

    def __call__(self, key: str, metadata: Mapping[str, Any]) -> None:
        """Mark a partition as done, with the metadata that its page shows."""
        self.done[key] = metadata

    def result(self, metadata: Mapping[str, Any] | None = None) -> dg.MaterializeResult[None]:
        """Return the result of a step whose partitions are all done; `metadata` is shown on each of them."""
        version = None if self.data_version is None else dg.DataVersion(self.data_version)
        return dg.MaterializeResult(metadata=metadata, data_version=version)


@contextmanager
def marking(context: dg.AssetExecutionContext) -> Iterator[Marks]:
    """Yield marks, to be called as `mark(key, metadata)` for each partition that is done.

    Dagster itself materializes all partitions of a run that succeeds, each with its metadata. If the run fails or is
    cancelled, the partitions that are done are materialized here, so that only the rest is missing.
    """
    marks = Marks()
    try:
        with expected_errors_as_failures():
            yield marks
    except BaseException:
        tags = {} if marks.data_version is None else {_DATA_VERSION: marks.data_version}
        for key, metadata in marks.done.items():
            context.log_event(dg.AssetMaterialization(context.asset_key, partition=key, metadata=metadata, tags=tags))
        raise
    for key, metadata in marks.done.items():
        context.add_asset_metadata(metadata, partition_key=key)


def mark_each_range(
    context: dg.AssetExecutionContext,
    work: Callable[[SerialRange], Mapping[str, Any]],
    totals: Callable[[], Mapping[str, Any]] = dict,
) -> dg.MaterializeResult[None]:
    """Does `work` for each serial range of the run, and marks it with the numbers that it returns and its seconds.

    `totals` returns metadata that all of them have in common, once they are done.

    A range that fails stops no other one, here or in the assets that follow: the last step of the run fails and names
    it. A transient error concerns all ranges, and one that all ranges have is no odd key: both end the run at once.
    """
    keys, failed = list(context.partition_keys), dict[str, Exception]()
    done: dict[str, Mapping[str, Any]] = {}
    with marking(context) as mark:
        for key in keys:
            try:
                started = time.monotonic()
                numbers = work(SerialRange.parse(key))
                done[key] = {**numbers, "seconds": round(time.monotonic() - started, 3)}
                mark(key, done[key])
            except Exception as error:
                if is_transient(error) or len(keys) == 1:
                    raise
                failed[key] = error
        texts = {key: describe_error(error) for key, error in failed.items()}
        is_last = not done or not _is_followed(context)
        before = _left_out(context) if is_last and len(keys) > 1 else {}
        if is_last and (texts or before):
            unexpected = next((error for error in failed.values() if not isinstance(error, EXPECTED)), None)
            raise _failure(texts | before, len(keys), unexpected) from unexpected
        if not texts:
            return dg.MaterializeResult(metadata=totals())
        _leave_out(context, texts)
        shared = totals()
        return materialize_only(context, {key: {**shared, **metadata} for key, metadata in done.items()})


def materialize_only(
    context: dg.AssetExecutionContext, done: Mapping[str, Mapping[str, Any]]
) -> dg.MaterializeResult[None]:
    """Return the result of a step that materializes the partitions `done` and not all of its run.

    Dagster materializes all partitions of the run with the output that later steps wait for, except for an output with
    the mark of an observed source, of which the step logs each event itself.
    """
    for key, metadata in done.items():
        context.log_event(dg.AssetMaterialization(context.asset_key, partition=key, metadata=metadata))
    return dg.MaterializeResult(metadata={SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True})


def _is_followed(context: dg.AssetExecutionContext) -> bool:
    """Whether a later step of this run processes the same partitions."""
    layer = context.job_def.asset_layer
    plan = context.get_step_execution_context().plan_data.execution_plan
    steps = set(plan.step_keys_to_execute)
    of_run = {key for key in layer.selected_asset_keys if str(layer.get_op_output_handle(key).node_handle) in steps}
    following = {context.asset_key}
    while more := {child for key in following for child in layer.get(key).child_keys} & of_run - following:
        following |= more
    same = layer.get(context.asset_key).partitions_def
    return any(layer.get(key).partitions_def == same for key in following - {context.asset_key})


def _leave_out(context: dg.AssetExecutionContext, failed: Mapping[str, str]) -> None:
    """Records why partitions stay without a materialization: in the log, on their pages, for the run's last step."""
    for key, text in failed.items():
        context.log.error(f"{key} failed: {text}")
        context.log_event(dg.AssetObservation(context.asset_key, partition=key, metadata={_FAILURE: text}))


def _left_out(context: dg.AssetExecutionContext) -> dict[str, str]:
    """Why earlier steps of the run left partitions out, by key; of several reasons the first."""
    events = context.instance.get_records_for_run(context.run.run_id, of_type=dg.DagsterEventType.ASSET_OBSERVATION)
    found: dict[str, str] = {}
    for record in events.records:
        observation = record.asset_observation
        if observation and observation.partition and _FAILURE in observation.metadata:
            reason = f"{observation.metadata[_FAILURE].value} (in {observation.asset_key.to_user_string()})"
            found.setdefault(observation.partition, reason)
    return found


def _failure(failed: Mapping[str, str], count: int, unexpected: Exception | None) -> dg.Failure:
    """What is raised for those of `count` partitions that `failed`: without a traceback where no error is
    `unexpected`. It is not tried again, which would do all of them again.
    """
    texts = [f"{key}: {text}" for key, text in failed.items()]
    more = [f"and {len(texts) - _SHOWN_FAILURES} more"] if len(texts) > _SHOWN_FAILURES else []
    text = f"{len(failed)} of {count} partitions failed: {'; '.join(texts[:_SHOWN_FAILURES] + more)}"
    return dg.Failure(text, allow_retries=False) if unexpected else ExpectedError(text)


def progress_log(
    context: dg.AssetExecutionContext | dg.OpExecutionContext, clock: Callable[[], float] = time.monotonic
) -> Callable[[Progress], None]:
    """Logs the progress of a crawl, at most one line every 30 seconds."""
    log = _now_and_then(context, clock)

    def report(progress: Progress) -> None:
        log(f"{progress.stage}: {progress.done} of {progress.total}{progress.remarks}")

    return report


def count_log(context: dg.AssetExecutionContext | dg.OpExecutionContext, what: str) -> Callable[[int], None]:
    """Logs a number of rows, records or files, at most one line every 30 seconds."""
    log = _now_and_then(context, time.monotonic)
    return lambda count: log(f"{what}: {count}")


def _now_and_then(
    context: dg.AssetExecutionContext | dg.OpExecutionContext, clock: Callable[[], float]
) -> Callable[[str], None]:
    logged_at = clock()

    def log(text: str) -> None:
        nonlocal logged_at
        if clock() - logged_at >= PROGRESS_EVERY_S:
            logged_at = clock()
            context.log.info(text)

    return log


def failure_counts(failures: Mapping[str, int]) -> dict[str, int]:
    """The count of distributions that failed or were abandoned: in all, and of each kind of error."""
    return {"failed": sum(failures.values())} | {f"failed: {kind}": failures[kind] for kind in sorted(failures)}
