"""The command `owners`, which ranks the projects that provide imports."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.followed_notes import among, not_searched
from pypi_assets.cli.lookup import context_of, names_of_input, opened, parsed, reads_standard_input
from pypi_assets.cli.options import AT, command, row_output
from pypi_assets.questions.owners import OwnersParameters, owners_of, rows
from pypi_assets.questions.question import find_question
from pypi_assets.terminal import Output, counted, print_json_rows, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.lookup.import_owners import ImportOwners
    from pypi_assets.lookup.source_imports import SourceImports

_SHOWN = 5
_QUESTION = find_question("owners")


@command("owners", _QUESTION.example)
@click.argument("names", metavar=_QUESTION.argument, nargs=-1)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Look up the imports of this source file, or of all source files in this folder; repeatable.",
)
@AT
@click.option(
    "--limit",
    type=click.IntRange(1),
    help=f"Print at most this many candidates per import; default: {_SHOWN}, JSON: all.",
)
@row_output
def owners_command(
    names: tuple[str, ...], files: tuple[Path, ...], at: "Moment | None", limit: int | None, output: Output
) -> None:
    """Rank the projects that provide imports, with the reasons.

    NAME is a module as in an import statement. For a name within a module, such as a class, its module is looked up.
    With -, names are read from standard input, one a line. For source files, imports of the standard library and of the
    files' own modules are skipped. Files that are not Python are reported, and the others are read.
    """
    from pypi_assets.lookup.source_imports import owners_of_modules

    given = _names(names, files)
    imported = [_imports(file) for file in files]
    wanted = [*given, *(name for one in imported for name in one.names())]
    shown = _SHOWN if limit is None else limit
    most = limit if output.as_json else shown + 1
    with opened(at) as asking:
        answer = asking.answered(lambda: owners_of(asking.snapshot, wanted, most))
    answers = list(answer.results)
    found, file_answers = answers[: len(given)], answers[len(given) :]
    for one in imported:
        found += owners_of_modules(one, file_answers)
    found = list({one["import"]: one for one in found}.values()) if files else found
    if output.as_json:
        print_json_rows({**one, **context_of(answer)} for one in found)
    else:
        first = [{**one, "candidates": one["candidates"][:shown]} for one in found]
        print_rows(_QUESTION.columns(OwnersParameters("")), (row for one in first for row in rows(one)), output)
        _print_notes(found, shown)
    source = ", from the catalog" if answer.version is None else ""
    followed = answer.followed_projects
    if any(one["module"] is None for one in found):
        for note in not_searched(followed):
            print_message(note)
    if found:
        print_message(f"as of serial {answer.serial}{source}{among(followed)}")


def _imports(file: Path) -> "SourceImports":
    """Return the imports of a file or folder, and report files that cannot be read."""
    from pypi_assets.lookup.source_imports import imports_of

    found = imports_of(file)
    for left_out, reason in found.left_out:
        print_message(f"{left_out}: {reason}")
    if not found.files and not found.left_out:
        print_message(f"{file} has no source files")
    elif found.files and not found.modules:
        print_message(f"{file} has no imports of other projects")
    return found


def _names(names: Sequence[str], files: Sequence[Path]) -> list[str]:
    if reads_standard_input(_QUESTION, names, files):
        return list(names_of_input())
    for name in names:
        parsed(_QUESTION, name, {})
    return list(names)


def _print_notes(found: "Sequence[ImportOwners]", most: int) -> None:
    """Print notes on candidates that the table omits, and on imports that have no row."""
    for one in found:
        if one["module"] is None:
            print_message(f"no project provides {one['import']}, or a package that contains it")
        elif len(one["candidates"]) > most:
            print_message(f"{one['import']} has more candidates than {counted(most, 'row')}: pass a greater --limit")
