"""The command that shows what happened to one project, by serial."""

from dataclasses import asdict
from typing import Any

import click

from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import print_json_rows, print_message, print_table, utc_time


@command("history", "requests --all")
@click.argument("project")
@click.option(
    "--all", "everything", is_flag=True, help="Include events that change no files, such as roles and renames."
)
@JSON
def history_command(project: str, everything: bool, as_json: bool) -> None:
    """Show what happened to PROJECT, by serial."""
    from pypi_assets.catalog.observed.projects import find_project
    from pypi_assets.catalog.reports.project_history import read_history
    from pypi_assets.index.actions import Action
    from pypi_assets.lookup.catalog_hints import unknown_project_hints
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog, catalog.read() as connection:
        known = find_project(connection, project)
        entries = [] if known is None else read_history(connection, known)
        hints = [] if known else list(unknown_project_hints(connection, project))
    rows = [
        asdict(entry) | {"at": utc_time(entry.at)} for entry in entries if everything or entry.kind != Action.IGNORED
    ]
    if as_json:
        print_json_rows(rows)
    else:
        print_table(("serial", "time", "what", "live", "away"), map(_entry_row, rows))
    if known is None:
        for message in (f"the catalog knows no project {project}", *hints):
            print_message(message)


def _entry_row(row: dict[str, Any]) -> tuple[object, ...]:
    from pypi_assets.catalog.reports.project_history import VISIT

    outcome = "" if row["kind"] == VISIT else row["outcome"]
    what = ": ".join(part for part in (row["text"], outcome, row["error"]) if part)
    flags = [f"{len(row[flag])} files {flag}" for flag in ("yanked", "unyanked") if row[flag]]
    counts = (f"+{len(row['live'])}" if row["live"] else "", f"-{len(row['away'])}" if row["away"] else "")
    return (row["serial"], row["at"], "; ".join([what, *flags]), *counts)
