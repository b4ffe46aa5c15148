"""Tables in Markdown."""

from pypi_assets.defs.markdown import markdown_table


def test_bars_and_line_breaks_do_not_break_a_table() -> None:
    assert markdown_table(("name", "count"), [("a|b\nc", 1), ("d", 2)]).splitlines() == [
        "| name | count |",
        "| --- | --- |",
        "| a\\|b c | 1 |",
        "| d | 2 |",
    ]
