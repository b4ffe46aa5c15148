"""What an asset's page shows of reads: a bounded, inert table of failures, and totals."""

from pypi_assets.catalog.reports.failures import Failure
from pypi_assets.defs.read_results import SHOWN_FAILURES, failure_table
from pypi_assets_tests.cli.commands import commands_in
from pypi_assets_tests.named import unnamed


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
