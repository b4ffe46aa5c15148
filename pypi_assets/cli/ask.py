"""Commands that ask: how things stand, what the catalog tells of projects and of ranges."""

import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from sqlalchemy.engine import make_url

from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.catalog_status import answerable_serial, live_files
from pypi_assets.catalog.reports.past_visits import compare_visits, past_visits
from pypi_assets.catalog.reports.project_history import VISIT, read_history
from pypi_assets.catalog.reports.range_states import range_statuses
from pypi_assets.catalog.work.full_crawls import followed_index
from pypi_assets.cli.opening import opened_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.index.actions import Action
from pypi_assets.index.urls import redact
from pypi_assets.metrics import StatusMetrics
from pypi_assets.settings import load_settings
from pypi_assets.status import Status, query_last_serial, read_status, status_to_json
from pypi_assets.terminal import (
    local_time,
    plain,
    print_facts,
    print_json,
    print_json_rows,
    print_rows,
    print_table,
    say,
    utc_time,
)

_SHOWN_COMPLETE_RANGES = 10
_METRICS_EVERY_S = 60.0
_GREATEST_PORT = 65_535
_VISIT_COLUMNS = ("visit", "scope", "attempt", "started_at", "outcome", "page_serial", "files", "snapshot", "text")
_DIFFERENCE_COLUMNS = ("filename", "change", "sha256_before", "sha256_after")


def _address(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, int] | None:
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _GREATEST_PORT:
        raise click.BadParameter(f"{value} is not HOST:PORT, such as 127.0.0.1:9464")
    return host.strip("[]"), int(port)


@command("status")
@JSON
def status_command(as_json: bool) -> None:
    """How things stand: index, catalog, dumps, LevelDB versions, and what to do next."""
    settings = load_settings()
    status = read_status(settings)
    crawl, visited = status.catalog.open_crawl, status.catalog.visited
    longest_unvisited = local_time(visited.longest_unvisited_at)
    expected_end = local_time(crawl.expected_end if crawl else None)
    if as_json:
        for error in (status.lag.index_error, status.storage_error):
            if error:
                say(error)
        last_full_crawl = local_time(status.catalog.last_crawl_completed_at)
        print_json(
            status_to_json(
                status,
                expected_end=expected_end,
                last_full_crawl=last_full_crawl,
                longest_unvisited=longest_unvisited,
            )
        )
        return
    facts = [("index", f"{redact(settings.index_url)}, serial {plain(status.lag.index_serial)}")]
    facts += [("catalog", _told_catalog(status)), ("distributions", _told_distributions(status))]
    told = f"{visited.never_visited} projects never visited, the last visit of {visited.failing} failed"
    told += f", {status.catalog.failed_visits} given up" if status.catalog.failed_visits else ""
    facts.append(("visits", f"{told}, longest unvisited since {plain(longest_unvisited)}"))
    if unexplained := status.catalog.unexplained_changes:
        facts.append(("unexplained", f"{unexplained} changes of files that no event explains; the pages were believed"))
    if crawl is not None:
        told = f"open at serial {crawl.serial}: {crawl.shards_done} of {crawl.shards} shards"
        told += f", {crawl.projects_done} of {crawl.projects} projects, {crawl.projects_per_second:.1f} a second"
        facts.append(("full crawl", f"{told}, expected end {plain(expected_end)}"))
    counts = ", ".join(f"{count} {kind}" for kind, count in status.dump_counts.items())
    facts.append(("dumps", f"{counts}; they reach serial {plain(status.cover.serial or None)}"))
    for name, newest in status.leveldbs.items():
        facts.append((name, f"version {plain(newest.version)}, serial {plain(newest.serial)}"))
    facts.append(("database", make_url(settings.resolved_database_url).render_as_string(hide_password=True)))
    facts.append(("storage", settings.resolved_storage_url))
    print_facts(facts + ([("to do", line) for line in status.to_do()] or [("state", "all is well")]))


def _told_catalog(status: Status) -> str:
    if status.catalog.complete_serial is None:
        return "no full crawl is complete yet"
    told = f"complete up to serial {status.catalog.complete_serial}, exact from {status.catalog.exact_from}"
    if status.lag.serials is not None:
        told += f", {status.lag.serials} serials{_told_age(status.lag.seconds)} behind the index"
    if status.catalog.open_ranges:
        told += f"; open ranges: {status.catalog.open_ranges}, running: {status.catalog.running_ranges}"
    return told


def _told_age(seconds: float | None) -> str:
    """Since when, where that is a minute or more."""
    return "" if seconds is None or seconds < 60 else f" ({timedelta(seconds=round(seconds))})"


def _told_distributions(status: Status) -> str:
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in status.outcomes.items() if count]
    return ": ".join([f"{status.catalog.live_distributions} live", *([", ".join(counts)] if counts else [])])


