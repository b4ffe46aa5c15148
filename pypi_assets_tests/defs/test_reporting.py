"""Progress logs of runs, and tables of failed files."""

import re

import dagster as dg

from pypi_assets.catalog.reports.failures import RecordedFailure
from pypi_assets.defs.reporting import (
    LONGEST_CELL,
    PROGRESS_EVERY_S,
    SHOWN_FAILURES,
    failure_table,
    markdown_table,
    progress_log,
)
from pypi_assets.progress import Progress
from pypi_assets_tests.cli.commands import commands_in
from pypi_assets_tests.named import unnamed


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


def failure(filename: str, kind: str = "corrupt archive", text: str = "no zip") -> RecordedFailure:
    return RecordedFailure("demo", filename, "error", kind, text, attempts=1, attempts_remaining=0, next_due=None)


def shown(failures: list[RecordedFailure], count: int) -> list[str]:
    return str(failure_table(failures, count)["failures"].value).splitlines()


def test_no_failures_make_no_table() -> None:
    assert failure_table([], 0) == {}


def test_each_file_is_a_row_and_commands_contain_the_kinds() -> None:
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


def test_table_is_bounded_and_counts_the_rest() -> None:
    lines = shown([failure(f"demo-{number}.zip", text="x" * 9_000) for number in range(SHOWN_FAILURES + 20)], 1_000)
    rows = [line for line in lines if line.startswith("| demo-")]
    assert len(rows) == 50
    assert max(map(len, rows)) < 400
    assert unnamed(lines[-1], "950") == []


def test_file_text_is_shown_verbatim() -> None:
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


def test_long_cells_are_truncated() -> None:
    assert markdown_table(("name",), [("x" * 1_000,)]).splitlines()[-1] == f"| {'x' * (LONGEST_CELL - 1)}… |"


def test_table_can_have_shorter_cells() -> None:
    assert markdown_table(("name",), [("x" * 9,)], longest=5).splitlines()[-1] == "| xxxx… |"
