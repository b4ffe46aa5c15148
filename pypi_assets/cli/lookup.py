"""`pypi-assets lookup ...`: queries the newest LevelDB versions, or the catalog for an earlier serial.

Each dataset's reader declares its sub-commands; here they only become options and output. Files of a version are not
compared with their hashes first: reading them through takes longer than an answer. Only answers from the catalog import
it: it takes five times as long to load as all the rest.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.followed_notes import VersionNotes, among, catalog_notes, not_searched
from pypi_assets.cli.moments import AT, catalog_at
from pypi_assets.cli.options import row_output
from pypi_assets.cli.questions import question_command
from pypi_assets.errors import NotAnsweredError
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.dataset_readers import lookup_commands
from pypi_assets.lookup.latest import open_if_local, open_latest
from pypi_assets.lookup.lookup_command import CatalogLookup, LookupCommand, LookupNameError, TransitiveLookup
from pypi_assets.lookup.reader import Reader
from pypi_assets.questions.question import all_questions
from pypi_assets.terminal import Output, lines_of_input, print_json_line, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.moments import Moment

_STANDARD_INPUT = "-"
_REFRESH_EVERY_S = 60.0
_PREFIX = click.option("--prefix", is_flag=True, help="All names that begin with NAME.")
_LIMIT = click.option("--limit", type=click.IntRange(1), help="Print no more results than this.")
_TRANSITIVE = click.option("--transitive", is_flag=True, help="Also the dependents of dependents, and so on.")
_DEPTH = click.option("--depth", type=click.IntRange(1), help="With --transitive: no more steps than this.")
_ALL = click.option("--all", "ever", is_flag=True, help="Also what was removed, with its times, from the catalog.")
_FILE = click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="This local file; can be repeated.",
)

_Query = Callable[[str], Answer[Any] | Stream[Any]]
_Hints = Callable[[str], Iterable[str]]
_Notes = Callable[[str, Answer[Any] | Stream[Any]], Iterable[str]]
"""Why scopes may have left the answer to a name empty."""


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command line requests."""

    names: tuple[str, ...]
    paths: tuple[Path | None, ...]  # of each name: the local file that it is of, if it is of one
    prefix: bool
    limit: int | None
    at: "Moment | None"
    ever: bool
    latest: bool
    transitive: bool
    depth: int | None
    output: Output

    @property
    def is_stream(self) -> bool:
        """Whether names come from standard input."""
        return self.names == (_STANDARD_INPUT,)


class _Lookups(click.Group):
    """The sub-commands that the readers of the registered datasets declare."""

    def list_commands(self, _: click.Context) -> list[str]:
        return [*(one.name for one in all_questions()), *(command.name for _, command in lookup_commands())]

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        for question in all_questions():
            if question.name == cmd_name:
                return question_command(question)
        for dataset, command in lookup_commands():
            if command.name == cmd_name:
                return _click_command(dataset, command)
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click resolves it; what is misspelled is compared with the names that the readers declare."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            names = self.list_commands(ctx)
            name = error.command_name
            unknown = click.NoSuchCommand(name, possibilities=names, ctx=ctx)
            if not unknown.possibilities:  # so it is rather what was to be looked up
                message = f"No such command {name!r}. Did you mean 'lookup module {name}'?"
                unknown = click.NoSuchCommand(name, message, ctx=ctx)
            raise unknown from None


@click.group("lookup", cls=_Lookups)
def lookup_group() -> None:
    """Query the newest LevelDB versions; for an earlier serial, the catalog.

    For the names of standard input, one a line, NAME is -; each answer is a line of JSON.
    """


def _click_command(dataset: Dataset, command: LookupCommand[Any]) -> click.Command:
    takes_many = command.name_of_file is not None

    def run(
        names: str | tuple[str, ...],
        output: Output,
        limit: int | None = None,
        prefix: bool = False,
        at: "Moment | None" = None,
        ever: bool = False,
        latest: bool = False,
        transitive: bool = False,
        depth: int | None = None,
        files: tuple[Path, ...] = (),
    ) -> None:
        given = names if isinstance(names, tuple) else (names,)
        names_of_files = _names_of(command, files)
        paths = (*(None for _ in given), *files)
        all_names = (*given, *names_of_files)
        request = _Request(all_names, paths, prefix, limit, at, ever, latest, transitive, depth, output)
        _check(request)
        try:
            _run(dataset, command, request)
        except LookupNameError as error:
            raise click.BadParameter(str(error)) from error

    options = (
        click.argument("names", metavar=command.argument, nargs=-1 if takes_many else 1),
        _FILE if takes_many else None,
        _PREFIX if command.prefix else None,
        _LIMIT,
        click.option("--latest", is_flag=True, help=command.latest_help) if command.latest_help else None,
        _TRANSITIVE if command.transitive else None,
        _DEPTH if command.transitive else None,
        AT if command.at_serial else None,
        _ALL if command.ever else None,
        row_output,
    )
    for option in reversed([option for option in options if option]):
        run = option(run)
    example = f"Example: pypi-assets lookup {command.name} {command.example}"
    return click.command(command.name, help=command.help, epilog=example)(run)


