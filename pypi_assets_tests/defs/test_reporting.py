"""Partitions of a run that are marked, how its progress is logged, and tables of files that failed."""

import re
from collections.abc import Iterator, Mapping

import dagster as dg
import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.failures import Failure
from pypi_assets.defs.policy import RANGE_END_TAG, RANGE_START_TAG, serial_ranges
from pypi_assets.defs.reporting import (
    LONGEST_CELL,
    PROGRESS_EVERY_S,
    SHOWN_FAILURES,
    failure_table,
    mark_each_range,
    markdown_table,
    progress_log,
)
from pypi_assets.progress import Progress
from pypi_assets.storage.store import StorageError
from pypi_assets_tests.cli.commands import commands_in
from pypi_assets_tests.defs.conftest import failure_text
from pypi_assets_tests.named import unnamed

KEYS = ["0-10", "10-20", "20-30", "30-40"]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions("serial_ranges", KEYS)
        yield made


def run(
    instance: dg.DagsterInstance, failures: Mapping[str, Exception]
) -> tuple[dg.ExecuteInProcessResult, list[str], list[str]]:
    """A run of all ranges, of which some fail: the result, the ranges that were worked on, and those marked."""
    worked: list[str] = []

    def work(serials: SerialRange) -> dict[str, int]:
        worked.append(serials.key)
        if serials.key in failures:
            raise failures[serials.key]
        return {"end": serials.end}

    @dg.asset(partitions_def=serial_ranges)
    def counted(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        mark_each_range(context, work)
        return dg.MaterializeResult()

    tags = {RANGE_START_TAG: KEYS[0], RANGE_END_TAG: KEYS[-1]}
    result = dg.materialize([counted], instance=instance, tags=tags, raise_on_error=False)
    records = instance.fetch_materializations(dg.AssetKey("counted"), limit=10).records
    for record in records:
        assert record.asset_materialization is not None
        assert record.asset_materialization.metadata["end"].value == int(str(record.partition_key).split("-")[1])
    return result, worked, sorted(str(record.partition_key) for record in records)


def test_each_range_is_marked_with_its_numbers(instance: dg.DagsterInstance) -> None:
    result, worked, marked = run(instance, {})
    assert result.success
    assert worked == marked == KEYS


def test_a_range_that_fails_ends_the_step_and_those_before_it_stay_marked(instance: dg.DagsterInstance) -> None:
    result, worked, marked = run(instance, {"10-20": StorageError("the storage does not answer")})
    assert worked == KEYS[:2]
    assert marked == KEYS[:1]
    assert failure_text(result) == "the storage does not answer"


def test_progress_is_logged_every_30_seconds_at_most() -> None:
    now = 0.0
    reported: list[str] = []

    with dg.build_op_context() as context:
        context.log.info = reported.append  # type: ignore[assignment]
        report = progress_log(context, lambda: now)
        for now in (0.0, 1.0, PROGRESS_EVERY_S, PROGRESS_EVERY_S + 1, 2 * PROGRESS_EVERY_S):
            report(Progress("visits", int(now), 100, failed=1, wait_s=now - PROGRESS_EVERY_S))
    assert [re.findall(r"\d+", line) for line in reported] == [["30", "100", "1"], ["60", "100", "1", "30"]]
    assert all(line.startswith("visits") for line in reported)


def failure(filename: str, kind: str = "corrupt archive", text: str = "no zip") -> Failure:
    return Failure("demo", filename, "error", kind, text, attempts=1, attempts_remaining=0, next_due=None)


def shown(failures: list[Failure], count: int) -> list[str]:
    return str(failure_table(failures, count)["failures"].value).splitlines()


def test_without_failures_there_is_no_table() -> None:
    assert failure_table([], 0) == {}


def test_each_file_is_a_row_and_the_commands_name_the_kinds() -> None:
    *table, commands = shown([failure("a-1.tar.gz"), failure("b-1.zip", "transient", "503")], 2)
    assert table == [
        "| file | kind | text | attempts |",
        "| --- | --- | --- | --- |",
        "| a-1.tar.gz | corrupt archive | no zip | 1 |",
        "| b-1.zip | transient | 503 | 1 |",
        "",
    ]
    kinds = ("corrupt archive", "transient")
    assert commands_in(commands) == [f'failures list --kind "{kind}"' for kind in kinds]


def test_the_table_is_bounded_and_counts_the_rest() -> None:
    lines = shown([failure(f"demo-{number}.zip", text="x" * 9_000) for number in range(SHOWN_FAILURES + 20)], 1_000)
    rows = [line for line in lines if line.startswith("| demo-")]
    assert len(rows) == 50
    assert max(map(len, rows)) < 400
    assert unnamed(lines[-1], "950") == []


def test_what_a_file_contains_is_shown_as_it_is() -> None:
    [row] = [
        line for line in shown([failure("a-1.zip", text="![x](http://e) <b> `c` _d_ | *e*\nf")], 1) if "a-1" in line
    ]
    assert row == r"| a-1.zip | corrupt archive | `` ![x](http://e) <b> `c` _d_ \| *e* f `` | 1 |"


def test_bars_and_line_breaks_do_not_break_a_table() -> None:
    assert markdown_table(("name", "count"), [("a|b\nc", 1), ("d", 2)]).splitlines() == [
        "| name | count |",
        "| --- | --- |",
        "| a\\|b c | 1 |",
        "| d | 2 |",
    ]


def test_long_cells_are_cut() -> None:
    assert markdown_table(("name",), [("x" * 1_000,)]).splitlines()[-1] == f"| {'x' * (LONGEST_CELL - 1)}… |"


def test_a_table_can_have_shorter_cells() -> None:
    assert markdown_table(("name",), [("x" * 9,)], longest=5).splitlines()[-1] == "| xxxx… |"
