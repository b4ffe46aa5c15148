"""Reports to Dagster how a run goes: which of its partitions are done, with their numbers, and its progress.

The work itself does not belong here.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs.expected_errors import describe_error, expected_errors_as_failures, is_transient
from pypi_assets.progress import Progress

PROGRESS_EVERY_S = 30.0
_SHOWN_FAILURES = 10

Mark = Callable[[str, Mapping[str, Any]], None]


@contextmanager
def marking(context: dg.AssetExecutionContext) -> Iterator[Mark]:
    """Yields `mark(key, metadata)`, to be called for each partition that is done.

    A run that succeeds is materialized by Dagster itself: every partition, each with its metadata. Where it fails, the
    partitions that are done are materialized here, so that only the rest is missing.
    """
    done: dict[str, Mapping[str, Any]] = {}
    try:
        with expected_errors_as_failures():
            yield done.__setitem__
    except BaseException:  # also a run that is cancelled keeps what it has done
        for key, metadata in done.items():
            context.log_event(dg.AssetMaterialization(context.asset_key, partition=key, metadata=metadata))
        raise
    for key, metadata in done.items():
        context.add_asset_metadata(metadata, partition_key=key)


def mark_each_range(context: dg.AssetExecutionContext, work: Callable[[SerialRange], Mapping[str, Any]]) -> None:
    """Does `work` for each serial range of the run, and marks it with the numbers that it returns and its seconds.

    A range that fails does not stop those after it: the run fails once they are done, and names it. A transient error
    concerns them all, and ends the run at once.
    """
    keys, failed = list(context.partition_keys), dict[str, Exception]()
    with marking(context) as mark:
        for key in keys:
            try:
                started = time.monotonic()
                numbers = work(SerialRange.parse(key))
                mark(key, {**numbers, "seconds": round(time.monotonic() - started, 3)})
            except Exception as error:
                if is_transient(error) or len(keys) == 1:
                    raise
                failed[key] = error
        if failed:
            raise _failure(failed, len(keys)) from next(iter(failed.values()))


def _failure(failed: Mapping[str, Exception], count: int) -> dg.Failure:
    """What is raised for those of `count` partitions that failed."""
    texts = [f"{key}: {describe_error(error)}" for key, error in failed.items()]
    more = [f"and {len(texts) - _SHOWN_FAILURES} more"] if len(texts) > _SHOWN_FAILURES else []
    text = f"{len(failed)} of {count} partitions failed: {'; '.join(texts[:_SHOWN_FAILURES] + more)}"
    return dg.Failure(text, allow_retries=False)  # which would do all of them again


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
