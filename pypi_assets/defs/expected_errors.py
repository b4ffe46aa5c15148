"""Turns expected errors into failures that say what happened and what to do, without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.errors import DagsterUserCodeProcessError
from dagster_shared.error import SerializableErrorInfo

from pypi_assets.catalog.database import CatalogError, database_failure
from pypi_assets.catalog.ledger.serial_range import RangeError
from pypi_assets.distributions.reader_pool import ReaderStartError
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.iceberg.table_catalog import TablesError
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.journal.kafka import KafkaError
from pypi_assets.journal.publishing import JournalForkError
from pypi_assets.journal.segment_files import JournalDamagedError
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.parquet.export_manifest import ParquetError
from pypi_assets.sanitize import inert_lines
from pypi_assets.settings import SettingsError
from pypi_assets.storage.store import StorageError
from pypi_assets.upkeep.transient import DATABASE, is_transient

_ERRORS = (
    SettingsError,
    CatalogError,
    RangeError,
    PackageIndexError,
    StorageError,
    ReaderStartError,
    DumpDamagedError,
    LeveldbError,
    ParquetError,
    TablesError,
    JournalForkError,
    JournalDamagedError,
    NoJournalError,
    KafkaError,
)
EXPECTED = (*DATABASE, *_ERRORS)
_TERMINATED = "the run was terminated. Finished work is kept: the next run continues from there"
_UNTIL_CORRECTED = "each tick fails until that is corrected"
_UNTIL_RELOADED = "each tick fails until the setting is corrected and the code location is reloaded"


class ExpectedStepError(DagsterUserCodeProcessError, dg.Failure):
    """A failure that Dagster shows as a text, without a traceback, and without trying its step again.

    Dagster shows errors of other processes as it receives them. So this error pretends to come from another process,
    with a text and no stack.
    """

    def __init__(self, text: str, *, allow_retries: bool = False) -> None:
        shown = SerializableErrorInfo(message=text, stack=[], cls_name=None)
        super().__init__(  # type: ignore[no-untyped-call]
            text, user_code_process_error_infos=[shown], allow_retries=allow_retries
        )


class ExpectedRetryError(DagsterUserCodeProcessError, dg.RetryRequested):
    """A request to try the step again after a pause. Dagster shows it as a text as well."""

    def __init__(self, text: str, *, max_retries: int, pause_s: float) -> None:
        shown = SerializableErrorInfo(
            message=f"{text}. What comes next: the step is tried again in {pause_s:g} s.", stack=[], cls_name=None
        )
        super().__init__(  # type: ignore[no-untyped-call]
            user_code_process_error_infos=[shown], max_retries=max_retries, seconds_to_wait=pause_s
        )


class TerminatedError(DagsterUserCodeProcessError, dg.DagsterExecutionInterruptedError):
    """The end of a step whose run was terminated. Dagster shows it as a text as well.

    Dagster would take a bare interrupt for a request to try the step again, and the run would continue to its end.
    """

    def __init__(self) -> None:
        shown = SerializableErrorInfo(message=_TERMINATED, stack=[], cls_name=None)
        super().__init__(user_code_process_error_infos=[shown])  # type: ignore[no-untyped-call]


@contextmanager
def expected_errors_as_failures() -> Iterator[None]:
    """Raise dagster.Failure with the text of an expected error.

    After a transient error, the step is tried again according to its retry policy. An interrupt ends the run: it was
    terminated in the UI, or its machine stops.
    """
    try:
        yield
    except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt) as interrupt:
        raise TerminatedError from interrupt
    except EXPECTED as error:
        if is_transient(error) and (retry := _next_attempt(describe_error(error))):
            raise retry from error
        raise ExpectedStepError(describe_error(error), allow_retries=is_transient(error)) from error


@contextmanager
def expected_errors_of_ticks(interval_s: float) -> Iterator[None]:
    """Raise dagster.Failure in a sensor with a tick every `interval_s` seconds. Its text also names the next step."""
    try:
        yield
    except EXPECTED as error:
        then = f"the next tick, in {interval_s:g} s, tries again" if is_transient(error) else _UNTIL_CORRECTED
        if isinstance(error, SettingsError):
            then = _UNTIL_RELOADED
        text = f"{describe_error(error)}. What comes next: {then}."
        raise ExpectedStepError(text, allow_retries=is_transient(error)) from error


def _next_attempt(text: str) -> ExpectedRetryError | None:
    """Return a request to try the current step again; None outside of steps, and if no attempt is left."""
    try:
        context = dg.OpExecutionContext.get()
    except dg.DagsterInvariantViolationError:
        return None
    policy, made = context.op_def.retry_policy, context.retry_number
    if policy is None or made >= policy.max_retries:
        return None
    return ExpectedRetryError(text, max_retries=policy.max_retries, pause_s=policy.calculate_delay(made + 1))


def describe_error(error: BaseException) -> str:
    """Return an error as a sentence for people. Text of an index or a file in it is escaped."""
    if isinstance(error, DATABASE):
        text = database_failure(error)
    else:
        text = str(error) if isinstance(error, _ERRORS) else f"{type(error).__name__}: {error}"
    return inert_lines(text)
