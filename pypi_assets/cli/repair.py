"""Commands for what failed, and for what is kept of each distribution: looked at, read anew, cleaned; and for the
catalog's tables."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from packaging.utils import canonicalize_name

from pypi_assets import terminal
from pypi_assets.assembly import limits_from, readers_from, storage_from
from pypi_assets.catalog.database import migrate_catalog
from pypi_assets.catalog.reports.failures import Failure, FailureGroup, group_failures, list_failures
from pypi_assets.cli.crawl import describe_reads, report_failed
from pypi_assets.cli.opening import opened_catalog, opened_crawler
from pypi_assets.cli.options import JSON, command
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.retry import retry
from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import EXTRACTOR_VERSION, DistributionRecord
from pypi_assets.distributions.record_building import record_to_json
from pypi_assets.extracts.packs import clean_packs
from pypi_assets.extracts.reprocess import PROCESSES, reprocess, stored_records
from pypi_assets.settings import load_settings
from pypi_assets.terminal import (
    local_time,
    plain,
    print_facts,
    print_json,
    print_json_rows,
    print_rows,
    print_table,
    say,
)

_OUTCOMES = ("error", "gave up", "waiting")


@click.group("failures")
def failures_group() -> None:
    """What could not be read or visited, and trying it again."""


@click.group("extracts")
def extracts_group() -> None:
    """What was kept of each distribution that was read."""


@command("list", '--kind "corrupt archive"', group=failures_group)
@click.option("--kind", help="List each failure of this kind.")
@click.option("--project", help="List each failure of this project.")
@JSON
def failures_list_command(kind: str | None, project: str | None, as_json: bool) -> None:
    """Distributions that could not be read, and projects that could not be visited, by the kind of failure."""
    settings = load_settings()
    normalized = None if project is None else canonicalize_name(project)
    with opened_catalog(settings) as catalog, catalog.read() as connection:
        found = list_failures(connection, settings.max_attempts, kind, normalized)
        each = None if kind is project is None else list(found)
        groups = group_failures(found if each is None else each)
    if as_json:
        listed = None if each is None else [_told_failure(failure) for failure in each]
        print_json({"groups": [_told_group(group) for group in groups], "failures": listed})
    elif each is None:
        print_table(("kind", "count", *_OUTCOMES, "examples"), (_group_row(group) for group in groups))
    else:
        columns = ("project", "filename", "outcome", "kind", "attempts", "attempts_remaining", "next_due", "text")
        print_rows(columns, (_told_failure(failure) for failure in each), as_json=False)
    if not groups:
        say("nothing has failed" if each is None else "nothing of that has failed; see `pypi-assets failures list`")


def _told_failure(failure: Failure) -> dict[str, Any]:
    return asdict(failure) | {"next_due": local_time(failure.next_due)}


def _told_group(group: FailureGroup) -> dict[str, Any]:
    return asdict(group) | {"examples": [_told_failure(failure) for failure in group.examples]}


def _group_row(group: FailureGroup) -> list[object]:
    examples = ", ".join(failure.filename or failure.project for failure in group.examples)
    counts = [group.outcomes.get(outcome, 0) for outcome in _OUTCOMES]
    return [group.kind, group.count, *counts, examples]


@command("retry", '--kind "corrupt archive" --project requests', group=failures_group)
@click.option("--kind", help="Only failures of this kind, as `failures list` shows it.")
@click.option("--project", help="Only failures of this project.")
@JSON
def failures_retry_command(kind: str | None, project: str | None, as_json: bool) -> None:
    """Try again what failed, and what is pending; as patient as a crawl."""
    with opened_crawler() as crawler:
        result = retry(crawler, kind, project)
    if as_json:
        print_json(asdict(result))
    else:
        retried = f"{result.retried_reads} reads and {result.retried_visits} visits"
        click.echo(f"tried {retried} again: {describe_reads(result.reads)}")
    if (kind or project) and not result.retried_reads and not result.retried_visits:
        say("nothing of that has failed; see `pypi-assets failures list`")
    report_failed(result.reads, result.visits_given_up)


@command("audit", "--share 10")
@click.option(
    "--share",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Of all projects, those unvisited for longest are visited too; default: PYPI_ASSETS_AUDIT_SHARE_PERCENT.",
)
@JSON
def audit_command(share: float | None, as_json: bool) -> None:
    """Compare every project's serial with the index's list, visit those that differ, and say what drift was found."""
    share = load_settings().audit_share_percent if share is None else share
    with opened_crawler() as crawler:
        result = audit_index(crawler, share)
    audit, findings = result.audit, result.audit.findings
    if as_json:
        print_json(
            {
                "serial": audit.serial,
                "share_percent": audit.share_percent,
                "visited": result.visits.done,
                "visits_given_up": result.visits.exhausted,
                "drift": findings.counts,
                "examples": findings.examples,
                "reads": asdict(result.reads),
            }
        )
    else:
        found = ", ".join(f"{count} {cause}" for cause, count in findings.counts.items()) or "no drift"
        click.echo(f"audit at serial {audit.serial}: {result.visits.done} projects visited, {found}")
        for cause, projects in findings.examples.items():
            click.echo(f"  {cause}: {plain(projects)}")
    report_failed(result.reads, result.visits.exhausted)


@command("reprocess", "--project requests")
@click.option(
    "--older-than-version",
    type=click.IntRange(1),
    default=EXTRACTOR_VERSION,
    show_default=True,
    help="Records that an extractor older than this made; the default is the one of today.",
)
@click.option("--project", help="Only the records of this project.")
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=PROCESSES,
    help="How many processes read at once, of some 100 MB each; by default one for each core, and 8 at most.",
)
@JSON
def reprocess_command(older_than_version: int, project: str | None, processes: int, as_json: bool) -> None:
    """Make records anew from what was kept of the distributions, without a request to the index.

    The next full dump tells what changed.
    """
    settings = load_settings()
    with (
        opened_catalog(settings) as catalog,
        readers_from(settings) as readers,
        terminal.progress_shown() as report,
    ):
        result = reprocess(
            catalog,
            storage_from(settings),
            readers,
            older_than=older_than_version,
            project=project,
            processes=processes,
            report=report,
        )
    if as_json:
        print_json(asdict(result))
    else:
        click.echo(
            f"{result.looked_at} records made anew in {result.seconds:.1f} s, {result.changed} of them changed:"
            f" {result.gained_modules} gained modules, {result.lost_modules} lost modules,"
            f" {result.changed_requirements} have other requirements, {result.changed_errors} another error or none"
        )
        for sort, examples in result.examples.items():
            for example in examples:
                click.echo(f"  {sort}: {plain(example)}")
    if result.overtaken:
        say(f"read anew meanwhile, and left as they are: {result.overtaken}")
    if result.unread:
        say(f"no record could be made of {result.unread}: they keep theirs; broken packs: {len(result.broken_packs)}")
    for problem in result.problems:
        say(problem)


@command("clean", "--dry-run", group=extracts_group)
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@JSON
def extracts_clean_command(dry_run: bool, as_json: bool) -> None:
    """Delete the packs that no distribution points to and that are older than a day."""
    settings = load_settings()
    with opened_catalog(settings) as catalog:
        cleaned = clean_packs(catalog, storage_from(settings), dry_run=dry_run)
    if as_json:
        print_json(asdict(cleaned))
        return
    done = "would be deleted" if dry_run else "deleted"
    click.echo(f"{len(cleaned.deleted)} of {cleaned.packs} packs {done}, {cleaned.size} bytes")


@command("inspect", "dist/demo-1.0-py3-none-any.whl dist/demo-1.0.tar.gz")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--from-extract", is_flag=True, help="FILES are names of distributions: read their stored extracts.")
@click.option("--project", help="With --from-extract: the project that they belong to, if the names do not tell.")
@JSON
def inspect_command(files: tuple[Path, ...], from_extract: bool, project: str | None, as_json: bool) -> None:
    """Read distributions from disk, without running anything of them, and print their records."""
    if from_extract:
        _inspect_extracts([str(filename) for filename in files], project, as_json)
        return
    if project is not None:
        raise click.BadParameter("it is read only with --from-extract", param_hint="--project")
    for path in files:
        if not path.is_file():
            raise click.BadParameter(f"file {str(path)!r} does not exist", param_hint="FILES")
    limits = limits_from(load_settings())
    unread = 0

    def records() -> Iterator[DistributionRecord]:
        nonlocal unread
        for path in files:
            try:
                yield read_path(path, limits=limits)
            except OSError as error:
                unread += 1
                say(f"cannot read {path}: {error.strerror or error}")

    if as_json:
        print_json_rows(record_to_json(record) for record in records())
    else:
        for record in records():
            _print_record(record_to_json(record))
    if unread:
        raise click.exceptions.Exit(1)


@command("migrate")
@JSON
def migrate_command(as_json: bool) -> None:
    """Bring the catalog's tables up to date after an upgrade of pypi-assets.

    Stop all that works with it, and back it up before.
    """
    before, after = migrate_catalog(load_settings().resolved_database_url)
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        click.echo(f"the catalog has schema {after}, and is up to date")
    else:
        click.echo(f"the catalog has schema {after} now" + (f", and had {before}" if before else ", and had no tables"))


def _inspect_extracts(filenames: Sequence[str], project: str | None, as_json: bool) -> None:
    settings = load_settings()
    with opened_catalog(settings) as catalog:
        storage = storage_from(settings, read_only=True)
        found = [one for filename in filenames for one in stored_records(catalog, storage, filename, project)]
    rows = [
        record_to_json(record)
        | {"of_project": place.project, "pack": place.pack, "offset": place.offset, "extract_bytes": place.length}
        for place, record in found
    ]
    if as_json:
        print_json_rows(rows)
        return
    for row in rows:
        _print_record(row)


def _print_record(fields: dict[str, object]) -> None:
    shown = fields | {"error": ": ".join(fields["error"].values()) if isinstance(fields["error"], dict) else None}
    empty: tuple[object, ...] = (None, [], {}, False)
    print_facts((name.replace("_", " "), value) for name, value in shown.items() if value not in empty)
    click.echo()


COMMANDS = (failures_group, audit_command, reprocess_command, extracts_group, inspect_command, migrate_command)
