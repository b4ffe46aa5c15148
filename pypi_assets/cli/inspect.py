"""The command `inspect`, which prints the records of distributions on disk or in stored extracts."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pypi_assets.cli.contexts import existing_catalog, opened_readers
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import plain, print_json_rows, print_message, print_wrapped_facts

_NAMED_FILES = 3
_SHOWN_GROUPS = 10
_SHOWN_ENTRY_POINTS = 5
_SHOWN_MODULES = 60


@command("inspect", "dist/demo-1.0-py3-none-any.whl dist/demo-1.0.tar.gz", within="admin")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--from-extract", is_flag=True, help="Treat FILES as filenames of distributions, and read their stored extracts."
)
@click.option("--project", help="With --from-extract: the project of the files, if their names are ambiguous.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if a record has an error.")
@click.option(
    "--against-pip",
    is_flag=True,
    help="Compare each record with the files that this Python's pip installs from a wheel or unpacks from an sdist, in"
    " a scratch folder. No code of the file is run. Exits with 1 if they differ.",
)
@JSON
def inspect_command(
    files: tuple[Path, ...],
    from_extract: bool,
    project: str | None,
    exit_zero: bool,
    against_pip: bool,
    as_json: bool,
) -> None:
    """Read distributions from disk and print their records.

    FILES are wheels, sdists and eggs; none of their code is run. A record has the file's requirements, and the modules
    and commands that it installs. Exits with 1 if a file cannot be opened or a record has an error.
    """

    if against_pip:
        if from_extract or project is not None:
            raise click.BadParameter(
                "it compares only files on disk: omit --from-extract and --project", param_hint="--against-pip"
            )
        _compare_with_pip(files, as_json=as_json, exit_zero=exit_zero)
        return
    unopened: list[Path] = []
    if from_extract:
        rows: Iterable[dict[str, Any]] = _stored_rows([str(filename) for filename in files], project)
    elif project is not None:
        raise click.BadParameter("it works only with --from-extract", param_hint="--project")
    else:
        rows = _rows_on_disk(files, unopened)
    with_error: list[str] = []
    shown = _noting_errors(rows, with_error)
    if as_json:
        print_json_rows(shown)
    else:
        for row in shown:
            _print_record(row)
    if with_error:
        print_message(f"records with an error: {len(with_error)} ({', '.join(with_error[:_NAMED_FILES])})")
    if unopened or (with_error and not exit_zero):
        raise click.exceptions.Exit(1)


def _compare_with_pip(files: Sequence[Path], *, as_json: bool, exit_zero: bool) -> None:
    from pypi_assets.distributions.pip_comparison import compare
    from pypi_assets.settings import load_settings

    _check_files(files)
    with opened_readers(load_settings()) as readers:
        found = [(path, compare(path, readers)) for path in files]
    if as_json:
        print_json_rows(
            {
                "filename": path.name,
                "pip_version": one.pip_version,
                "refusal": one.refusal,
                "differences": list(one.differences),
                "is_silent": one.is_silent,
            }
            for path, one in found
        )
    else:
        for path, one in found:
            refused = one.refusal and f"pip {one.pip_version} rejects it: {one.refusal}"
            click.echo(f"{plain(path.name)}: {plain(refused or f'compared with pip {one.pip_version}')}")
            for line in one.differences or (() if one.refusal else ("no difference",)):
                click.echo(f"  {plain(line)}")
    if any(one.differences for _, one in found) and not exit_zero:
        raise click.exceptions.Exit(1)


def _check_files(files: Sequence[Path]) -> None:
    for path in files:
        if path.is_dir():
            raise click.BadParameter(f"{str(path)!r} is a folder: pass files in it", param_hint="FILES")
        if not path.exists():
            raise click.BadParameter(f"file {str(path)!r} does not exist", param_hint="FILES")


def _rows_on_disk(files: Sequence[Path], unopened: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the records of files. Files that cannot be opened are reported and added to `unopened`."""
    from pypi_assets.distributions.local_files import read_local
    from pypi_assets.distributions.record_building import record_to_json
    from pypi_assets.settings import load_settings

    _check_files(files)
    with opened_readers(load_settings()) as readers:
        for path in files:
            try:
                yield record_to_json(read_local(path, readers).record)
            except OSError as error:
                unopened.append(path)
                print_message(f"cannot read {path}: {error.strerror or error}")


def _stored_rows(filenames: Sequence[str], project: str | None) -> list[dict[str, Any]]:
    from pypi_assets.components import storage_from
    from pypi_assets.distributions.record_building import record_to_json
    from pypi_assets.extracts.reprocess import stored_records
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog, opened_readers(settings) as readers:
        storage = storage_from(settings, read_only=True)
        found = [one for filename in filenames for one in stored_records(catalog, storage, readers, filename, project)]
    return [
        record_to_json(record)
        | {"of_project": place.project, "pack": place.pack, "offset": place.offset, "extract_bytes": place.length}
        for place, record in found
    ]


def _noting_errors(rows: Iterable[dict[str, Any]], with_error: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows, and add the filenames of records with an error to `with_error`."""
    for row in rows:
        if row["error"] is not None:
            with_error.append(row["filename"])
        yield row


def _print_record(fields: dict[str, Any]) -> None:
    empty: tuple[object, ...] = (None, [], {}, False)
    print_wrapped_facts(
        (name.replace("_", " "), _items(name, value)) for name, value in fields.items() if value not in empty
    )
    click.echo()


def _items(name: str, value: Any) -> list[str]:
    """Return the items of a field for display. The output of --json is complete."""
    match name:
        case "error":
            return [": ".join(value.values())]
        case "left_out":
            files = "1 module file, whose path" if value == 1 else f"{value} module files, whose paths"
            return [f"{files} no import statement can name"]
        case "entry_points":
            return _cut([_group(group, members) for group, members in value.items()], _SHOWN_GROUPS, "groups")
        case "project_urls":
            return [url.replace(", ", ": ", 1) for url in value]
        case "modules" | "stubs" if sys.stdout.isatty():
            return [", ".join(_cut(value, _SHOWN_MODULES, "in --json"))]
        case "requires_dist" | "notes" | "license_classifiers":
            return list(value)
    return [plain(value)]


def _group(group: str, members: Mapping[str, str]) -> str:
    shown = _cut([f"{name} = {target}" for name, target in members.items()], _SHOWN_ENTRY_POINTS, "in --json")
    return f"{group}: {', '.join(shown)}"


def _cut(items: list[str], most: int, of_what: str) -> list[str]:
    """Return the first `most` items, and an item that counts the rest."""
    return [*items[:most], *([f"and {len(items) - most} more {of_what}"] if len(items) > most else [])]
