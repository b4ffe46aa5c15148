"""`pypi-assets lookup ...`: a command for each question.

Questions are declared in `questions/`; this module renders them as options, rows and messages. The hashes of LevelDB
files are not checked first: reading the files takes longer than an answer. The catalog is imported only for answers
about an earlier serial, since the import takes five times as long as all others.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from pypi_assets.cli.followed_notes import VersionNotes, among, catalog_notes
from pypi_assets.cli.moments import AT, catalog_at
from pypi_assets.cli.options import row_output
from pypi_assets.errors import ExpectedError
from pypi_assets.lookup.answers import Stream
from pypi_assets.lookup.latest import open_if_local, open_latest
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.question import MODULES, Parameter, ParameterError, Parameters, Question, find_question
from pypi_assets.questions.snapshot import Found, Snapshot
from pypi_assets.terminal import Output, lines_of_input, print_json_line, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.lookup.reader import Reader

_STANDARD_INPUT = "-"
_REFRESH_EVERY_S = 60.0
_LIMIT = click.option("--limit", type=click.IntRange(1), help="Print no more results than this.")
_FILE = click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="This local file; can be repeated.",
)


class _Lookups(click.Group):
    """The commands of the questions. Only the module of the one that is run is imported."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        return _question_command(find_question(cmd_name)) if cmd_name in MODULES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does. An unknown command without a similar name is probably a module to look up."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            names = self.list_commands(ctx)
            name = error.command_name
            unknown = click.NoSuchCommand(name, possibilities=names, ctx=ctx)
            if not unknown.possibilities:
                message = f"No such command {name!r}. Did you mean 'lookup module {name}'?"
                unknown = click.NoSuchCommand(name, message, ctx=ctx)
            raise unknown from None


@click.group("lookup", cls=_Lookups)
def lookup_group() -> None:
    """Query the newest LevelDB versions; for an earlier serial, the catalog.

    For the names of standard input, one a line, NAME is -; each answer is a line of JSON.
    """