def _names_of(command: LookupCommand[Any], files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        if command.name_of_file:
            yield command.name_of_file(file)


def _check(request: _Request) -> None:
    """Raises UsageError and BadParameter for what does not go together."""
    if not request.names:
        raise click.UsageError("nothing is named: give NAME, --file, or - for names from standard input")
    if not all(name.strip() for name in request.names):
        raise click.BadParameter("NAME is empty")
    if _STANDARD_INPUT in request.names and not request.is_stream:
        raise click.UsageError("- for names from standard input goes with no other name")
    if request.is_stream and sys.stdin is None:
        raise click.UsageError("standard input is closed, so it has no names")
    if request.prefix and (request.is_stream or request.at is not None or request.ever):
        raise click.UsageError("--prefix goes neither with --at or --all nor with names from standard input")
    if request.transitive and (request.prefix or request.is_stream or request.at is not None):
        raise click.UsageError("--transitive goes neither with --prefix or --at nor with names from standard input")
    if request.depth is not None and not request.transitive:
        raise click.UsageError("--depth goes with --transitive")
    if request.is_stream and (request.output.as_csv or request.output.header):
        raise click.UsageError("names from standard input are answered by lines of JSON: without --csv and --header")
    if request.prefix and len(request.names) > 1:
        raise click.UsageError("--prefix goes with one name")


def _run(dataset: Dataset, command: LookupCommand[Any], request: _Request) -> None:
    if not request.is_stream and not request.prefix:
        for name in request.names:
            command.nothing_found(name)  # raises for what is not a name, before anything is opened
    from_catalog = _catalog_lookup(command, request)
    if from_catalog:
        with catalog_at(request.at) as (catalog, serial):
            newest = command.newest if request.latest else None
            answer = newest.at_serial if newest else from_catalog.answer
            query = partial(_answer_at, command, answer, catalog, serial)
            past_notes = partial(_past_notes, command, catalog)

            def past_hints(name: str) -> Iterator[str]:
                return from_catalog.hints(catalog, name) if from_catalog.hints else iter(())

            _print_answers(command, request, query, from_catalog, past_notes, past_hints)
        return
    refresh_every_s = _refresh_every_s(request)
    with ExitStack() as stack, open_latest(dataset.name, check_hashes=False, refresh_every_s=refresh_every_s) as reader:
        _report_skipped(reader)
        version_notes = VersionNotes(stack)

        def notes(name: str, answer: Answer[Any] | Stream[Any]) -> Iterable[str]:
            return version_notes(_project_of(command, name), answer.serial, answer.followed_projects)

        def hints(name: str) -> Iterable[str]:
            return command.hints(reader, name, open_if_local) if command.hints else ()

        if request.transitive and command.transitive:
            _print_transitive(command, command.transitive, request, reader, notes, hints)
        elif request.prefix:
            _print_prefix(command, request, reader, hints)
        else:
            newest_query: Callable[[Any, str], Answer[Any] | Stream[Any]] = command.answer
            if request.latest and command.newest:
                newest_query = command.newest.stream
            _print_answers(command, request, partial(newest_query, reader), command, notes, hints)


def _project_of(command: LookupCommand[Any], name: str) -> str | None:
    return command.project_of(name) if command.project_of else None


def _answer_at(
    command: LookupCommand[Any], answer: Callable[..., Answer[Any]], catalog: "Catalog", serial: int, name: str
) -> Answer[Any]:
    """The answer of the catalog, with its epoch. Raises NotAnsweredError where it begins at a later serial."""
    from pypi_assets.catalog.observed.followed import count_answered
    from pypi_assets.catalog.reports.answerable_serials import pinned_answer
    from pypi_assets.catalog.reports.project_following import require_answered

    with catalog.read() as connection:
        if project := _project_of(command, name):
            require_answered(connection, project, serial)
        followed = count_answered(connection, serial)
    found, epoch = pinned_answer(catalog, serial, partial(answer, catalog, serial, name))
    return replace(found, epoch=epoch, followed_projects=followed)


def _past_notes(
    command: LookupCommand[Any], catalog: "Catalog", name: str, answer: Answer[Any] | Stream[Any]
) -> Iterator[str]:
    with catalog.read() as connection:
        yield from catalog_notes(connection, _project_of(command, name), answer.serial, answer.followed_projects)


def _context(answer: Answer[Any] | Stream[Any]) -> dict[str, int]:
    """What JSON has of an answer, next to its results: the epoch of the serial, for answers of the catalog, and among
    how many projects it was searched, where not all are followed."""
    epoch = None if isinstance(answer, Stream) else answer.epoch
    context = {"epoch": epoch, "followed_projects": answer.followed_projects}
    return {name: value for name, value in context.items() if value is not None}


def _with_context(answer: Answer[Any] | Stream[Any]) -> Iterable[Any]:
    """The results, each with the context of the answer."""
    context = _context(answer)
    return ({**result, **context} for result in answer.results) if context else answer.results


def _catalog_lookup(command: LookupCommand[Any], request: _Request) -> CatalogLookup | None:
    if request.ever:
        return command.ever
    return None if request.at is None else command.at_serial


def _refresh_every_s(request: _Request) -> float | None:
    """How often to look for a newer version: a program that sends names may run for days."""
    return _REFRESH_EVERY_S if request.is_stream else None


def _report_skipped(reader: Reader) -> None:
    for skipped in reader.skipped:
        print_message(f"not used: {skipped}")


def _print_prefix(command: LookupCommand[Any], request: _Request, reader: Reader, hints: _Hints) -> None:
    if command.prefix is None:
        raise LookupError(f"lookup {command.name} has no --prefix")
    [prefix] = request.names
    stream = command.newest.prefix if request.latest and command.newest else command.prefix.stream
    found = stream(reader, prefix)
    results = islice(_reduced(command, request, _with_context(found)), request.limit)
    if print_rows(command.prefix.columns, results, request.output, beneath=command.beneath):
        print_message(f"as of serial {found.serial}{among(found.followed_projects)}")
    else:
        print_message(f"{command.prefix.nothing_found(prefix)}{_as_of(command, request, found)}")
        _print_hints(not_searched(found.followed_projects))
        with suppress(LookupNameError):  # the beginning of a name need not be one
            _print_hints(hints(prefix))


def _print_transitive(
    command: LookupCommand[Any],
    lookup: TransitiveLookup[Any],
    request: _Request,
    reader: Reader,
    notes: _Notes,
    hints: _Hints,
) -> None:
    """Prints what a name leads to as it is found, and afterwards how much that was."""
    [name] = request.names
    began = time.monotonic()
    stream = command.newest.transitive if request.latest and command.newest else lookup.stream
    found = stream(reader, name, request.depth)
    depths: Counter[int] = Counter()

    def counted() -> Iterator[Any]:
        for result in islice(_with_context(found), request.limit):
            depths[result["depth"]] += 1
            yield result

    if print_rows(lookup.columns, counted(), request.output):
        steps = ", ".join(f"{count} at depth {depth}" for depth, count in depths.items())
        print_message(
            f"{depths.total()} projects: {steps}; in {time.monotonic() - began:.1f} s, as of serial {found.serial}"
            f"{among(found.followed_projects)}"
        )
    else:
        print_message(f"{command.nothing_found(name)}{_as_of(command, request, found)}")
        _print_hints(notes(name, found))
        _print_hints(hints(name))


def _as_of(command: LookupCommand[Any], request: _Request, answer: Answer[Any] | Stream[Any]) -> str:
    """The end of a message that nothing was found."""
    in_newest = " in its newest version" if request.latest and command.newest else ""
    return f"{in_newest} as of serial {answer.serial}{among(answer.followed_projects)}"


def _reduced(command: LookupCommand[Any], request: _Request, results: Iterable[Any]) -> Iterator[Any]:
    """With `--latest`, results with the newest versions alone."""
    return command.latest(results) if request.latest and command.latest else iter(results)


def _print_answers(
    command: LookupCommand[Any],
    request: _Request,
    query: _Query,
    shown: LookupCommand[Any] | CatalogLookup,
    notes: _Notes,
    hints: _Hints,
) -> None:
    if request.is_stream:
        _print_stream(command, request, query, notes)
        return
    answers = [query(name) for name in request.names]
    results = _reduced(command, request, (result for answer in answers for result in _with_context(answer)))
    if isinstance(shown, CatalogLookup) and shown.cells and not request.output.as_json:
        results = map(shown.cells, results)
    name_column = command.name_column
    columns = (name_column, *shown.columns) if name_column and len(answers) > 1 else shown.columns
    found = print_rows(columns, islice(results, request.limit), request.output, beneath=command.beneath)
    for name, path, answer in zip(request.names, request.paths, answers, strict=True):
        if not (found if isinstance(answer, Stream) else answer.results):
            source = "" if path is None else f"{path}: "
            print_message(f"{source}{shown.nothing_found(name)}{_as_of(command, request, answer)}")
            _print_hints(notes(name, answer))
            _print_hints(hints(name))
    if found:
        last = answers[-1]
        source = ", from the catalog" if last.version is None else ""
        print_message(f"as of serial {last.serial}{source}{among(last.followed_projects)}")


def _print_hints(hints: Iterable[str]) -> None:
    for hint in hints:
        print_message(hint)


def _print_stream(command: LookupCommand[Any], request: _Request, query: _Query, notes: _Notes) -> None:
    """Answers each line of standard input by a line; for what is not a name it has an `error` instead.

    Where there is no answer since the project is not followed, it has that as a `note`.
    """
    for line in lines_of_input():
        if name := line.decode(errors="replace").strip():
            try:
                found = query(name)
            except (LookupNameError, NotAnsweredError) as error:
                print_json_line({"name": name, "error": str(error)})
                continue
            results = list(islice(_reduced(command, request, found.results), request.limit))
            of_answer = {"name": name, "version": found.version, "serial": found.serial, **_context(found)}
            note = [] if results or command.project_of is None else list(notes(name, found))
            print_json_line({**of_answer, **({"note": note[0]} if note else {}), "results": results})
