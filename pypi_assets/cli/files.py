"""The commands `pypi-assets files ...`, which list, check and delete the bytes of files that scopes keep."""

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from pypi_assets import terminal
from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.options import JSON, command, row_output
from pypi_assets.progress import Progress
from pypi_assets.scopes.byte_sizes import shown_size
from pypi_assets.terminal import Output, counted, plain, print_json, print_message, print_table
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.catalog.reads.forgotten_files import ForgottenFile
    from pypi_assets.catalog.reads.kept_lists import ListedFile

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


@click.group("files")
def files_group() -> None:
    """List, check and delete the bytes of files that scopes keep."""


@command("list", "--scope tools", group=files_group)
@click.option("--scope", help="List only the files of this scope.")
@click.option("--project", help="List only the files of this project.")
@click.option("--forgotten", is_flag=True, help="List the files that must never be kept again, and the reasons.")
@click.option("--limit", type=click.IntRange(1), help="The most files to list.")
@row_output
def files_list_command(
    scope: str | None, project: str | None, forgotten: bool, limit: int | None, output: Output
) -> None:
    """List the files whose bytes are kept, by their SHA-256.

    `standing` is `listed` for files on the index, `yanked`, or `gone` for files that the index has removed.
    """
    if forgotten and (scope or project):
        raise click.UsageError("--forgotten excludes --scope and --project: it lists hashes")
    from packaging.utils import canonicalize_name

    from pypi_assets.catalog.reads.forgotten_files import all_forgotten
    from pypi_assets.catalog.reads.kept_lists import list_kept
    from pypi_assets.catalog.scopes.stored_scopes import require_scope
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog, catalog.read() as connection:
        if forgotten:
            records = [_forgotten_to_json(one) for one in islice(all_forgotten(connection), limit)]
            columns: tuple[str, ...] = ("sha256", "forgotten_at", "deleted_at", "takedown", "reason")
        else:
            if scope is not None:
                require_scope(connection, scope)
            normalized = None if project is None else canonicalize_name(project)
            records = [_to_json(one) for one in islice(list_kept(connection, scope, normalized), limit)]
            columns = ("sha256", "size", "state", "standing", "project", "filename", "scopes")
    if output.as_json:
        print_json(records)
        return
    rows = [tuple(_cell(one[name]) for name in columns) for one in records]
    if not print_table(columns, rows, output):
        print_message("no file is forgotten" if forgotten else "no file is kept")


def _to_json(one: "ListedFile") -> dict[str, Any]:
    project, filename = one.names[0] if one.names else (None, None)
    return {
        "sha256": one.sha256,
        "size": one.size,
        "state": one.state.value,
        "standing": one.standing.name.lower(),
        "kept_at": utc_text(one.kept_at),
        "project": project,
        "filename": filename,
        "scopes": list(one.scopes),
    }


def _forgotten_to_json(one: "ForgottenFile") -> dict[str, Any]:
    return {
        "sha256": one.sha256,
        "forgotten_at": utc_text(one.forgotten_at),
        "deleted_at": utc_text(one.deleted_at),
        "takedown": one.takedown_id,
        "had_bytes": one.had_bytes,
        "reason": one.reason,
    }


def _cell(value: object) -> object:
    return ", ".join(value) if isinstance(value, list) else value


@command("forget", f"{'ab' * 32} --reason 'contains a secret'", group=files_group)
@click.argument("sha256")
@click.option("--reason", required=True, help="The reason, which is recorded and shown.")
@JSON
def files_forget_command(sha256: str, reason: str, as_json: bool) -> None:
    """Delete the bytes of a file for good, and never keep them again.

    The record of it stays: see `files list --forgotten`. The file's metadata, and its place on pages, stay unchanged.
    """
    if not _SHA256.fullmatch(sha256):
        raise click.UsageError(f"{sha256[:80]!r} is not a SHA-256: give its 64 hexadecimal digits (`files list`)")
    if not reason.strip() or not reason.isprintable():
        raise click.UsageError("--reason must be printable and not empty, because it is recorded and shown")
    from pypi_assets.components import storage_from
    from pypi_assets.keeping.keeper import FileKeeper
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        is_new = FileKeeper(catalog, storage_from(settings, catalog)).forget(sha256.lower(), reason)
    if as_json:
        print_json({"sha256": sha256.lower(), "new": is_new})
    else:
        print_message(f"{sha256.lower()} is forgotten" if is_new else f"{sha256.lower()} was forgotten before")


@command("verify", group=files_group)
@JSON
def files_verify_command(as_json: bool) -> None:
    """Check that all kept files have the bytes of their SHA-256, and record the corrupt ones.

    Exits with 1 if a file is corrupt or missing. The next `scope run` fetches it again if the index still has it.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.keeping.verification import verify_files
    from pypi_assets.settings import load_settings

    settings = load_settings()
    count, size, faults = 0, 0, []
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        for one in verify_files(catalog, storage_from(settings, catalog)):
            count, size = count + 1, size + one.object.size
            if one.fault is not None:
                faults.append(one)
            report(Progress("files", count, 0, len(faults)))
    if as_json:
        corrupt = [{"sha256": one.object.sha256, "fault": one.fault} for one in faults]
        print_json({"files": count, "bytes": size, "corrupt": corrupt})
    else:
        for one in faults:
            click.echo(f"{one.object.sha256}: {plain(one.fault or '')}")
        print_message(f"{counted(count, 'file')} of {shown_size(size)} checked, {len(faults)} corrupt")
    if faults:
        raise SystemExit(1)
