"""The command that shows what happened to one project, by serial."""

from dataclasses import asdict
from typing import Any

import click

from pypi_assets.cli.followed_notes import note_of
from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_json_rows, print_message, print_table, utc_time


@command("history", "requests --all")
@click.argument("project")
@click.option(
    "--all", "everything", is_flag=True, help="Include events that change no files, such as roles and renames."
)
@row_output
def history_command(project: str, everything: bool, output: Output) -> None:
    """Show what happened to PROJECT, by serial."""
    from pypi_assets.catalog.observed.projects import find_project
    from pypi_assets.catalog.reports.past_visits import deleted_visits
    from pypi_assets.catalog.reports.project_following import following_at
    from pypi_assets.catalog.reports.project_history import VISIT, read_history
    from pypi_assets.cli.visits import DELETED_VISITS
    from pypi_assets.index.actions import Action
    from pypi_assets.lookup.catalog_hints import unknown_project_hints
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog, catalog.read() as connection:
        known = find_project(connection, project)
        entries = [] if known is None else read_history(connection, known)
        notes = list(note_of(following_at(connection, project)))
        hints = [] if known else list(unknown_project_hints(connection, project))
    rows = [
        asdict(entry) | {"at": utc_time(entry.at), "not_before": utc_time(entry.not_before)}
        for entry in entries
        if everything or entry.kind != Action.IGNORED
    ]
    if output.as_json:
        print_json_rows(rows)
    else:
        columns = ("serial", "time", "what", "live", "away")
        print_table(columns, (_entry_row(row, output) for row in rows), output)
    if deleted := deleted_visits([entry.visit for entry in entries if entry.kind == VISIT and entry.visit]):
        print_message(DELETED_VISITS.format(deleted))
    for message in notes:
        print_message(message)
    if known is None and not notes:
        for message in (f"the catalog knows no project {project}", *hints):
            print_message(message)


def _entry_row(row: dict[str, Any], output: Output) -> tuple[object, ...]:
    from pypi_assets.catalog.reports.project_history import VISIT

    outcome = "" if row["kind"] == VISIT else row["outcome"]
    what = ": ".join(part for part in (row["text"], outcome, row["error"]) if part)
    if row["not_before"]:
        what += f", after {row['not_before']}"
    flags = [f"{len(row[flag])} files {flag}" for flag in ("yanked", "unyanked") if row[flag]]
    live, away = len(row["live"]), len(row["away"])
    counts = (live, away) if output.as_csv else (f"+{live}" if live else "", f"-{away}" if away else "")
    return (row["serial"], row["at"], "; ".join([what, *flags]), *counts)
