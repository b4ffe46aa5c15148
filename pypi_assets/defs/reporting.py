"""Reports the state of a run to Dagster: its finished partitions with their numbers and tables, and its progress.

Dagster shows tables as Markdown, so text of an index or a file is escaped in them. The work itself does not belong
here.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.failures import RecordedFailure
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.parquet.export_manifest import ParquetColumn
from pypi_assets.progress import Progress
from pypi_assets.sanitize import inert_markdown_cell
from pypi_assets.upkeep.live_totals import live_totals

PROGRESS_EVERY_S = 30.0
_DATA_VERSION = "dagster/data_version"
"""The tag of a materialization that Dagster compares to find out whether downstream assets are out of date."""


def arrow_schema(columns: Mapping[str, ParquetColumn]) -> dict[str, dg.TableSchema]:
    """Return the metadata of an asset by which Dagster shows its columns."""
    shown = [
        dg.TableColumn(
            name,
            type=column.type,
            description=column.meaning,
            constraints=dg.TableColumnConstraints(nullable=column.nullable),
        )
        for name, column in columns.items()
    ]
    return {"dagster/column_schema": dg.TableSchema(columns=shown)}


class Marks:
    """Collects the partitions that a step has finished.

    `data_version` identifies the state of their data, such as the serial of the full crawl. When it changes, Dagster
    shows downstream partitions as out of date. If it is None, Dagster derives it from code and inputs.
    """

    def __init__(self) -> None:
        self.done: dict[str, Mapping[str, Any]] = {}
        self.data_version: str | None = None

    def __call__(self, key: str, metadata: Mapping[str, Any]) -> None:
        """Mark a partition as done, with the metadata to show on its page."""
        self.done[key] = metadata

    def result(self, metadata: Mapping[str, Any] | None = None) -> dg.MaterializeResult[None]:
        """Return the result of a step with finished partitions. `metadata` is shown on each of them."""
        version = None if self.data_version is None else dg.DataVersion(self.data_version)
        return dg.MaterializeResult(metadata=metadata, data_version=version)


@contextmanager
def marking(context: dg.AssetExecutionContext) -> Iterator[Marks]:
    """Yield marks, to be called as `mark(key, metadata)` for each finished partition.

    If the run succeeds, Dagster itself materializes all its partitions, each with its metadata. If it fails or is
    cancelled, the finished partitions are materialized here, so that only the others are missing.
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


def progress_log(
    context: dg.AssetExecutionContext | dg.OpExecutionContext, clock: Callable[[], float] = time.monotonic
) -> Callable[[Progress], None]:
    """Log the progress of a crawl, at most one line every 30 seconds."""
    log = _now_and_then(context, clock)

    def report(progress: Progress) -> None:
        log(f"{progress.stage}: {progress.done} of {progress.total}{progress.remarks}")

    return report


def count_log(context: dg.AssetExecutionContext | dg.OpExecutionContext, what: str) -> Callable[[int], None]:
    """Log a number of rows, records or files, at most one line every 30 seconds."""
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
    """Return the number of distributions that failed or were abandoned: in total, and for each kind of error."""
    return {"failed": sum(failures.values())} | {f"failed: {kind}": failures[kind] for kind in sorted(failures)}


SHOWN_FAILURES = 50
_LIVE, _READ, _FAILED, _COUNTED_AT = "total: live", "total: read", "total: failed", "total: counted at"


def failure_table(failures: Sequence[RecordedFailure], count: int) -> dict[str, dg.MetadataValue[Any]]:
    """Return metadata about failed files: a table of `failures`, `count` in total, and commands that list the rest.

    It is empty if no file failed.
    """
    if not failures:
        return {}
    shown = failures[:SHOWN_FAILURES]
    rows = [(one.filename, one.kind, one.text, one.attempts) for one in shown]
    table = markdown_table(("file", "kind", "text", "attempts"), rows)
    more = f"and {count - len(shown)} more. " if count > len(shown) else ""
    commands = [f'`pypi-assets failures list --kind "{kind}"`' for kind in dict.fromkeys(one.kind for one in failures)]
    return {"failures": dg.MetadataValue.md(f"{table}\n\n{more}All of a kind, of all projects: {', '.join(commands)}")}


def total_metadata(catalog: Catalog) -> dict[str, dg.MetadataValue[Any]]:
    """Return the totals over all live files, as metadata of each partition of a run."""
    totals = live_totals(catalog)
    return {
        _LIVE: dg.MetadataValue.int(totals.live),
        _READ: dg.MetadataValue.int(totals.read),
        _FAILED: dg.MetadataValue.int(totals.failed),
        _COUNTED_AT: dg.MetadataValue.timestamp(catalog.clock()),
    }


LONGEST_CELL = 300  # characters


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]], longest: int = LONGEST_CELL) -> str:
    """Return a table with a line for each row. Cells longer than `longest` characters are cut."""
    cells = ([inert_markdown_cell(str(cell), longest) for cell in row] for row in rows)
    lines = [columns, ["---"] * len(columns), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
