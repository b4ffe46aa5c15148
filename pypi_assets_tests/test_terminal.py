"""Every value is printed as a plain line, whatever an index or a file contains."""

import csv
import io
import json
import re
from itertools import count
from pathlib import Path

import pytest

from pypi_assets import terminal
from pypi_assets.progress import Progress
from pypi_assets.terminal import (
    Output,
    PlainProgress,
    by_depth,
    counted,
    local_time,
    plain,
    print_facts,
    print_json_rows,
    print_rows,
    print_table,
    print_wrapped_facts,
)
from pypi_assets_tests.named import unnamed

LINES = [
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
]


def test_values_are_printed_as_one_inert_line(subtests: pytest.Subtests) -> None:
    for value, line in LINES:
        with subtests.test(value=value, line=line):
            assert plain(value) == line


def test_printed_rows_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_table(("a", "b"), iter([(1, "x\ty"), (None, "z")])) == 2
    assert capsys.readouterr().out == "1\tx y\n-\tz\n"
    for rows in ([], [{"a": "\u00e9"}], [{"a": 1}, {"a": 2}]):
        assert print_json_rows(iter(rows)) == len(rows)
        printed = capsys.readouterr().out
        assert printed.isascii()
        assert json.loads(printed) == rows


def test_csv_is_parsed_as_printed_and_has_no_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [
        "=1+1",
        "+1",
        "-1",
        "@a",
        "\t=1",
        "\uff1d1",
        'say "a", b',
        "a;=b",
        "line\r\nline",
        "\x1b[31m",
        "caf\u00e9",
        "",
    ]
    rows = [(text, 5, -2.5, None, True, ["a", "b"]) for text in texts]
    assert print_table(("name", "=count", "c", "d", "e", "f"), iter(rows), Output(as_csv=True, header=True)) == len(
        rows
    )
    printed = capsys.readouterr().out
    assert printed.splitlines(keepends=True)[0] == '"name","=count","c","d","e","f"\r\n'
    _, *read = csv.reader(io.StringIO(printed, newline=""))
    assert [row[1:] for row in read] == [["5", "-2.5", "", "true", '["a", "b"]']] * len(rows)
    assert [row[0] for row in read] == [
        *("'=1+1", "'+1", "'-1", "'@a", "'=1", "'\uff1d1"),
        *('say "a", b', "a;=b", "line line", "\ufffd[31m", "caf\u00e9", ""),
    ]
    assert '"a;=b"' in printed
    assert print_table(("a",), [], Output(as_csv=True)) == 0
    assert capsys.readouterr().out == ""


def test_header_is_printed_first_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    header = Output(header=True)
    assert print_rows(("a", "b"), [{"b": 2, "a": 1, "c": 3}], header) == 1
    assert capsys.readouterr().out == "a\tb\n1\t2\n"
    assert print_rows(("a", "b"), [], header) == 0
    assert capsys.readouterr().out == "a\tb\n"
    assert print_rows(("a",), [{"a": [1], "b": 2}], Output(as_json=True)) == 1
    assert json.loads(capsys.readouterr().out) == [{"a": [1], "b": 2}]


def test_requirements_are_on_separate_lines_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    print_table(("requires_dist", "versions"), [(["a>=1,<2", "b; extra == 'x'"], ["1.0", "2.0"])])
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [line[0].strip() for line in lines[-2:]] == ["a>=1,<2", "b; extra == 'x'"]
    assert "1.0, 2.0" in "".join(lines[-2])


