"""Makes a command of each question: `pypi-assets lookup module NAME` and the like.

What a question takes and answers is declared in `questions/`; here it becomes options, rows and messages.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.followed_notes import VersionNotes, among, catalog_notes
from pypi_assets.cli.moments import AT, catalog_at
from pypi_assets.cli.options import row_output
from pypi_assets.errors import ExpectedError
from pypi_assets.lookup.answers import Stream
from pypi_assets.lookup.latest import open_if_local, open_latest
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.question import Parameter, ParameterError, Parameters, Question
from pypi_assets.questions.snapshot import Found, Snapshot
from pypi_assets.terminal import Output, lines_of_input, print_json_line, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.lookup.reader import Reader

_STANDARD_INPUT = "-"
_REFRESH_EVERY_S = 60.0
_LIMIT = click.option("--limit", type=click.IntRange(1), help="Print no more results than this.")


@dataclass(frozen=True, slots=True)
class Asking:
    """A snapshot, and what the command line adds to its answers.

    `ask` returns what was found. `notes` yields why projects that are not followed may be missing.
    """

    snapshot: Snapshot
    ask: Callable[[Question[Any], Parameters], Found[Any]]
    notes: Callable[[Found[Any]], Iterator[str]]


def question_command(question: Question[Any]) -> click.Command:
    """Return the command of a question."""
    name, *others = question.takes

    def run(name_or_dash: str, output: Output, limit: int | None, at: "Moment | None", **given: Any) -> None:
        if name_or_dash == _STANDARD_INPUT:
            if sys.stdin is None:
                raise click.UsageError("standard input is closed, so it has no names")
            if output.as_csv or output.header:
                raise click.UsageError("names from standard input are answered by lines of JSON: no --csv or --header")
            if given.get("prefix"):
                raise click.UsageError("--prefix goes with one NAME: names from standard input are whole ones")
            _answer_lines(question, limit, at, given)
            return
        try:
            parameters = question.given(**{name.name: name_or_dash.strip() and name_or_dash}, **given)
        except ParameterError as error:
            raise click.BadParameter(str(error), param_hint="NAME" if error.name == name.name else None) from error
        with _opened(at, None) as asking:
            _print_answer(question, parameters, asking, limit, output)

    options: list[Callable[..., Any]] = [
        click.argument("name_or_dash", metavar="NAME"),
        *(_option(parameter) for parameter in others),
        _LIMIT,
        AT,
        row_output,
    ]
    for option in reversed(options):
        run = option(run)
    text = f"{question.summary}.\n\n{question.description}".strip()
    example = f"Example: pypi-assets lookup {question.name} {question.example}"
    return click.command(question.name, help=text, short_help=f"{question.summary}.", epilog=example)(run)


def _option(parameter: Parameter) -> Callable[[Callable[..., None]], Callable[..., None]]:
    text = f"{parameter.accepts.text[0].upper()}{parameter.accepts.text[1:]}."
    option = f"--{parameter.name.replace('_', '-')}"
    if parameter.type is bool:
        return click.option(option, parameter.name, is_flag=True, help=text)
    raise TypeError(f"{parameter.name} is a {parameter.type}, of which no option is made yet")


@contextmanager
def _opened(at: "Moment | None", refresh_every_s: float | None) -> Iterator[Asking]:
    """Yield what is asked: the newest versions, or the catalog as of a moment."""
    if at is not None:
        with _opened_catalog(at) as asking:
            yield asking
        return
    with ExitStack() as stack:
        readers: dict[type[Any], Reader] = {}

        def reader(kind: type[Any]) -> Any:
            if kind not in readers:
                opened = open_latest(kind, check_hashes=False, refresh_every_s=refresh_every_s)
                readers[kind] = stack.enter_context(opened)
                for skipped in readers[kind].skipped:
                    print_message(f"not used: {skipped}")
            return readers[kind]

        snapshot, notes = PublishedSnapshot(reader, open_if_local), VersionNotes(stack)
        yield Asking(
            snapshot,
            lambda question, parameters: question.answer(snapshot, parameters, None),
            lambda found: notes(None, found.serial, found.followed_projects),
        )


@contextmanager
def _opened_catalog(at: "Moment") -> Iterator[Asking]:
    from pypi_assets.catalog.reports.answerable_serials import pinned_answer
    from pypi_assets.questions.catalog_snapshot import CatalogSnapshot

    with catalog_at(at) as (catalog, serial):
        snapshot = CatalogSnapshot(catalog, serial)

        def ask(question: Question[Any], parameters: Parameters) -> Found[Any]:
            found, epoch = pinned_answer(catalog, serial, partial(question.answer, snapshot, parameters, None))
            return found if isinstance(found, Stream) else replace(found, epoch=epoch)

        def notes(found: Found[Any]) -> Iterator[str]:
            with catalog.read() as connection:
                yield from catalog_notes(connection, None, found.serial, found.followed_projects)

        yield Asking(snapshot, ask, notes)


def _print_answer(
    question: Question[Any], parameters: Parameters, asking: Asking, limit: int | None, output: Output
) -> None:
    """Print the rows, and afterwards what they are of, or why there are none."""
    found = asking.ask(question, parameters)
    is_of_one_name = not getattr(parameters, "prefix", False)
    columns = [one for one in question.columns if not (is_of_one_name and one == question.name_column)]
    context = _context(found)
    rows = ({**result, **context} for result in islice(found.results, limit))
    if print_rows(columns, rows, output):
        source = ", from the catalog" if found.version is None else ""
        print_message(f"as of serial {found.serial}{source}{among(found.followed_projects)}")
        return
    print_message(f"{question.nothing_found(parameters)} as of serial {found.serial}{among(found.followed_projects)}")
    for sentence in (*asking.notes(found), *question.hints(asking.snapshot, parameters)):
        print_message(sentence)


def _context(found: Found[Any]) -> dict[str, int]:
    """Return what JSON has of an answer next to its results: the epoch of the serial, for answers of the catalog, and
    how many projects are followed, unless all are."""
    epoch = None if isinstance(found, Stream) else found.epoch
    context = {"epoch": epoch, "followed_projects": found.followed_projects}
    return {name: value for name, value in context.items() if value is not None}


def _answer_lines(question: Question[Any], limit: int | None, at: "Moment | None", given: Mapping[str, Any]) -> None:
    """Answer each line of standard input by a line of JSON, with an `error` if it cannot be answered."""
    [name, *_] = question.takes
    with _opened(at, _REFRESH_EVERY_S) as asking:
        for line in _names(lines_of_input()):
            try:
                found = asking.ask(question, question.given(**{name.name: line}, **given))
            except (ParameterError, ExpectedError) as error:
                print_json_line({"name": line, "error": str(error)})
                continue
            results = list(islice(found.results, limit))
            of_answer = {"name": line, "version": found.version, "serial": found.serial, **_context(found)}
            print_json_line({**of_answer, "results": results})


def _names(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        if name := line.decode(errors="replace").strip():
            yield name
