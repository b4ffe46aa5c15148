"""Print for the command line: data to standard output, messages and progress to standard error.

On a terminal, it prints tables and progress bars. Otherwise it prints plain lines with tabs between the columns, for
other programs. rich is only imported for terminals, since its import takes as long as everything else.
"""

import csv
import io
import json
import logging
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby, islice
from typing import Any

import click

from pypi_assets.progress import Progress
from pypi_assets.sanitize import inert_csv, inert_line

PLAIN_PROGRESS_EVERY_S = 5.0
_GAP, _INDENT, _LEAST_WIDTH = 2, 4, 16
_MOST_WIDTH = 100  # characters of a sentence: longer lines are hard to read
_OPERATORS = "<>=~;( "
_HEADERS = {"normalized": "project"}  # names of fields that only programs should have to know
_SHOWN_DEPTHS = 10
_SHOW_CURSOR = b"\x1b[?25h"


def local_time(unix_seconds: float | None) -> str | None:
    """Return ISO 8601 in the local time zone, to the second."""
    return None if unix_seconds is None else datetime.fromtimestamp(unix_seconds).astimezone().isoformat("T", "seconds")


@dataclass
class Answers:
    """The printed answers of several indexes. `index` is the index whose answer is printed now.

    They form one output: each row begins with its index, JSON is a single array, and the header is printed once.
    """

    index: str = ""
    json_rows: int | None = None
    has_header: bool = False
    input_lines: list[bytes] | None = None


_answers: ContextVar[Answers | None] = ContextVar("_answers", default=None)


@contextmanager
def answers_of_several() -> Iterator[Answers]:
    """Within the block, combine all printed answers of several indexes. The caller sets `index` before each answer."""
    answers = Answers()
    token = _answers.set(answers)
    try:
        yield answers
        if answers.json_rows is not None:
            click.echo("\n]" if answers.json_rows else "[]")
    finally:
        _answers.reset(token)


def _of_index(row: Any) -> Any:
    """Return the JSON row, with the index if there are several."""
    answers = _answers.get()
    return {"index": answers.index, **row} if answers else row


def lines_of_input() -> Iterator[bytes]:
    """Yield the lines of standard input as they arrive. With several indexes, each gets all lines."""
    answers = _answers.get()
    if answers is None:
        yield from sys.stdin.buffer
        return
    if answers.input_lines is None:
        answers.input_lines = sys.stdin.buffer.readlines()
    yield from answers.input_lines


def print_json(value: object) -> None:
    """Print `value` as JSON in ASCII, which every terminal and pipe accepts."""
    click.echo(json.dumps(value, indent=2))


def print_json_rows(rows: Iterable[object]) -> int:
    """Print a JSON array, one row a line, while the rows arrive; return the number of rows."""
    answers = _answers.get()
    before = (answers.json_rows or 0) if answers else 0
    count = before
    for count, row in enumerate(rows, before + 1):
        click.echo(("[\n" if count == 1 else ",\n") + json.dumps(_of_index(row)), nl=False)
    if answers:
        answers.json_rows = count
    else:
        click.echo("\n]" if count else "[]")
    return count - before


def print_json_line(value: object) -> None:
    """Print `value` as JSON on one line."""
    click.echo(json.dumps(_of_index(value)))


@dataclass(frozen=True, slots=True)
class Output:
    """The format of rows: JSON, CSV, or a table. With `header`, CSV and plain lines begin with the names of the
    columns.
    """

    as_json: bool = False
    as_csv: bool = False
    header: bool = False


TABLE = Output()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], output: Output = TABLE) -> int:
    """Print a table on a terminal, otherwise one line for each row. Return the number of rows."""
    columns = [_HEADERS.get(column, column) for column in columns]
    header, answers = output.header, _answers.get()
    if answers:
        columns, rows = ["index", *columns], ((answers.index, *row) for row in rows)
        header, answers.has_header = header and not answers.has_header, True
    if output.as_csv:
        return _print_csv(columns, rows, header=header)
    if sys.stdout.isatty():
        return _print_drawn(columns, [[_in_cell(value) for value in row] for row in rows])
    if header:
        click.echo("\t".join(columns))
    count = 0
    for row in rows:
        count += 1
        click.echo("\t".join(map(plain, row)))
    return count