def test_lists_are_printed_below_their_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, object]] = [
        {"filename": "a" * 90, "needs": ["x>1; python_version < '3'", "y"], "yanked": False},
        {"filename": "b", "needs": ["x>1; python_version < '3'", "y"], "yanked": True},
        {"filename": "c", "needs": [], "yanked": False},
        {"filename": "d", "needs": None, "yanked": False},
    ]
    columns = ("filename", "needs", "yanked")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert print_rows(columns, iter(rows), Output(), beneath="needs") == 4
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines[1:])) <= 60  # except the header, which is bold
    assert "".join(line[:52] for line in lines[1:3]).strip() == "a" * 90
    assert [line for line in lines if line.startswith("    ")] == [
        "    x>1; python_version < '3'",
        "    y",
        "    needs: none",
        "    needs: unknown",
    ]
    assert [line.split() for line in lines[3:5]] == [["b", "yes"], ["x>1;", "python_version", "<", "'3'"]]
    assert print_rows(columns, [], Output(), beneath="needs") == 0
    assert print_rows(columns, rows[1:2], Output(as_csv=True), beneath="needs") == 1
    assert '"b","[""x>1; python_version < \'3\'"", ""y""]","true"\r\n' in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    assert print_rows(columns, rows[1:2], Output(), beneath="needs") == 1
    assert capsys.readouterr().out == "b\tx>1; python_version < '3', y\tyes\n"


def test_facts_are_wrapped_in_their_column_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [("needs", ["first; with two conditions", "second\x1b"]), ("hash", ["ab" * 32])]
    print_wrapped_facts(facts)
    assert (
        capsys.readouterr().out
        == f"needs           first; with two conditions, second\ufffd\nhash            {'ab' * 32}\n"
    )
    monkeypatch.setenv("COLUMNS", "36")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_wrapped_facts(facts)
    assert capsys.readouterr().out.splitlines() == [
        "needs           first; with two",
        "                  conditions",
        "                second\ufffd",
        f"hash            {'ab' * 32}",  # not wrapped, so that it can be copied
    ]


def test_plain_progress_prints_at_intervals_and_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = count()
    show = PlainProgress(clock=lambda: float(next(seconds)))
    for done in range(11):
        show(Progress("visits", done, 11))
    show(Progress("visits", 11, 11, failed=2))
    show(Progress("visits", 11, 11, failed=2))
    show(Progress("reads", 0, 0))
    for done in range(5):
        show(Progress("rows", done, 0))
    assert [re.findall(r"^\w+|\d+", line) for line in capsys.readouterr().err.splitlines()] == [
        ["visits", "4", "11"],
        ["visits", "9", "11"],
        ["visits", "11", "11", "2"],
        ["rows", "2"],
    ]


def test_local_time_is_in_iso_format() -> None:
    assert local_time(None) is None
    text = local_time(1_700_000_000.6)
    assert text is not None
    assert text.startswith("2023-11-1")
    assert len(text) == len("2023-11-14T22:13:20+00:00")


def test_counted_uses_singular_and_plural() -> None:
    assert [counted(count, "file") for count in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [counted(count, "file", ",") for count in (1, 2_000)] == ["1 file", "2,000 files"]


def test_by_depth_sums_up_deep_projects() -> None:
    assert by_depth({}) == ""
    assert by_depth({0: 1, 1: 4}) == "1 at depth 0, 4 at depth 1"
    for most in (10, 11, 500):
        text = by_depth(dict.fromkeys(range(1, most + 1), 2))
        assert text.count("depth") <= 11
        assert (unnamed(text, 2 * (most - 10), most) == []) == (most > 10)


def test_commands_use_counted_for_plurals() -> None:
    nouns = "files|projects|rows|records|events|requests|segments|packs|visits|reads"
    plural = re.compile(r"\{[^{}]+\} (?:[a-z]+ )?(?:" + nouns + r")\b")
    commands = Path(terminal.__file__).parent / "cli"
    found = [f"{path.name}: {text[0]}" for path in commands.glob("*.py") for text in plural.finditer(path.read_text())]
    allowed = ("leveldb.py: {dataset} rows", "leveldb.py: {dataset} files", "inspect.py: {value} module files")
    assert [one for one in found if one not in allowed and "{counted(" not in one] == []


def test_long_facts_are_wrapped_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fact = ("to do", "run this, then that; " * 20)
    monkeypatch.setenv("COLUMNS", "200")
    print_facts([fact])
    assert len(capsys.readouterr().out.splitlines()) == 1
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_facts([fact])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 100 for line in lines)
    assert all(line.startswith(" " * 16) for line in lines[1:])
