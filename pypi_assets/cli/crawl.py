"""Commands that bring the catalog up to the index."""

import click

from pypi_assets.cli.opening import opened_crawler
from pypi_assets.cli.options import JSON, command
from pypi_assets.cli.read_counts import describe_reads, reads_to_json, report_failed
from pypi_assets.terminal import print_json, print_message


@click.group("crawl")
def crawl_group() -> None:
    """Bring the catalog up to the index."""


@command("full", group=crawl_group)
@click.option(
    "--with-history", is_flag=True, help="Store the whole changelog first, so that the catalog is exact from serial 0."
)
@JSON
def crawl_full_command(with_history: bool, as_json: bool) -> None:
    """Visit every project and read every distribution.

    Continues an open full crawl.
    """
    from pypi_assets.catalog.ledger.range_ledger import complete_serial
    from pypi_assets.crawl.full_crawl import crawl_full

    with opened_crawler(creates=True) as crawler:
        result = crawl_full(crawler, with_history=with_history)
        with crawler.catalog.read() as connection:
            complete = complete_serial(connection)
    answer = {
        "serial": result.crawl.serial,
        "complete_serial": complete,
        "projects": result.listing.projects,
        "missing_projects": list(result.listing.missing),
        "visits_given_up": result.visits.exhausted,
        "reads": reads_to_json(result.reads),
    }
    if result.listing.missing:
        print_message(f"not on the index: {', '.join(result.listing.missing)}")
    if as_json:
        print_json(answer)
    else:
        click.echo(
            f"full crawl at serial {result.crawl.serial}: {result.listing.projects} projects visited,"
            f" {describe_reads(result.reads)}"
        )
    report_failed(result.reads, result.visits.exhausted)


@command("incremental", group=crawl_group)
@JSON
def crawl_incremental_command(as_json: bool) -> None:
    """Follow the index up to its last serial.

    Continues open ranges.
    """
    from pypi_assets.catalog.ledger.range_ledger import SIMPLE, complete_serial
    from pypi_assets.crawl.incremental_crawl import crawl_incremental
    from pypi_assets.declared_scopes import declared_scopes, keep_in_line
    from pypi_assets.settings import load_settings

    declared = declared_scopes(load_settings())
    with opened_crawler() as crawler:
        keep_in_line(crawler, declared)
        results = crawl_incremental(crawler)
        with crawler.catalog.read() as connection:
            complete = complete_serial(connection)
    if as_json:
        ranges = [
            {
                "range": result.serials.key,
                "lister": result.lister,
                "events": result.events.events,
                "unknown_events": result.events.unknown,
                "unexplained_changes": result.unexplained_changes,
                "broken_rows": result.broken_rows,
                "projects": result.visits.total,
                "visits_given_up": result.visits.exhausted,
                "open_projects": list(result.open_projects),
                "reads": reads_to_json(result.reads),
            }
            for result in results
        ]
        print_json({"complete_serial": complete, "ranges": ranges})
    elif not results:
        click.echo(f"nothing is new: the catalog is complete up to serial {complete}")
    for result in results:
        if not as_json:
            unknown = f" ({result.events.unknown} of unknown kinds)" if result.events.unknown else ""
            source = "no events, but the list" if result.lister == SIMPLE else f"{result.events.events} events{unknown}"
            visited = f"{result.visits.total} projects visited"
            click.echo(f"range {result.serials}: {source}, {visited}, {describe_reads(result.reads)}")
        if result.unexplained_changes:
            unexplained = f"changes of files that no event explains: {result.unexplained_changes}"
            print_message(f"range {result.serials}: {unexplained}")
        if result.broken_rows:
            broken = f"rows of the changelog that break its protocol and were kept aside: {result.broken_rows}"
            print_message(f'range {result.serials}: {broken}; see `pypi-assets failures list --kind "broken entry"`')
        if result.open_projects:
            print_message(f"range {result.serials}: open, and visited again later: {', '.join(result.open_projects)}")
        report_failed(result.reads, result.visits.exhausted)