def _in_cell(value: object) -> str:
    """Return the text of a cell. Requirements are on a line each, because many contain commas."""
    if isinstance(value, list | tuple) and any(set(_OPERATORS) & set(str(item)) for item in value):
        return "\n".join(map(plain, value))
    return plain(value)


def _print_csv(columns: Sequence[str], rows: Iterable[Sequence[object]], *, header: bool) -> int:
    """Print rows in the format of RFC 4180. Texts are quoted, so that another locale's separator does not split
    them.
    """
    line = io.StringIO()
    writer = csv.writer(line, quoting=csv.QUOTE_NONNUMERIC)

    def write(cells: Iterable[object]) -> None:
        writer.writerow(cells)
        click.echo(line.getvalue(), nl=False)
        line.seek(0)
        line.truncate()

    if header:
        write(columns)
    count = 0
    for row in rows:
        count += 1
        write(map(_csv_cell, row))
    return count


def _csv_cell(value: object) -> object:
    """Return the value of a CSV cell. Numbers stay numbers, and lists become JSON, since requirements contain commas.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    if value is None or value in ([], (), {}):
        return ""
    if isinstance(value, list | tuple | dict):
        return plain(json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return value
    return inert_csv(str(value))


def _print_drawn(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> int:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*(column.replace("_", " ") for column in columns), box=box.SIMPLE_HEAD, pad_edge=False)
    for cells in lines:
        table.add_row(*(Text(cell, overflow="fold") for cell in cells))
    if lines:
        Console().print(table)
    return len(lines)


def _print_lists_beneath(columns: Sequence[str], beneath: str, rows: Sequence[Mapping[str, Any]]) -> int:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    lines = [[_in_cell(row[column]) for column in columns] for row in rows]
    header = [column.replace("_", " ") for column in columns]
    console = Console()
    widths = [max(map(len, cells)) for cells in zip(header, *lines, strict=True)]
    while sum(widths) + _GAP * (len(widths) - 1) > console.width and max(widths) > _LEAST_WIDTH:
        widths[widths.index(max(widths))] -= 1

    def print_part(part: Iterable[Sequence[str]], style: str = "") -> None:
        table = Table.grid(*(Column(width=width, overflow="fold") for width in widths), padding=(0, _GAP, 0, 0))
        for cells in part:
            table.add_row(*map(Text, cells), style=style)
        console.print(table)

    numbered = list(zip(rows, lines, strict=True))
    for number, (items, together) in enumerate(groupby(numbered, key=lambda pair: pair[0][beneath])):
        if number == 0:
            print_part([header], "bold")
        print_part(cells for _, cells in together)
        name = beneath.replace("_", " ")
        for item in [f"{name}: unknown"] if items is None else items or [f"{name}: none"]:
            click.echo("\n".join(wrapped(plain(item), console.width, _INDENT)))
        click.echo()
    return len(rows)


def print_rows(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], output: Output, *, beneath: str | None = None
) -> int:
    """Print complete rows as JSON, or their `columns` as CSV or a table; return the number of rows.

    On a terminal, the items of the list in the column `beneath` get their own lines, after all successive rows with the
    same list.
    """
    if output.as_json:
        return print_json_rows(rows)
    if beneath and beneath in columns and not output.as_csv and sys.stdout.isatty():
        shown = [*(["index"] if _answers.get() else []), *(column for column in columns if column != beneath)]
        return _print_lists_beneath(shown, beneath, [_of_index(row) for row in rows])
    return print_table(columns, ([row[column] for column in columns] for row in rows), output)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print one `name   value` line for each fact, with the values in one column. A terminal wraps long values."""
    rows = list(facts)
    if sys.stdout.isatty():
        print_wrapped_facts((name, [plain(value)]) for name, value in rows)
        return
    width = _width_of_names(rows)
    for name, value in rows:
        click.echo(f"{name:<{width}}{plain(value)}")


