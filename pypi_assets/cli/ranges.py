"""The command that shows the serial ranges of the ledger."""

from typing import TYPE_CHECKING

import click

from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, local_time, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.range_states import RangeStatus

_SHOWN_COMPLETE_RANGES = 10


@command("ranges", "--all")
@click.option("--all", "all_ranges", is_flag=True, help="Include all complete ranges, not only the newest ten.")
@row_output
def ranges_command(all_ranges: bool, output: Output) -> None:
    """List serial ranges with their states.

    A serial range is a run of the index's changes that is crawled as one. It is complete, running, failed, interrupted,
    waiting or missing. The last one is what is missing up to the last serial of the index.
    """
    from pypi_assets.catalog.reports.range_states import range_statuses
    from pypi_assets.catalog.work.full_crawls import followed_index
    from pypi_assets.settings import load_settings
    from pypi_assets.status import query_last_serial

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        with catalog.read() as connection:
            followed = followed_index(connection)
        index_serial, problem = query_last_serial(settings, followed)
        with catalog.read() as connection:
            found = range_statuses(
                connection,
                catalog.clock(),
                index_serial=index_serial,
                complete=None if all_ranges else _SHOWN_COMPLETE_RANGES,
            )
    columns = ("range", "state", "to_visit", "to_read", "gave_up", "completed", "error")
    rows = [_range_row(status) for status in found]
    if problem:
        print_message(problem)
    if inexact := [status.serials.key for status in found if status.exact_from is not None]:
        spans = ", ".join(inexact)
        print_message(f"changes in {spans} were found from the list of projects; their single events are not known")
    if not print_rows(columns, rows, output):
        print_message("there are no ranges: run `pypi-assets crawl full` first")


def _range_row(status: "RangeStatus") -> dict[str, object]:
    return {
        "range": status.serials.key,
        "state": status.state.value,
        "projects": status.visits.total,
        "visited": status.visits.done,
        "gave_up": status.visits.exhausted,
        "to_visit": status.visits.todo,
        "to_read": status.reads_to_do,
        "asked": local_time(status.requested_at),
        "begun": local_time(status.begun_at),
        "completed": local_time(status.completed_at),
        "error": status.error_text,
        "lister": status.lister,
        "exact_from": status.exact_from,
    }
