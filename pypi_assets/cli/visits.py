"""The command that shows the visits of one project, and how two of them differ."""

from dataclasses import asdict
from typing import Any

import click

from pypi_assets.cli.followed_notes import note_of
from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_message, print_rows
from pypi_assets.times import utc_text

_VISIT_COLUMNS = ("visit", "scope", "attempt", "started_at", "outcome", "page_serial", "files", "snapshot", "text")
_DIGITS_SHOWN = 12
_DIFFERENCE_COLUMNS = ("filename", "change", "sha256_before", "sha256_after")


@command("visits", "requests --compare 1 3")
@click.argument("project")
@click.option("--compare", type=click.IntRange(1), nargs=2, help="Compare the files that these two visits saw.")
@row_output
def visits_command(project: str, compare: tuple[int, int] | None, output: Output) -> None:
    """List or compare the visits of PROJECT's page."""
    from pypi_assets.catalog.observed.projects import find_project
    from pypi_assets.catalog.reports.past_visits import compare_visits, deleted_visits_sentence, past_visits
    from pypi_assets.catalog.reports.project_following import following_at
    from pypi_assets.lookup.catalog_hints import unknown_project_hints
    from pypi_assets.settings import load_settings

    rows: list[dict[str, Any]] = []
    deleted: str | None = None
    nothing = [f"the catalog knows no project {project}"]
    with existing_catalog(load_settings()) as catalog, catalog.read() as connection:
        known = find_project(connection, project)
        notes = list(note_of(following_at(connection, project)))
        if known and compare:
            rows = [asdict(difference) for difference in compare_visits(connection, known, *compare)]
            nothing = [f"visits {compare[0]} and {compare[1]} of {known.name} saw the same files"]
        elif known:
            rows = [asdict(visit) for visit in past_visits(connection, known)]
            deleted = deleted_visits_sentence([row["visit"] for row in rows])
            nothing = [f"{known.name} has not been visited yet"]
        elif not notes:
            nothing += unknown_project_hints(connection, project)
        if notes and not rows:
            nothing = []
    for row in rows:
        row.update({time: utc_text(row[time]) for time in ("started_at", "ended_at") if time in row})
        if row.get("snapshot") and not (output.as_json or output.as_csv):
            row["snapshot"] = row["snapshot"][:_DIGITS_SHOWN]
    if not print_rows(_DIFFERENCE_COLUMNS if compare else _VISIT_COLUMNS, rows, output):
        for message in nothing:
            print_message(message)
    for note in notes:
        print_message(note)
    if deleted:
        print_message(deleted)