def print_wrapped_facts(facts: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Print facts whose values are lists. On a terminal, each item begins a new line, in the column of values."""
    rows = list(facts)
    if not sys.stdout.isatty():
        print_facts(rows)
        return
    width = _width_of_names(rows)
    room = max(min(shutil.get_terminal_size().columns, _MOST_WIDTH) - width, _LEAST_WIDTH)
    for name, items in rows:
        lines = [line for item in items for line in wrapped(plain(item), room)]
        for number, line in enumerate(lines):
            click.echo(f"{'' if number else name:<{width}}{line}")


def _width_of_names(facts: Sequence[tuple[str, object]]) -> int:
    return max([16, *(len(name) + 1 for name, _ in facts)])


def print_message(message: str) -> None:
    """Print a message for people to standard error. With several indexes, it begins with the name of the index."""
    answers = _answers.get()
    click.echo(plain(f"{answers.index}: {message}" if answers else message), err=True)


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Return the lines of `text`: the first is indented by `indent` characters, the others by two more.

    A word that is longer than a line is not broken, so that URLs and hashes can be copied.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def counted(count: int, noun: str, form: str = "") -> str:
    """Return the count with its noun, which takes an s unless the count is 1: `1 file`, `2 files`.

    `form` is the format of the number, such as `,`.
    """
    return f"{count:{form}} {noun}" if count == 1 else f"{count:{form}} {noun}s"


def by_depth(counts: Mapping[int, int]) -> str:
    """Return the counts at the first depths, and the sum of all deeper ones, because a chain of requirements can be
    long.

    >>> by_depth({0: 1, 1: 4})
    '1 at depth 0, 4 at depth 1'
    """
    shown = [f"{count} at depth {depth}" for depth, count in islice(counts.items(), _SHOWN_DEPTHS)]
    deeper = sum(islice(counts.values(), _SHOWN_DEPTHS, None))
    return ", ".join([*shown, *([f"{deeper} deeper, to depth {max(counts)}"] if deeper else [])])


def plain(value: object) -> str:
    """Return `value` as one line, without control characters, which an index or a file can contain."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value)
    return inert_line(str(value))


@contextmanager
def progress_shown() -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows progress on standard error: as bars on a terminal, otherwise as occasional lines."""
    if not sys.stderr.isatty():
        yield PlainProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description:>13}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    tasks: dict[str, Any] = {}

    def show(progress: Progress) -> None:
        if not (progress.done or progress.total):
            return
        failed = ": ".join(
            filter(None, (f"{progress.failed} failed" if progress.failed else "", plain(progress.reason)))
        )
        if progress.stage not in tasks:
            tasks[progress.stage] = bars.add_task(progress.stage, total=None, failed=failed)
        bars.update(tasks[progress.stage], completed=progress.done, total=progress.total or None, failed=failed)

    with bars:
        yield show


def show_cursor() -> None:
    """Show the cursor of the terminal again, which a progress bar hides. This is safe in a signal handler."""
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR)


class PlainProgress:
    """Prints a line when a stage ends, and before that at most one line every few seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._printed_at = clock()
        self._printed: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        ended = progress.done >= progress.total > 0
        if progress == self._printed or not (ended or now - self._printed_at >= PLAIN_PROGRESS_EVERY_S):
            return
        self._printed_at, self._printed = now, progress
        total = f"of {progress.total}" if progress.total else "so far"
        message = f"{progress.stage}: {progress.done} {total}{progress.remarks}"
        from pypi_assets.logs import OURS, are_json  # imported only here, since only slow commands have progress

        if are_json():
            logging.getLogger(OURS).info(message, extra=asdict(progress))
        else:
            print_message(message)
