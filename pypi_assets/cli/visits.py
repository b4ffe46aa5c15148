"""The command `pypi-assets visits`, which lists visits, and projects by the state of their visits."""

from dataclasses import asdict
from typing import Any

import click

from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.followed_notes import note_of
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_message, print_rows
from pypi_assets.times import utc_text

_VISIT_COLUMNS = ("visit", "scope", "attempt", "started_at", "outcome", "page_serial", "files", "snapshot", "text")
_DIFFERENCE_COLUMNS = ("filename", "change", "sha256_before", "sha256_after")
_STATE_COLUMNS = ("project", "last_visited_at", "last_successful_at", "outcome", "successive", "lag")
_STATES = ("failing", "never", "stale")
_DIGITS_SHOWN = 12


@command("visits", "requests --compare 1 3")
@click.argument("project", required=False)
@click.option("--compare", type=click.IntRange(1), nargs=2, help="Compare the files that these two visits saw.")
@click.option("--state", type=click.Choice(_STATES), help="List the projects in this state; default: failing.")
@click.option("--limit", type=click.IntRange(1, 100_000), help="Print at most this many projects; default: 100.")
@row_output
def visits_command(
    project: str | None, compare: tuple[int, int] | None, state: str | None, limit: int | None, output: Output
) -> None:
    """List or compare the visits of PROJECT's page, or list projects by state.

    The states are `failing` (the last visit failed), `never` (no visit has ended) and `stale` (visited, the longest ago
    first).
    """
    if project is None:
        if compare is not None:
            raise click.UsageError("--compare needs a PROJECT")
        _list_state(state or _STATES[0], limit or 100, output)
    elif state is not None or limit is not None:
        raise click.UsageError("--state and --limit list projects: omit PROJECT")
    else:
        _list_visits(project, compare, output)


def _list_state(state: str, limit: int, output: Output) -> None:
    from pypi_assets.catalog.reports.visit_log import VisitedState, projects_in_state
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog, catalog.read() as connection:
        rows = [asdict(one) for one in projects_in_state(connection, VisitedState(state), limit)]
    for row in rows:
        row.update({name: utc_text(row[name]) for name in ("last_visited_at", "last_successful_at", "next_due_at")})
    if not print_rows(_STATE_COLUMNS, rows, output):
        print_message(f"no project is in the state {state}")


def _list_visits(project: str, compare: tuple[int, int] | None, output: Output) -> None:
    from pypi_assets.catalog.observed.projects import find_project
    from pypi_assets.catalog.reports.past_visits import (
        compare_visits,
        deleted_visits,
        deleted_visits_sentence,
        past_visits,
    )
    from pypi_assets.catalog.reports.project_following import following_at
    from pypi_assets.lookup.catalog_hints import unknown_project_hints
    from pypi_assets.settings import load_settings

    rows: list[dict[str, Any]] = []
    deleted: str | None = None
    nothing = [f"the catalog has no project {project}"]
    with existing_catalog(load_settings()) as catalog, catalog.read() as connection:
        known = find_project(connection, project)
        notes = list(note_of(following_at(connection, project)))
        if known and compare:
            rows = [asdict(difference) for difference in compare_visits(connection, known, *compare)]
            nothing = [f"visits {compare[0]} and {compare[1]} of {known.name} saw the same files"]
        elif known:
            rows = [asdict(visit) for visit in past_visits(connection, known)]
            deleted = deleted_visits_sentence(deleted_visits([row["visit"] for row in rows]))
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
