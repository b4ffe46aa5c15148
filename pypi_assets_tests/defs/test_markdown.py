"""Tables in Markdown, whatever is in their cells."""

from pypi_assets.defs.markdown import LONGEST_CELL, markdown_table


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
