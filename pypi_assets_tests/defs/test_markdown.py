"""Tables in Markdown, whatever is in their cells."""

import pytest

from pypi_assets.defs.markdown import LONGEST_CELL, markdown_cell, markdown_table


def test_bars_and_line_breaks_do_not_break_a_table() -> None:
    assert markdown_table(("name", "count"), [("a|b\nc", 1), ("d", 2)]).splitlines() == [
        "| name | count |",
        "| --- | --- |",
        "| a\\|b c | 1 |",
        "| d | 2 |",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[here](javascript:alert(1))", r"\[here\](javascript:alert(1))"),
        ("<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert(1)\>"),
        ("&lt;b&gt;", r"\&lt;b\&gt;"),
        ("**bold** ~~gone~~ `code`", r"\*\*bold\*\* \~\~gone\~\~ \`code\`"),
        ("pkg.__init__", r"pkg.\_\_init\_\_"),
        ("snake_case", "snake_case"),
        ("![](https://evil.example.org/pixel.png)", "`![](https://evil.example.org/pixel.png)`"),
        ("www.example.org", "`www.example.org`"),
        ("demo @ https://example.org/a|b", r"`demo @ https://example.org/a\|b`"),
        ("`` a@b.example", "``` `` a@b.example ```"),
        ("\\", "\\\\"),
        ("left\u202eright\x1b[31m", "left\ufffdright\ufffd\\[31m"),
        ("", ""),
    ],
)
def test_what_comes_from_a_file_is_shown_and_does_nothing(text: str, shown: str) -> None:
    assert markdown_cell(text) == shown


def test_long_cells_are_cut() -> None:
    assert markdown_cell("x" * LONGEST_CELL) == "x" * LONGEST_CELL
    assert markdown_cell("x" * (LONGEST_CELL + 1)) == "x" * (LONGEST_CELL - 1) + "…"
    assert len(markdown_cell(" " * 10_000 + "x")) <= LONGEST_CELL


def test_a_table_can_have_shorter_cells() -> None:
    assert markdown_table(("name",), [("x" * 9,)], longest=5).splitlines()[-1] == "| xxxx… |"
