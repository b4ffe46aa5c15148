"""The command `pypi-assets queue`: the next visits and their reasons."""

import click

from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_message, print_rows

_COLUMNS = ("project", "workload", "place", "state", "reason", "nice", "lag", "waiting_since", "due_at", "error")


@command("queue", "requests")
@click.argument("project", required=False)
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="Maximum number of visits.")
@row_output
def queue_command(project: str | None, limit: int, output: Output) -> None:
    """Show which projects are visited next, and why.

    With PROJECT, show its place. Each workload (a range, a crawl, an audit ...) has places of its own. A planned visit
    is not queued yet: the next round chooses it.
    """
    from pypi_assets.catalog.reports.next_visits import next_visits, next_visits_of, result_of
    from pypi_assets.lookup.catalog_hints import unknown_project_hints
    from pypi_assets.settings import load_settings

    hints = []
    with existing_catalog(load_settings()) as catalog, catalog.read() as connection:
        found = next_visits(connection, limit) if project is None else next_visits_of(connection, project)
        if found is None:
            hints = [f"the catalog has no project {project}", *unknown_project_hints(connection, str(project))]
    if print_rows(_COLUMNS, (result_of(visit) for visit in (found or [])[:limit]), output):
        print_message(f"visit policy: {catalog.visit_policy.name} (PYPI_ASSETS_VISIT_POLICY)")
    elif found is None:
        for hint in hints:
            print_message(hint)
    elif project is None:
        print_message("no visit is queued or planned: `pypi-assets crawl full` begins to follow the index")
    else:
        print_message(f"no visit of {project} is queued, and the next thousand planned visits lack it")
