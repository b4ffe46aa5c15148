"""Printing: every value is a plain line, whatever an index or a file contains."""

import json
from itertools import count

import pytest

from pypi_assets.progress import Progress
from pypi_assets.terminal import PlainProgress, local_time, plain, print_json_rows, print_table


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "-"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (["a", None, "b"], "a, -, b"),
        ([], ""),
        ("two\nlines\tand  more", "two lines and more"),
        ("\x1b[31mred\x07", "\ufffd[31mred\ufffd"),
        ("\udcff", "\ufffd"),
        ("[bold]caf\u00e9[/]", "[bold]caf\u00e9[/]"),
    ],
)
def test_every_value_is_one_harmless_line(value: object, line: str) -> None:
    assert plain(value) == line


def test_rows_are_counted_as_they_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_table(("a", "b"), iter([(1, "x\ty"), (None, "z")])) == 2
    assert capsys.readouterr().out == "1\tx y\n-\tz\n"
    for rows in ([], [{"a": "\u00e9"}], [{"a": 1}, {"a": 2}]):
        assert print_json_rows(iter(rows)) == len(rows)
        printed = capsys.readouterr().out
        assert printed.isascii()
        assert json.loads(printed) == rows


def test_plain_progress_is_a_line_at_a_stage_s_end_and_one_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = count()
    show = PlainProgress(clock=lambda: float(next(seconds)))
    for done in range(11):
        show(Progress("visits", done, 11))
    show(Progress("visits", 11, 11, failed=2))
    show(Progress("visits", 11, 11, failed=2))
    show(Progress("reads", 0, 0))
    for done in range(5):
        show(Progress("rows", done, 0))
    assert capsys.readouterr().err.splitlines() == [
        "visits: 4 of 11",
        "visits: 9 of 11",
        "visits: 11 of 11, 2 failed",
        "rows: 2 so far",
    ]


def test_times_are_local_and_iso() -> None:
    assert local_time(None) is None
    text = local_time(1_700_000_000.6)
    assert text is not None
    assert text.startswith("2023-11-1")
    assert len(text) == len("2023-11-14T22:13:20+00:00")
