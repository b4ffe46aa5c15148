"""The commands `pypi-assets failures ...`, which list and retry failed reads and visits."""

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

_OUTCOMES = ("error", "gave up", "waiting")
_NO_FAILURES = "nothing has failed"
_NONE_MATCH = "no failure matches; see `pypi-assets failures list`"


@click.group("failures")
def failures_group() -> None:
    """List and retry failed reads and visits.

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
