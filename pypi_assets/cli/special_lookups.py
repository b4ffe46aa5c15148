"""The commands of `lookup` that have more options than their question declares, or that compare several indexes."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.export import LOCK_FILE, environment_options, locked_answer, print_remarks, print_serial
from pypi_assets.cli.followed_notes import among
from pypi_assets.cli.lookup import LIMIT, ask, parameter_options
from pypi_assets.cli.options import AT, JSON, catalog_at, command, row_output
from pypi_assets.cli.resolve_options import Solver, solver_options
from pypi_assets.questions.breaks import SOLVING
from pypi_assets.questions.files import COLUMNS
from pypi_assets.questions.question import find_question
from pypi_assets.terminal import Output, counted, print_json, print_json_rows, print_message, print_rows, print_table
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.confusion import Confusion, OpenIndexes
    from pypi_assets.questions.locks import LockedAnswer

_FILES, _BREAKS = find_question("files"), find_question("breaks")
_COLLISION_COLUMNS = ("modules", "distributions", "pip")
_CONFUSION_COLUMNS = ("kind", "name", "index", "newest", "since", "since_serial", "first", "taken_by")


@command("files", _FILES.example, within="lookup")
@click.argument("project", required=False)
@LIMIT
@AT
@row_output
def files_command(project: str | None, limit: int | None, at: "Moment | None", output: Output) -> None:
    """List the live distributions.

    Without PROJECT, list the distributions of all projects. With -, read names of projects from standard input, one a
    line.
    """
    if project is None:
        _list_all(limit, at, output)
    else:
        ask(_FILES, (project,), output=output, limit=limit, at=at)


def _list_all(limit: int | None, at: "Moment | None", output: Output) -> None:
    """Print the live distributions of all projects, as they are read."""
    from pypi_assets.catalog.observed.followed import count_answered
    from pypi_assets.catalog.reports.live_files import live_files

    with catalog_at(at) as (catalog, serial):
        with catalog.read() as connection:
            followed = among(count_answered(connection, serial))
        with closing(live_files(catalog, serial)) as files:
            count = print_rows(COLUMNS, (asdict(file) for file in islice(files, limit)), output)
    nothing = "" if count else "no distribution is live "
    print_message(f"{nothing}as of serial {serial}, from the catalog{followed}")


@command("breaks", _BREAKS.example, within="lookup")
@click.argument("requirement", metavar=_BREAKS.argument)
@parameter_options(_BREAKS, without=SOLVING)
@LIMIT
@AT
@solver_options
@row_output
def breaks_command(
    requirement: str, limit: int | None, at: "Moment | None", solver: Solver | None, output: Output, **given: Any
) -> None:
    """Show projects whose newest release excludes VERSION of PROJECT.

    With --transitive, also show projects whose newest release requires the newest release of a project that is shown.

    With --solve, also show projects whose newest release has no solution with VERSION, each with the proof. It tries
    all projects that have any release that can lead to PROJECT. Projects that stay undecided within the time limits
    are shown as well.
    """
    given["solve"] = solver is not None
    ask(_BREAKS, [requirement], output=output, limit=limit, at=at, solver=solver, **given)


_SHOWN = 5


@command("collisions", "requirements.txt --python 3.12 --platform linux", within="lookup")
@click.argument("lock", type=LOCK_FILE)
@environment_options
@click.option("--check", is_flag=True, help="Exit with 1 if there is a collision.")
@JSON
def collisions_command(
    lock: Path, python: str | None, platform: str | None, at: "Moment | None", check: bool, as_json: bool
) -> None:
    """Show modules that several distributions pinned by LOCK have.

    If they are installed together, one distribution overwrites the files of the others. The last column names the
    distribution that pip installs last. LOCK is a requirements.txt with ==, pylock.toml, uv.lock or poetry.lock.
    """
    from pypi_assets.questions.collisions import collisions

    answer = locked_answer(lock, python, platform, at)
    found = collisions(answer)
    if as_json:
        print_json(_collisions_as_json(answer, python, platform))
    else:
        rows = (
            (
                [*one["modules"][:_SHOWN], *_rest(len(one["modules"]) - _SHOWN)],
                [f"{each['project']} {each['version']}" for each in one["distributions"]],
                one["pip"],
            )
            for one in found
        )
        print_table(_COLLISION_COLUMNS, rows)
    print_remarks(answer.remarks)
    if not found:
        print_message("no two of the distributions have the same module")
    print_serial(answer)
    if check and found:
        raise click.exceptions.Exit(1)


def _rest(count: int) -> list[str]:
    return [f"and {counted(count, 'other')}"] if count > 0 else []


def _collisions_as_json(answer: "LockedAnswer", python: str | None, platform: str | None) -> dict[str, Any]:
    from pypi_assets.questions.collisions import as_result

    epoch = {} if answer.epoch is None else {"epoch": answer.epoch}
    return {"lock": answer.lock, "serial": answer.serial, **epoch, **as_result(answer, python, platform)}


@command("confusion", "--json", within="lookup")
@row_output
def confusion_command(output: Output) -> None:
    """Show names that several indexes have, or that look alike.

    For each name it shows since when each index has it, which index had it first, and whose version pip and uv would
    choose. "First" is unknown if a time is not known, or if several indexes have the name since the same second. Only
    the catalogs are read. With --index NAME, show only names that concern this index.
    """
    from pypi_assets.confusion import confusions, open_indexes, require_indexes

    tables = require_indexes()
    only = _selected()
    with open_indexes(tables) as indexes:
        _report(indexes)
        found = confusions(indexes.opened, only)
        printed = print_json_rows(map(_confusion_as_json, found)) if output.as_json else _print_rows(found, output)
        if not printed:
            print_message("no name is on more than one of the indexes, and none resembles a name of another index")
        if indexes.problems:
            raise click.exceptions.Exit(1)


def _selected() -> str | None:
    """Return the index that --index names.

    PYPI_ASSETS_INDEX is not used, since it would hide results about all indexes.
    """
    context = click.get_current_context()
    name: str | None = context.find_root().params.get("index")
    return name


def _report(indexes: "OpenIndexes") -> None:
    for name, problem in indexes.problems.items():
        print_message(f"{name}: not compared: {problem}")
    for index in indexes.opened:
        if index.followed is not None:
            print_message(f"{index.name}: only the {counted(index.followed, 'followed project')} are compared")


def _confusion_as_json(found: "Confusion") -> dict[str, Any]:
    return {
        "kind": found.kind,
        "names": sorted({offer.project.normalized for offer in found.offers}),
        "indexes": [
            {
                "index": offer.index,
                "private": offer.is_private,
                "name": offer.project.name,
                "normalized": offer.project.normalized,
                "newest": offer.newest,
                "since_serial": offer.project.since_serial,
                "since": utc_text(offer.project.since),
                "first": first.value,
            }
            for offer, first in zip(found.offers, found.had_first, strict=True)
        ],
        "pip": found.pip,
        "pip_indexes": list(found.pip_indexes),
        "uv": found.uv,
        "uv_index": found.uv_index,
    }


def _print_rows(found: Iterable["Confusion"], output: Output) -> int:
    return print_table(_CONFUSION_COLUMNS, _rows(found), output)


def _rows(all_found: Iterable["Confusion"]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each offer."""
    for found in all_found:
        for offer, first in zip(found.offers, found.had_first, strict=True):
            taken_by = [
                *(["pip"] if offer.index in found.pip_indexes else []),
                *(["uv"] if offer.index == found.uv_index else []),
            ]
            yield (
                found.kind,
                offer.project.name,
                offer.index,
                offer.newest,
                utc_text(offer.project.since),
                offer.project.since_serial,
                first.value,
                taken_by,
            )
