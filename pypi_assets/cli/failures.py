"""The commands `pypi-assets failures ...`, which list, show and retry failed reads and visits."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.contexts import existing_catalog, opened_crawler
from pypi_assets.cli.crawl import describe_reads, reads_to_json, report_failed
from pypi_assets.cli.options import JSON, command, row_output
from pypi_assets.terminal import (
    Output,
    counted,
    local_time,
    print_json,
    print_message,
    print_rows,
    print_table,
)

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.failures import FailureGroup, RecordedFailure
    from pypi_assets.catalog.reports.past_attempts import AttemptedItem

_OUTCOMES = ("error", "gave up", "waiting")
_NO_FAILURES = "nothing has failed"
_ATTEMPT_COLUMNS = (
    *("project", "filename", "attempt", "started_at", "seconds", "outcome", "kind", "text", "worker", "scope"),
)
_DONE = {"data": "read", "full": "visited"}
"""Words for the outcomes of successful attempts."""
_NONE_MATCH = "no failure matches; see `pypi-assets failures list`"


@click.group("failures")
def failures_group() -> None:
    """List, show and retry failed reads and visits.

    A visit is the request of a project's page. A read downloads and reads a distribution's file.
    """


@command("list", '--kind "corrupt archive"', group=failures_group)
@click.option("--kind", help="List all failures of this kind, as shown in the list of kinds.")
@click.option("--project", help="List all failures of this project.")
@row_output
def failures_list_command(kind: str | None, project: str | None, output: Output) -> None:
    """List failed reads and visits, and broken entries of the index, by kind.

    With --kind or --project, list each failure with its error, its attempts and the time of the next attempt.
    """
    from packaging.utils import canonicalize_name

    from pypi_assets.catalog.reports.failures import group_failures, list_failures
    from pypi_assets.settings import load_settings

    settings = load_settings()
    normalized = None if project is None else canonicalize_name(project)
    with existing_catalog(settings) as catalog, catalog.read() as connection:
        found = list_failures(connection, settings.max_attempts, kind, normalized)
        each = None if kind is project is None else list(found)
        groups = group_failures(found if each is None else each)
    if output.as_json:
        listed = None if each is None else [_failure_to_json(failure) for failure in each]
        print_json({"groups": [_group_to_json(group) for group in groups], "failures": listed})
    elif each is None:
        print_table(("kind", "count", *_OUTCOMES, "examples"), (_group_row(group) for group in groups), output)
    else:
        columns = ("project", "filename", "outcome", "kind", "attempts", "attempts_remaining", "next_due", "text")
        print_rows(columns, (_failure_to_json(failure) for failure in each), output)
    if not groups:
        print_message(_NO_FAILURES if each is None else _NONE_MATCH)


def _failure_to_json(failure: "RecordedFailure") -> dict[str, Any]:
    return asdict(failure) | {"next_due": local_time(failure.next_due)}


def _group_to_json(group: "FailureGroup") -> dict[str, Any]:
    return asdict(group) | {"examples": [_failure_to_json(failure) for failure in group.examples]}


def _group_row(group: "FailureGroup") -> list[object]:
    examples = ", ".join(failure.filename or failure.project for failure in group.examples)
    counts = [group.outcomes.get(outcome, 0) for outcome in _OUTCOMES]
    return [group.kind, group.count, *counts, examples]


@command("show", "requests-2.32.3.tar.gz", group=failures_group)
@click.argument("name", metavar="FILE")
@click.option("--project", help="The project of FILE, if the file's name does not begin with the project's.")
@row_output
def failures_show_command(name: str, project: str | None, output: Output) -> None:
    """List all attempts of one file or page, the oldest first, also the one that succeeded.

    FILE is a file's name, URL or SHA-256, or a release as NAME==VERSION. With the name of a project, list the visits of
    its page. Attempts are kept for as long as PYPI_ASSETS_READ_ATTEMPTS_KEPT_DAYS and PYPI_ASSETS_VISITS_KEPT_DAYS.
    """
    from pypi_assets.catalog.reports.past_attempts import attempted_items
    from pypi_assets.lookup.catalog_hints import unknown_project_hints
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog, catalog.read() as connection:
        items = attempted_items(connection, name, settings.max_attempts, project)
        hints = [] if items else list(unknown_project_hints(connection, name))
    if output.as_json:
        print_json([_item_to_json(item) for item in items])
    else:
        rows = [_attempt_row(item, attempt) for item in items for attempt in _item_to_json(item)["attempts"]]
        print_rows(_ATTEMPT_COLUMNS, rows, output)
    for item in items:
        print_message(_summary(item))
    for message in () if items else (f"the catalog has no file, hash, release or project {name}", *hints):
        print_message(message)


def _item_to_json(item: "AttemptedItem") -> dict[str, Any]:
    attempts = [asdict(attempt) | {"started_at": local_time(attempt.started_at)} for attempt in item.attempts]
    times = {"next_due": local_time(item.next_due), "succeeded_at": local_time(item.succeeded_at)}
    return asdict(item) | times | {"attempts": attempts}


def _attempt_row(item: "AttemptedItem", attempt: dict[str, Any]) -> dict[str, Any]:
    seconds = attempt["seconds"]
    shown = {"seconds": None if seconds is None else round(seconds, 3)}
    return {"project": item.project, "filename": item.filename} | attempt | shown


def _summary(item: "AttemptedItem") -> str:
    """Return a sentence about the state of the item, and one about attempts that are not in the log."""
    subject = item.filename or f"the page of {item.project}"
    if item.next_due is not None:
        left = counted(item.attempts_remaining, "attempt")
        state = f"waiting for its next attempt at {local_time(item.next_due)}, {left} remaining"
    elif item.has_succeeded:
        done = _DONE.get(item.outcome, item.outcome.replace("_", " "))
        state = f"{done} at {local_time(item.succeeded_at)}"
    else:
        state = item.outcome
    setting = f"PYPI_ASSETS_{'READ_ATTEMPTS' if item.filename else 'VISITS'}_KEPT_DAYS"
    missing = "earlier" if item.attempts else "its"  # a replayed catalog has none
    deleted = f"; {missing} attempts are not in the log, which {setting} limits" if item.deleted else ""
    return f"{subject}: {state}, {counted(item.failed, 'failed attempt')}{deleted}"


@command("retry", '--kind "corrupt archive" --project requests', group=failures_group)
@click.option("--kind", help="Retry only failures of this kind, as `failures list` shows it.")
@click.option("--project", help="Retry only failures of this project.")
@JSON
def failures_retry_command(kind: str | None, project: str | None, as_json: bool) -> None:
    """Retry failed and pending reads and visits, and parse broken entries again.

    Without options, everything is retried. Pauses between attempts and the deadline are the same as in a crawl.
    """
    from pypi_assets.crawl.retry_failures import retry

    with opened_crawler() as crawler:
        result = retry(crawler, kind, project)
    if as_json:
        print_json(
            {
                "retried_reads": result.retried_reads,
                "retried_visits": result.retried_visits,
                "visits_given_up": result.exhausted_visits,
                "understood_rows": result.understood_rows,
                "reads": reads_to_json(result.reads),
            }
        )
    else:
        retried = f"{counted(result.retried_reads, 'read')} and {counted(result.retried_visits, 'visit')}"
        click.echo(f"retried {retried}: {describe_reads(result.reads)}")
    if result.understood_rows:
        print_message(f"rows of the changelog that can be parsed now: {result.understood_rows}")
    if (kind or project) and not (result.retried_reads or result.retried_visits or result.understood_rows):
        print_message(_NONE_MATCH)
    report_failed(result.reads, result.exhausted_visits)
