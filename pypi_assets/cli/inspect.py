"""The command that reads distributions from disk, or from stored extracts, and prints their records."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.opening import opened_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import print_facts, print_json_rows, print_message

if TYPE_CHECKING:
    from pypi_assets.distributions.record import DistributionRecord


@command("inspect", "dist/demo-1.0-py3-none-any.whl dist/demo-1.0.tar.gz")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--from-extract", is_flag=True, help="Treat FILES as filenames of distributions, and read their stored extracts."
)
@click.option("--project", help="With --from-extract: the project of the files, if their names leave it open.")
@JSON
def inspect_command(files: tuple[Path, ...], from_extract: bool, project: str | None, as_json: bool) -> None:
    """Read distributions from disk and print their records.

    Executes none of their code.
    """
    from pypi_assets.assembly import limits_from
    from pypi_assets.distributions.reader import read_path
    from pypi_assets.distributions.record_building import record_to_json
    from pypi_assets.settings import load_settings

    if from_extract:
        _inspect_extracts([str(filename) for filename in files], project, as_json)
        return
    if project is not None:
        raise click.BadParameter("it is used only with --from-extract", param_hint="--project")
    for path in files:
        if not path.is_file():
            raise click.BadParameter(f"file {str(path)!r} does not exist", param_hint="FILES")
    limits = limits_from(load_settings())
    unread = 0

    def records() -> Iterator["DistributionRecord"]:
        nonlocal unread
        for path in files:
            try:
                yield read_path(path, limits=limits)
            except OSError as error:
                unread += 1
                print_message(f"cannot read {path}: {error.strerror or error}")

    if as_json:
        print_json_rows(record_to_json(record) for record in records())
    else:
        for record in records():
            _print_record(record_to_json(record))
    if unread:
        raise click.exceptions.Exit(1)


def _inspect_extracts(filenames: Sequence[str], project: str | None, as_json: bool) -> None:
    from pypi_assets.assembly import storage_from
    from pypi_assets.distributions.record_building import record_to_json
    from pypi_assets.extracts.reprocess import stored_records
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with opened_catalog(settings) as catalog:
        storage = storage_from(settings, read_only=True)
        found = [one for filename in filenames for one in stored_records(catalog, storage, filename, project)]
    rows = [
        record_to_json(record)
        | {"of_project": place.project, "pack": place.pack, "offset": place.offset, "extract_bytes": place.length}
        for place, record in found
    ]
    if as_json:
        print_json_rows(rows)
        return
    for row in rows:
        _print_record(row)


def _print_record(fields: dict[str, object]) -> None:
    shown = fields | {"error": ": ".join(fields["error"].values()) if isinstance(fields["error"], dict) else None}
    empty: tuple[object, ...] = (None, [], {}, False)
    print_facts((name.replace("_", " "), value) for name, value in shown.items() if value not in empty)
    click.echo()
