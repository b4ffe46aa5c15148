"""The commands `pypi-assets crawl ...`, which bring the catalog up to date with the index."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.contexts import opened_crawler
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import counted, local_time, plain, print_json, print_message
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.catalog_status import ObservedState
    from pypi_assets.crawl.reading import ReadCounts
    from pypi_assets.index.protocol import Observation


MOST_OF_A_TRIAL = 10_000
"""A trial queues its projects in one transaction, and a larger part of an index has better ways to be selected."""


@click.group("crawl")
def crawl_group() -> None:
    """Bring the catalog up to date with the index."""


@command("full", group=crawl_group)
@click.option(
    "--with-history", is_flag=True, help="Store the whole changelog first, so that answers are exact from serial 0 on."
)
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_OF_A_TRIAL),
    metavar="N",
    help="Visit only the N projects that changed last, as a trial in a new catalog. The crawl stays partial until"
    " `crawl full` continues it.",
)
@JSON
def crawl_full_command(with_history: bool, limit: int | None, as_json: bool) -> None:
    """Visit every project and read every distribution.

    Continues an open full crawl.
    """
    from pypi_assets.catalog.ledger.range_ledger import complete_serial
    from pypi_assets.crawl.full_crawl import crawl_full

    if with_history and limit is not None:
        raise click.UsageError("--limit is for a trial without history: leave out --with-history")
    with opened_crawler(creates=True) as crawler:
        result = crawl_full(crawler, with_history=with_history, limit=limit)
        with crawler.catalog.read() as connection:
            complete = complete_serial(connection)
    answer = {
        "serial": result.crawl.serial,
        "complete_serial": complete,
        "projects": result.listing.projects,
        "missing_projects": list(result.listing.missing),
        "partial": limit is not None,
        "visits_given_up": result.visits.exhausted,
        "reads": reads_to_json(result.reads),
    }
    if result.listing.missing:
        print_message(f"not on the index: {', '.join(result.listing.missing)}")
    if as_json:
        print_json(answer)
    else:
        kind = "full" if limit is None else "partial"
        click.echo(
            f"{kind} crawl at serial {result.crawl.serial}: {counted(result.listing.projects, 'project')} visited,"
            f" {describe_reads(result.reads)}"
        )
    report_failed(result.reads, result.visits.exhausted)
    if limit is not None:
        print_message("this trial completes nothing: run `pypi-assets crawl full` to continue to the whole index")


@command("incremental", group=crawl_group)
@click.option("--now", is_flag=True, help="Poll all projects of an index without serials, not only due projects.")
@JSON
def crawl_incremental_command(now: bool, as_json: bool) -> None:
    """Follow the index up to its last serial.

    Continues open ranges. If the index has no serials, it polls the pages of the due projects, and prints which changes
    wait until a later poll confirms them.
    """
    from pypi_assets.catalog.ledger.range_ledger import SIMPLE, complete_serial
    from pypi_assets.catalog.reports.catalog_status import observed_state
    from pypi_assets.components import declared_scopes
    from pypi_assets.crawl.incremental_crawl import crawl_incremental
    from pypi_assets.crawl.scope_crawl import keep_in_line
    from pypi_assets.settings import load_settings

    settings = load_settings()
    declared = declared_scopes(settings)
    rounds: list[Observation] = []
    with opened_crawler(observed=rounds.append) as crawler:
        keep_in_line(crawler, declared)
        results = crawl_incremental(crawler, everything=now)
        with crawler.catalog.read() as connection:
            complete = complete_serial(connection)
            state = None
            if crawler.index.is_observed:
                state = observed_state(connection, crawler.catalog.clock(), settings.poll_confirm_s)
    looked_at = sum(one.looked_at for one in rounds)
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
        observed = None if state is None else _observed_to_json(state, looked_at)
        print_json({"complete_serial": complete, "ranges": ranges, "observed": observed})
    elif state is not None:
        left = sum(one.waiting for one in rounds[-1:])
        _print_observed(state, looked_at, left, complete, is_new=bool(results))
    elif not results:
        click.echo(f"nothing is new: the catalog is complete up to serial {complete}")
    for result in results:
        if not as_json:
            unknown = f" ({result.events.unknown} of unknown kinds)" if result.events.unknown else ""
            source = (
                "no events, since the list of projects was compared"
                if result.lister == SIMPLE
                else f"{counted(result.events.events, 'event')}{unknown}"
            )
            visited = f"{counted(result.visits.total, 'project')} visited"
            click.echo(f"range {result.serials}: {source}, {visited}, {describe_reads(result.reads)}")
        if result.unexplained_changes:
            unexplained = f"changes of files that no event explains: {result.unexplained_changes}"
            print_message(f"range {result.serials}: {unexplained}")
        if result.broken_rows:
            broken = f"invalid rows of the changelog that were set aside: {result.broken_rows}"
            print_message(f'range {result.serials}: {broken}; see `pypi-assets failures list --kind "broken entry"`')
        if result.open_projects:
            print_message(f"range {result.serials}: open; to be visited again later: {', '.join(result.open_projects)}")
        report_failed(result.reads, result.visits.exhausted)


def _observed_to_json(state: "ObservedState", looked_at: int) -> dict[str, Any]:
    return {
        "looked_at": looked_at,
        "projects": state.projects,
        "due": state.due,
        "next_due_at": utc_text(state.next_due_at),
        "unconfirmed": state.unconfirmed,
        "confirmed_from": utc_text(state.confirmed_from),
    }


def _print_observed(state: "ObservedState", looked_at: int, left: int, complete: int | None, *, is_new: bool) -> None:
    """Print how many projects were polled, and why changes on the index may not be in the catalog yet.

    `left` counts the due projects that the last round did not poll.
    """
    found = "" if is_new else f"; the catalog is complete up to serial {complete}"
    nothing = ", with nothing new" if looked_at and not is_new else ""
    click.echo(f"polled {looked_at} of {counted(state.projects, 'project')}{nothing}{found}")
    if state.unconfirmed:
        named = ", ".join(map(plain, state.first_unconfirmed))
        more = ", ..." if state.unconfirmed > len(state.first_unconfirmed) else ""
        click.echo(
            f"waiting to be confirmed: {counted(state.unconfirmed, 'project')} ({named}{more}), since a cache may serve"
            f" an old page; a poll at {local_time(state.confirmed_from)} or later with the same result confirms them"
        )
    if left:
        click.echo(f"due and left for the next run: {counted(left, 'project')} (PYPI_ASSETS_POLL_REQUESTS)")
    if looked_at < state.projects:
        when = "" if state.next_due_at is None else f"; the next one is due at {local_time(state.next_due_at)}"
        who = "the others were not" if looked_at else "none was"
        click.echo(f"{who} due{when}: `pypi-assets crawl incremental --now` polls all")


def describe_reads(reads: "ReadCounts") -> str:
    """Return one line on how many distributions were read, and with which outcomes."""
    counts = {"read": reads.data, "with errors": reads.errors, "unsupported": reads.unsupported}
    counts |= {"vanished": reads.vanished, "exhausted": reads.exhausted}
    done = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if not done:
        return "distributions: none to read"
    fetched = f"{reads.bytes_fetched} bytes fetched, {counted(reads.requests, 'request')}, {reads.seconds:.1f} s"
    return f"distributions: {done} ({fetched})"


def reads_to_json(reads: "ReadCounts") -> dict[str, Any]:
    """Return `reads` as commands print it with --json."""
    return {"gave_up" if name == "exhausted" else name: value for name, value in asdict(reads).items()}


def report_failed(reads: "ReadCounts", visits: int) -> None:
    """Print how many reads failed and how many visits were exhausted, and the command that lists them."""
    if failed := reads.errors + reads.exhausted:
        print_message(f"distributions that could not be read: {failed}; see `pypi-assets failures list`")
    if visits:
        print_message(f"projects that could not be visited: {visits}; see `pypi-assets failures list`")