@dataclass(frozen=True, slots=True)
class _Asking:
    """An open snapshot.

    `ask` returns an answer with its epoch. `notes` yields the reasons why an unfollowed project may be missing.
    """

    snapshot: Snapshot
    ask: Callable[[Question[Any], Parameters], Found[Any]]
    notes: Callable[[str | None, Found[Any]], Iterator[str]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parameters for one subject; `file` is the local file that it stands for."""

    parameters: Parameters
    file: Path | None = None


def _question_command(question: Question[Any]) -> click.Command:
    """Return the command of a question."""

    def run(
        names: str | tuple[str, ...],
        output: Output,
        limit: int | None,
        at: "Moment | None",
        files: tuple[Path, ...] = (),
        **given: Any,
    ) -> None:
        texts = names if isinstance(names, tuple) else (names,)
        if not texts and not files:
            raise click.UsageError(
                f"nothing is named: give {question.argument.strip('[].')}, --file, or - for names from standard input"
            )
        if texts == (_STANDARD_INPUT,) and not files:
            _check_standard_input(output, given)
            _answer_lines(question, limit, at, given)
            return
        if _STANDARD_INPUT in texts:
            raise click.UsageError("- for names from standard input goes with no other name")
        if len(texts) + len(files) > 1 and given.get("prefix"):
            raise click.UsageError("--prefix goes with one name")
        asked = [_Asked(_parse(question, text, given)) for text in texts]
        if question.name_of_file is not None:
            asked += [_Asked(_parse(question, question.name_of_file(file), given), file) for file in files]
        is_of_catalog = at is not None or any(question.needs_catalog(one.parameters) for one in asked)
        with _opened_catalog(at) if is_of_catalog else _opened_versions(None) as asking:
            _print_answers(question, asked, asking, limit, output)

    options: list[Callable[..., Any] | None] = [
        click.argument("names", metavar=question.argument, nargs=1 if question.name_of_file is None else -1),
        None if question.name_of_file is None else _FILE,
        *(_option(parameter) for parameter in question.takes[1:]),
        _LIMIT,
        AT,
        row_output,
    ]
    for option in reversed([one for one in options if one is not None]):
        run = option(run)
    text = f"{question.summary}.\n\n{question.description}".strip()
    example = f"Example: pypi-assets lookup {question.name} {question.example}"
    return click.command(question.name, help=text, short_help=f"{question.summary}.", epilog=example)(run)


def _option(parameter: Parameter) -> Callable[..., Any]:
    text = f"{parameter.accepts.text[0].upper()}{parameter.accepts.text[1:]}."
    option = f"--{parameter.name.replace('_', '-')}"
    if parameter.type is bool:
        return click.option(option, parameter.name, is_flag=True, help=text)
    if int in (parameter.type, *get_args(parameter.type)):
        limits = click.IntRange(parameter.accepts.ge, parameter.accepts.le)
        return click.option(option, parameter.name, type=limits, default=parameter.default, help=text)
    raise TypeError(f"{parameter.name} is a {parameter.type}, of which no option is made")


def _parse(question: Question[Any], text: str, given: Mapping[str, Any]) -> Parameters:
    """Return the parameters for a name. Raises BadParameter and UsageError, before anything is opened."""
    [asked_about, *_] = question.takes
    name = asked_about.name
    if not text.strip():
        raise click.BadParameter(f"{question.argument} is empty: give {asked_about.accepts.text}")
    try:
        found: Parameters = question.given(**{name: text}, **given)
    except ParameterError as error:
        if error.name != name:
            raise click.UsageError(f"--{error}") from error
        raise click.BadParameter(str(error), param_hint=question.argument) from error
    return found


def _check_standard_input(output: Output, given: Mapping[str, Any]) -> None:
    """Raise UsageError for options that exclude names from standard input."""
    if sys.stdin is None:
        raise click.UsageError("standard input is closed, so it has no names")
    if output.as_csv or output.header:
        raise click.UsageError("names from standard input are answered by lines of JSON: without --csv and --header")
    for flag in ("prefix", "transitive"):
        if given.get(flag):
            raise click.UsageError(f"--{flag} does not go with names from standard input")


@contextmanager
def _opened_versions(refresh_every_s: float | None) -> Iterator[_Asking]:
    """Open the newest LevelDB versions. Each dataset is opened when a question needs it."""
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
        yield _Asking(
            snapshot,
            lambda question, parameters: question.answer(snapshot, parameters, None),
            lambda project, found: notes(project, found.serial, found.followed_projects),
        )


@contextmanager
def _opened_catalog(at: "Moment | None") -> Iterator[_Asking]:
    """Open the catalog as of a moment, or as of its complete serial."""
    from pypi_assets.catalog.reports.answerable_serials import pinned_answer
    from pypi_assets.questions.catalog_snapshot import CatalogSnapshot

    with catalog_at(at) as (catalog, serial):
        snapshot = CatalogSnapshot(catalog, serial)

        def ask(question: Question[Any], parameters: Parameters) -> Found[Any]:
            found, epoch = pinned_answer(catalog, serial, partial(question.answer, snapshot, parameters, None))
            return found if isinstance(found, Stream) else replace(found, epoch=epoch)

        def notes(project: str | None, found: Found[Any]) -> Iterator[str]:
            with catalog.read() as connection:
                yield from catalog_notes(connection, project, found.serial, found.followed_projects)

        yield _Asking(snapshot, ask, notes)


def _print_answers(
    question: Question[Any], asked: Sequence[_Asked], asking: _Asking, limit: int | None, output: Output
) -> None:
    """Print the rows, then their serial, or the reason why there are none."""
    began, depths = time.monotonic(), Counter[int]()
    answers = [asking.ask(question, one.parameters) for one in asked]
    counts = [0] * len(answers)
    as_row = question.row if question.row and not output.as_json else dict

    def rows() -> Iterator[Mapping[str, Any]]:
        for number, answer in enumerate(answers):
            context = _context(answer)
            for result in answer.results:
                counts[number] += 1
                depths[result.get("depth", 0)] += 1
                yield {**as_row(result), **context}

    first = asked[0].parameters
    has_names = len(answers) > 1 or getattr(first, "prefix", False)
    columns = [one for one in question.columns(first) if has_names or one != question.name_column]
    found = print_rows(columns, islice(rows(), limit), output, beneath=question.beneath)
    for one, answer, count in zip(asked, answers, counts, strict=True):
        if not count and not (limit and found >= limit):
            _print_nothing(question, one, answer, asking)
    if found:
        last = answers[-1]
        source = ", from the catalog" if last.version is None else ""
        steps = ""
        if getattr(first, "transitive", False):
            by_depth = ", ".join(f"{count} at depth {depth}" for depth, count in depths.items())
            steps = f"{depths.total()} projects: {by_depth}; in {time.monotonic() - began:.1f} s, "
        print_message(f"{steps}as of serial {last.serial}{source}{among(last.followed_projects)}")


def _print_nothing(question: Question[Any], asked: _Asked, answer: Found[Any], asking: _Asking) -> None:
    parameters = asked.parameters
    source = "" if asked.file is None else f"{asked.file}: "
    nothing = question.nothing_found(parameters)
    print_message(f"{source}{nothing} as of serial {answer.serial}{among(answer.followed_projects)}")
    project = None if question.project_of is None else question.project_of(parameters)
    for sentence in (*asking.notes(project, answer), *question.hints(asking.snapshot, parameters)):
        print_message(sentence)


def _context(found: Found[Any]) -> dict[str, int]:
    """Return what JSON has of an answer next to its results: the epoch of the serial, for answers of the catalog, and
    how many projects are followed, unless all are."""
    epoch = None if isinstance(found, Stream) else found.epoch
    context = {"epoch": epoch, "followed_projects": found.followed_projects}
    return {name: value for name, value in context.items() if value is not None}


def _answer_lines(question: Question[Any], limit: int | None, at: "Moment | None", given: Mapping[str, Any]) -> None:
    """Answer each line of standard input by a line of JSON, with an `error` if it cannot be answered.

    If there is no answer since the project is not followed, it has that as a `note`. A program that sends names may run
    for days, so newer versions are looked for.
    """
    name = question.takes[0].name
    sample = question.parameters(**{name: ""}, **given)
    is_of_catalog = at is not None or question.needs_catalog(sample)
    with _opened_catalog(at) if is_of_catalog else _opened_versions(_REFRESH_EVERY_S) as asking:
        for line in _names(lines_of_input()):
            try:
                parameters = question.given(**{name: line}, **given)
                found = asking.ask(question, parameters)
            except ExpectedError as error:
                print_json_line({"name": line, "error": str(error)})
                continue
            results = list(islice(found.results, limit))
            project = None if question.project_of is None else question.project_of(parameters)
            note = [] if results or project is None else list(asking.notes(project, found))
            of_answer = {"name": line, "version": found.version, "serial": found.serial, **_context(found)}
            print_json_line({**of_answer, **({"note": note[0]} if note else {}), "results": results})


def _names(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        if name := line.decode(errors="replace").strip():
            yield name