@command("files", "--project requests --at-serial 1200")
@click.option("--project", help="Only the files of this project.")
@click.option("--at-serial", type=click.IntRange(0), help="As of this serial; default: the complete serial.")
@JSON
def files_command(project: str | None, at_serial: int | None, as_json: bool) -> None:
    """The distributions that are live in the catalog."""
    with opened_catalog(load_settings()) as catalog:
        serial = answerable_serial(catalog, at_serial)
        with catalog.read() as connection:
            known = project is None or find_project(connection, project) is not None
        if not known:
            say(f"the catalog knows no project {project}")
        columns = ("filename", "project", "version", "kind", "yanked", "outcome", "live_since")
        count = print_rows(columns, (asdict(file) for file in live_files(catalog, serial, project)), as_json)
        if known and not count:
            say(f"no distribution {f'of {project} ' if project else ''}is live at serial {serial}")


@command("history", "requests --all")
@click.argument("project")
@click.option(
    "--all", "everything", is_flag=True, help="Also events that change no files: roles, renames and the like."
)
@JSON
def history_command(project: str, everything: bool, as_json: bool) -> None:
    """The story of PROJECT: what happened to it at which serial, and the visits of its page."""
    with opened_catalog(load_settings()) as catalog, catalog.read() as connection:
        known = find_project(connection, project)
        story = [] if known is None else read_history(connection, known)
    rows = [asdict(entry) | {"at": utc_time(entry.at)} for entry in story if everything or entry.kind != Action.IGNORED]
    if as_json:
        print_json_rows(rows)
    else:
        print_table(("serial", "time", "what", "live", "away"), map(_told_entry, rows))
    if known is None:
        say(f"the catalog knows no project {project}")


def _told_entry(row: dict[str, Any]) -> tuple[object, ...]:
    outcome = "" if row["kind"] == VISIT else row["outcome"]
    what = ": ".join(part for part in (row["text"], outcome, row["error"]) if part)
    flags = [f"{len(row[flag])} files {flag}" for flag in ("yanked", "unyanked") if row[flag]]
    counts = (f"+{len(row['live'])}" if row["live"] else "", f"-{len(row['away'])}" if row["away"] else "")
    return (row["serial"], row["at"], "; ".join([what, *flags]), *counts)


@command("visits", "requests --compare 1 3")
@click.argument("project")
@click.option("--compare", type=click.IntRange(1), nargs=2, help="How the files that two visits saw differ.")
@JSON
def visits_command(project: str, compare: tuple[int, int] | None, as_json: bool) -> None:
    """The visits of PROJECT's page and what came of them, or how the files that two of them saw differ."""
    rows: list[dict[str, Any]] = []
    nothing = f"the catalog knows no project {project}"
    with opened_catalog(load_settings()) as catalog, catalog.read() as connection:
        known = find_project(connection, project)
        if known and compare:
            rows = [asdict(difference) for difference in compare_visits(connection, known, *compare)]
            nothing = f"visits {compare[0]} and {compare[1]} of {known.name} saw the same files"
        elif known:
            rows = [asdict(visit) for visit in past_visits(connection, known)]
            nothing = f"{known.name} has not been visited yet"
    for row in rows:
        row.update({time: utc_time(row[time]) for time in ("started_at", "ended_at") if time in row})
    if not print_rows(_DIFFERENCE_COLUMNS if compare else _VISIT_COLUMNS, rows, as_json):
        say(nothing)


@command("ranges", "--all")
@click.option("--all", "all_ranges", is_flag=True, help="Also those that have long been complete.")
@JSON
def ranges_command(all_ranges: bool, as_json: bool) -> None:
    """The serial ranges of the ledger: complete, running, failed, interrupted, waiting, and missing up to the index."""
    settings = load_settings()
    with opened_catalog(settings) as catalog:
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
    rows = [
        {
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
        for status in found
    ]
    if problem:
        say(problem)
    if inexact := [status.serials.key for status in found if status.exact_from is not None]:
        say(f"the list of projects told what changed in {', '.join(inexact)}; of its single events nothing is known")
    if not print_rows(columns, rows, as_json):
        say("there are no ranges: run `pypi-assets crawl full` first")


@command("metrics", "--listen 127.0.0.1:9464")
@click.option("--file", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write them whole to this file.")
@click.option("--listen", metavar="HOST:PORT", callback=_address, help="Answer at this address, until stopped.")
@click.option(
    "--every", type=click.FloatRange(1), metavar="SECONDS", help="Take them so often, until stopped; --listen: 60."
)
def metrics_command(path: Path | None, listen: tuple[str, int] | None, every: float | None) -> None:
    """How things stand as metrics for Prometheus: printed, written to a file, or served."""
    taken = StatusMetrics(load_settings())
    taken.take()
    if listen:
        say(f"answers at {taken.listen(*listen)}")
    while True:
        if path:
            taken.write(path)
        elif not listen:
            click.echo(taken.text(), nl=False)
        if not (every or listen):
            return
        time.sleep(every or _METRICS_EVERY_S)
        taken.take()


COMMANDS = (status_command, metrics_command, files_command, history_command, visits_command, ranges_command)
