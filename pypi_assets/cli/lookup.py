"""The commands `pypi-assets lookup ...`, generated from questions: their options, rows and messages.

`questions/` declares the questions. Lookups do not check the hashes of LevelDB files first, since reading whole files
takes longer than an answer. The catalog is imported only for answers about an earlier serial, since that import takes
five times as long as all others together.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from pypi_assets.cli.followed_notes import VersionNotes, among, catalog_notes
from pypi_assets.cli.options import AT, catalog_at, row_output
from pypi_assets.errors import ExpectedError
from pypi_assets.lookup.answers import LookupNameError, Stream
from pypi_assets.questions.question import (
    MODULES,
    TOP_LEVEL,
    Parameter,
    ParameterError,
    Parameters,
    Question,
    find_question,
)
from pypi_assets.questions.snapshot import Found, Snapshot
from pypi_assets.terminal import Output, by_depth, counted, lines_of_input, print_json_line, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.lookup.project_answers import ProjectFacts

_STANDARD_INPUT = "-"
_REFRESH_EVERY_S = 60.0
LIMIT = click.option("--limit", type=click.IntRange(1), help="Print at most this many results.")
_FILE = click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use this local file; repeatable.",
)


@dataclass(frozen=True, slots=True)
class Asking:
    """An open snapshot.

    `answered` calls a function and returns its result, with the epoch if the result has one. `notes` yields reasons why
    the answer about a project that is not followed may be empty.
    """

    snapshot: Snapshot
    answered: Callable[[Callable[[], Any]], Any]
    notes: Callable[[str | None, Found[Any]], Iterator[str]]

    def ask(self, question: Question[Any], parameters: Parameters, solver: Any = None) -> Found[Any]:
        """Return the answer to a question."""
        answer = partial(question.answer, self.snapshot, parameters)
        if solver is not None and question.answer_with is not None:
            answer = partial(question.answer_with, solver, self.snapshot, parameters)
        found: Found[Any] = self.answered(answer)
        return found


@dataclass(frozen=True, slots=True)
class _AskedSubject:
    """The parameters for one subject. `file` is the local file that was given as the subject, if any."""

    parameters: Parameters
    file: Path | None = None


def command_of(name: str) -> click.Command:
    """Return the command of the question with this name."""
    return question_command(find_question(name))


def question_command(question: Question[Any]) -> click.Command:

    def run(names: str | tuple[str, ...], **options: Any) -> None:
        ask(question, names if isinstance(names, tuple) else (names,), **options)

    options: list[Callable[..., Any]] = [
        click.argument("names", metavar=question.argument, nargs=1 if question.name_of_file is None else -1),
        *(() if question.name_of_file is None else (_FILE,)),
        parameter_options(question),
        LIMIT,
        AT,
        row_output,
    ]
    for option in reversed(options):
        run = option(run)
    help_text = f"{question.summary}.\n\n{question.description}".strip()
    example = f"Example: pypi-assets {question.command} {question.example}"
    return click.command(question.name, help=help_text, short_help=f"{question.summary}.", epilog=example)(run)


def parameter_options(question: Question[Any], without: Collection[str] = ()) -> Callable[..., Any]:
    """Return a decorator with an option for each parameter that is neither in the argument nor in `without`."""
    names = {question.takes[0].name, *question.in_argument, *without}
    options = [_option(parameter) for parameter in question.takes if parameter.name not in names]

    def decorate(run: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            run = option(run)
        return run

    return decorate


def ask(
    question: Question[Any],
    texts: Sequence[str],
    *,
    output: Output,
    limit: int | None,
    at: "Moment | None",
    files: Sequence[Path] = (),
    solver: Any = None,
    **given: Any,
) -> None:
    """Print the answers about the subjects in `texts` and about local files.

    `given` has the parameters besides the subject. `solver` resolves for questions that have `answer_with`.
    """
    if reads_standard_input(question, texts, files):
        if files:
            raise click.UsageError("- (names from standard input) excludes --file")
        _check_standard_input(question, output, given)
        _answer_lines(question, limit, at, given)
        return
    if len(texts) + len(files) > 1 and given.get("prefix"):
        raise click.UsageError("--prefix works only with a single name")
    asked = [_AskedSubject(parsed(question, text, given)) for text in texts]
    if question.name_of_file is not None:
        asked += [_AskedSubject(parsed(question, question.name_of_file(file), given), file) for file in files]
    is_of_catalog = at is not None or any(question.needs_catalog(one.parameters) for one in asked)
    with opened_catalog(at) if is_of_catalog else opened_versions() as asking:
        answers = [asking.ask(question, one.parameters, solver) for one in asked]
        _print_answers(question, asked, answers, asking, limit, output)
        if solver is not None:
            solver.print_summary()


def reads_standard_input(question: Question[Any], texts: Sequence[str], files: Sequence[Path]) -> bool:
    """Return whether names come from standard input. Raises UsageError for no names, and for names besides `-`."""
    if not texts and not files:
        raise click.UsageError(
            f"nothing to look up: pass {question.argument.strip('[].')}, --file, or - for names from standard input"
        )
    if _STANDARD_INPUT in texts and len(texts) > 1:
        raise click.UsageError("- (names from standard input) excludes other names")
    return _STANDARD_INPUT in texts


def _option(parameter: Parameter) -> Callable[..., Any]:
    text = f"{parameter.accepts.text[0].upper()}{parameter.accepts.text[1:]}."
    option = f"--{parameter.name.replace('_', '-')}"
    if parameter.type is bool:
        return click.option(option, parameter.name, is_flag=True, help=text)
    kinds = (parameter.type, *get_args(parameter.type))
    kind = click.IntRange(parameter.accepts.ge, parameter.accepts.le) if int in kinds else click.STRING
    return click.option(option, parameter.name, type=kind, default=parameter.default, help=text)


def parsed(question: Question[Any], text: str, given: Mapping[str, Any]) -> Parameters:
    """Return the parameters for a name. Raises BadParameter or UsageError before any data is opened."""
    [asked_about, *_] = question.takes
    if not text.strip():
        raise click.BadParameter(f"{question.argument} is empty: pass {asked_about.accepts.text}")
    try:
        return _parameters(question, text, given)
    except LookupNameError as error:
        raise click.BadParameter(str(error), param_hint=question.argument) from error
    except ParameterError as error:
        if error.name != asked_about.name and error.name not in question.in_argument:
            raise click.UsageError(f"--{error}") from error
        missing = f"{text!r:.100} has no {error.name}: pass {question.argument}"
        raise click.BadParameter(
            missing if error.value is None else str(error), param_hint=question.argument
        ) from error


def _parameters(question: Question[Any], text: str, given: Mapping[str, Any]) -> Parameters:
    """Return the parameters for a name. Raises LookupNameError and ParameterError."""
    named = {question.takes[0].name: text} if question.split is None else question.split(text)
    found: Parameters = question.given(**named, **given)
    return found


def _check_standard_input(question: Question[Any], output: Output, given: Mapping[str, Any]) -> None:
    """Raise UsageError for options that do not work with names from standard input."""
    if sys.stdin is None:
        raise click.UsageError("standard input is closed, so it has no names")
    if output.as_csv or output.header:
        raise click.UsageError("answers to names from standard input are lines of JSON: omit --csv and --header")
    if flag := "prefix" if given.get("prefix") else question.long_by(_sample(question, given)):
        raise click.UsageError(f"--{flag} does not work with names from standard input")


def _sample(question: Question[Any], given: Mapping[str, Any]) -> Parameters:
    """Return parameters with an empty name, to ask the question about the other parameters."""
    found: Parameters = question.parameters(
        **dict.fromkeys((question.takes[0].name, *question.in_argument), ""), **given
    )
    return found


def opened(at: "Moment | None") -> AbstractContextManager[Asking]:
    """Open the newest LevelDB versions, or the catalog as of a moment."""
    return opened_versions() if at is None else opened_catalog(at)


@contextmanager
def opened_versions(refresh_every_s: float | None = None) -> Iterator[Asking]:
    """Open the newest LevelDB versions. Each dataset is opened when a question needs it."""
    from pypi_assets.lookup.published_sets import NeededDatasets, PublishedSets
    from pypi_assets.questions.published_snapshot import PublishedSnapshot
    from pypi_assets.setting_sources import load_locations
    from pypi_assets.storage.store import open_storage

    locations = load_locations()
    sets = PublishedSets(open_storage(locations.resolved_storage_url, read_only=True), locations.leveldbs_dir)
    with ExitStack() as stack:
        datasets = stack.enter_context(closing(NeededDatasets(sets, refresh_every_s, print_message)))
        notes = VersionNotes(stack)

        def facts(project: str) -> "ProjectFacts | None":
            from pypi_assets.lookup.depgraph_reader import DepgraphReader
            from pypi_assets.lookup.project_answers import known_facts

            catalog = notes.catalog()
            return None if catalog is None else known_facts(catalog, datasets.reader(DepgraphReader).serial, project)

        yield Asking(
            PublishedSnapshot(datasets.reader, datasets.opened, facts),
            datasets.answered,
            lambda project, found: notes(project, found.serial, found.followed_projects),
        )


@contextmanager
def opened_catalog(at: "Moment | None") -> Iterator[Asking]:
    """Open the catalog as of a moment, or as of its complete serial."""
    from pypi_assets.catalog.reports.moments import pinned_answer
    from pypi_assets.questions.catalog_snapshot import CatalogSnapshot

    with catalog_at(at) as (catalog, serial):
        snapshot = CatalogSnapshot(catalog, serial, is_newest=at is None)

        def answered(make: Callable[[], Any]) -> Any:
            found, epoch = pinned_answer(catalog, serial, make)
            return found if isinstance(found, Stream) else replace(found, epoch=epoch)

        def notes(project: str | None, found: Found[Any]) -> Iterator[str]:
            with catalog.read() as connection:
                yield from catalog_notes(connection, project, found.serial, found.followed_projects)

        yield Asking(snapshot, answered, notes)


def _print_answers(
    question: Question[Any],
    asked: Sequence[_AskedSubject],
    answers: Sequence[Found[Any]],
    asking: Asking,
    limit: int | None,
    output: Output,
) -> None:
    """Print the rows, and then their serial. Without rows, print the reason."""
    began, depths = time.monotonic(), Counter[int]()
    counts = [0] * len(answers)
    as_rows = None if output.as_json else question.rows
    fields = question.result.__annotations__

    def rows() -> Iterator[Mapping[str, Any]]:
        for number, answer in enumerate(answers):
            context = {name: value for name, value in context_of(answer).items() if name not in fields}
            for result in answer.results:
                counts[number] += 1
                depths[result.get("depth", 0)] += 1
                if as_rows is not None:
                    yield from as_rows(result)
                else:
                    yield {**result, **context} if context else result

    first = asked[0].parameters
    has_names = len(answers) > 1 or getattr(first, "prefix", False)
    columns = [one for one in question.columns(first) if has_names or one != question.name_column]
    found = print_rows(columns, islice(rows(), limit), output, beneath=question.beneath)
    for one, answer, count in zip(asked, answers, counts, strict=True):
        sentences: list[str] = []
        if not count and not (limit and found >= limit):
            sentences += _nothing(question, one, answer, asking)
        sentences += question.remarks(asking.snapshot, one.parameters, answer)
        for sentence in dict.fromkeys(sentences):
            print_message(sentence)
    if found:
        last = answers[-1]
        source = ", from the catalog" if last.version is None else ""
        steps = ""
        if 0 not in depths:
            steps = f"{counted(depths.total(), 'project')}: {by_depth(depths)}; in {time.monotonic() - began:.1f} s, "
        print_message(f"{steps}as of serial {last.serial}{source}{among(last.followed_projects)}")


def _nothing(question: Question[Any], asked: _AskedSubject, answer: Found[Any], asking: Asking) -> Iterator[str]:
    """Yield sentences that explain an empty answer."""
    parameters = asked.parameters
    source = "" if asked.file is None else f"{asked.file}: "
    nothing = question.nothing_found(parameters)
    from_catalog = ", from the catalog" if answer.version is None else ""
    yield f"{source}{nothing} as of serial {answer.serial}{from_catalog}{among(answer.followed_projects)}"
    project = None if question.project_of is None else question.project_of(parameters)
    yield from asking.notes(project, answer)
    yield from question.hints(asking.snapshot, parameters)


def context_of(found: Found[Any]) -> dict[str, int]:
    """Return the fields that JSON adds to each result of an answer.

    These are the epoch, for answers from the catalog, and the number of followed projects, unless all are followed.
    """
    epoch = None if isinstance(found, Stream) else found.epoch
    context = {"epoch": epoch, "followed_projects": found.followed_projects}
    return {name: value for name, value in context.items() if value is not None}


def _answer_lines(question: Question[Any], limit: int | None, at: "Moment | None", given: Mapping[str, Any]) -> None:
    """Answer each line of standard input by a line of JSON. The line has an `error` if it cannot be answered.

    If the answer is empty because the project is not followed, the line has a `note`. The input may last for days, so
    newer versions are opened as they are published.
    """
    is_of_catalog = at is not None or question.needs_catalog(_sample(question, given))
    with opened_catalog(at) if is_of_catalog else opened_versions(_REFRESH_EVERY_S) as asking:
        for line in names_of_input():
            try:
                parameters = _parameters(question, line, given)
                found = asking.ask(question, parameters)
            except (ExpectedError, LookupNameError) as error:
                print_json_line({"name": line, "error": str(error)})
                continue
            results = list(islice(found.results, limit))
            project = None if question.project_of is None else question.project_of(parameters)
            note = [] if results or project is None else list(asking.notes(project, found))
            fields = {"name": line, "version": found.version, "serial": found.serial, **context_of(found)}
            print_json_line({**fields, **({"note": note[0]} if note else {}), "results": results})


def names_of_input() -> Iterator[str]:
    for line in lines_of_input():
        if name := line.decode(errors="replace").strip():
            yield name


_WITH_OWN_OPTIONS = ("files", "breaks", "collisions", "confusion")
"""Commands that have more options than the question declares. They are in `special_lookups.py`."""


class _Lookups(click.Group):
    """The commands of the questions. Only the called command's module is imported."""

    def list_commands(self, _: click.Context) -> list[str]:
        names = dict.fromkeys((*MODULES, *_WITH_OWN_OPTIONS))
        return [name for name in names if name not in TOP_LEVEL]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _WITH_OWN_OPTIONS:
            found: click.Command = getattr(import_module("pypi_assets.cli.special_lookups"), f"{cmd_name}_command")
            return found
        return command_of(cmd_name) if cmd_name in self.list_commands(ctx) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does. An unknown command that resembles no other is probably a module to look up."""
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
    """Query the newest LevelDB versions, or the catalog at an earlier serial.

    Use - as NAME to read names from standard input, one a line; each answer is then a line of JSON.
    """
