"""The command `pypi-assets visit`, which visits projects now."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.contexts import existing_catalog, opened_crawler
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, local_time, print_json, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.visit_requests import RequestedVisit

_REQUEST_COLUMNS = ("project", "state", "place", "outcome", "change", "filename", "error")
_POLL_S = 0.5


@command("visit", "requests")
@click.argument("projects", nargs=-1, required=True)
@click.option("--no-wait", is_flag=True, help="Only queue the visits: a follower or the next crawl makes them.")
@row_output
def visit_command(projects: tuple[str, ...], no_wait: bool, output: Output) -> None:
    """Visit the pages of PROJECTS now, and print what changed.

    Files can have come, gone, changed their hash, or been yanked or unyanked. The visits take their place in the queue,
    and use its request rate. If another process is making them, the command waits for it. Exits with 1 if a visit is
    not done, or has failed.
    """
    from pypi_assets.catalog.work.requested_visits import are_requests_due, open_requests, request_visits
    from pypi_assets.crawl.requested import request_now, run_requested
    from pypi_assets.settings import load_settings

    if no_wait:
        with existing_catalog(load_settings()) as catalog:
            ids = catalog.transact(lambda connection: request_visits(connection, projects, catalog.clock()))
            _print_requests(_requests(catalog, ids), output)
        return
    with opened_crawler() as crawler:
        catalog = crawler.catalog
        ids = request_now(crawler, projects)
        run_requested(crawler)
        while True:
            found = _requests(catalog, ids)
            with catalog.read() as connection:
                is_over = not open_requests(connection, ids)
                is_due = are_requests_due(connection, catalog.clock())
            # a visit is queued again if another process requests it before this one has ended it
            is_queued_again = is_due and any(one.state == "queued" and one.retry_at is None for one in found)
            if not is_queued_again and all(one.state != "running" for one in found):
                break
            time.sleep(_POLL_S)
            run_requested(crawler)
    _print_requests(found, output)
    if not is_over or any(one.outcome not in {"full", "not_found"} for one in found):
        click.get_current_context().exit(1)


def _requests(catalog: "Catalog", ids: Sequence[int]) -> "list[RequestedVisit]":
    from pypi_assets.catalog.reports.visit_requests import find_request

    with catalog.read() as connection:
        found = (find_request(connection, id_, catalog.clock()) for id_ in ids)
        return [one for one in found if one is not None]


def _print_requests(found: "Sequence[RequestedVisit]", output: Output) -> None:
    from pypi_assets.catalog.reports.visit_requests import answer_of

    if output.as_json:
        print_json([answer_of(one) for one in found])
    else:
        print_rows(_REQUEST_COLUMNS, [row for one in found for row in _rows(one)], output)
    for one in found:
        if one.retry_at is not None:
            print_message(f"{one.project} stays queued: the next attempt is due at {local_time(one.retry_at)}")
        elif one.state == "done" and not one.changed:
            print_message(f"{one.project}: nothing changed")


def _rows(one: "RequestedVisit") -> Iterator[dict[str, Any]]:
    common = {"project": one.project, "state": one.state.value, "place": one.place, "outcome": one.outcome}
    common["error"] = one.error
    if not one.changed:
        yield common | {"change": None, "filename": None}
    for difference in one.changed:
        yield common | {"change": difference.change, "filename": difference.filename}
