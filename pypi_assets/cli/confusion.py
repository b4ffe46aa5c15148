"""The command that shows which names several indexes have, and which installer takes what of them."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, counted, print_json_rows, print_message, print_table
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.confusion import Confusion, OpenIndexes

_COLUMNS = ("kind", "name", "index", "newest", "since", "since_serial", "first", "taken_by")


@command("confusion", "--json", within="lookup")
@row_output
def confusion_command(output: Output) -> None:
    """Show names that several indexes have, or that look alike.

    Of each name: since when each index has it, whether it had it first (yes, no, or unknown: a time is not known, or
    several have it since the same second), and whose version pip and uv would take. It reads only the catalogs.
    With --index NAME: only what concerns this index.
    """
    from pypi_assets.confusion import confusions, open_indexes, require_indexes

    tables = require_indexes()
    only = _selected()
    with open_indexes(tables) as indexes:
        _report(indexes)
        found = confusions(indexes.opened, only)
        printed = print_json_rows(map(_as_json, found)) if output.as_json else _print_rows(found, output)
        if not printed:
            print_message("no name is on more than one of the indexes, and none looks like one of another index")
        if indexes.problems:
            raise click.exceptions.Exit(1)


def _selected() -> str | None:
    """The index that --index names; not that of PYPI_ASSETS_INDEX, which would hide what concerns all."""
    context = click.get_current_context()
    name: str | None = context.find_root().params.get("index")
    return name


def _report(indexes: "OpenIndexes") -> None:
    for name, problem in indexes.problems.items():
        print_message(f"{name}: not compared: {problem}")
    for index in indexes.opened:
        if index.followed is not None:
            print_message(f"{index.name}: only the {counted(index.followed, 'followed project')} are compared")


def _as_json(found: "Confusion") -> dict[str, Any]:
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
    return print_table(_COLUMNS, _rows(found), output)


def _rows(all_found: Iterable["Confusion"]) -> Iterator[tuple[object, ...]]:
    """A row for each offer."""
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
