"""The command `status`, which shows the state of every stage, and what to do next."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.options import JSON, command
from pypi_assets.scopes.byte_sizes import shown_size
from pypi_assets.terminal import (
    by_depth,
    counted,
    local_time,
    plain,
    print_facts,
    print_json,
    print_message,
)

if TYPE_CHECKING:
    from pypi_assets.catalog.publications.journal_deliveries import ConsumerLag
    from pypi_assets.catalog.reports.catalog_status import OpenCrawl, RunningWork
    from pypi_assets.catalog.scopes.scope_status import ScopeStatus
    from pypi_assets.dagster_instance.activity import Activity
    from pypi_assets.settings import Settings
    from pypi_assets.status import NewestVersion, Status


@command("status")
@click.option("--recount", "is_recounted", is_flag=True, help="First count all files again, and correct wrong counts.")
@click.option("--check", "is_checked", is_flag=True, help="Exit with 1 if there is something to do.")
@JSON
def status_command(is_recounted: bool, is_checked: bool, as_json: bool) -> None:
    """Show the state of every stage, and what to do next.

    It has a line for each stage: the index, the catalog that crawls fill, the dumps, the LevelDB versions that lookups
    read, and running work. The last lines name the commands to run. The command waits at most 5 seconds for the index.
    """
    from pypi_assets.settings import load_settings
    from pypi_assets.status import read_status

    settings = load_settings()
    if is_recounted:
        _recount(settings)
    status = read_status(settings)
    pending = status.to_do()
    if as_json:
        _print_as_json(status)
    else:
        to_do = [("to do", line) for line in pending]
        running = [("running", _describe_running(one, status)) for one in status.catalog.running]
        print_facts([*_facts(status, settings), *running, *(to_do or [("state", _describe_state(status))])])
    if is_checked and pending:
        raise SystemExit(1)


def _recount(settings: "Settings") -> None:
    from pypi_assets.cli.contexts import existing_catalog
    from pypi_assets.upkeep.live_totals import recount

    with existing_catalog(settings) as catalog:
        differences = recount(catalog)
    for name, difference in differences.items():
        print_message(f"the count of {name} was {abs(difference)} too {'low' if difference > 0 else 'high'}: corrected")
    if not differences:
        print_message("all counts are correct")


def _describe_state(status: "Status") -> str:
    """Return why there is nothing to do: failures are retried later, and a lag is recent or work is in progress."""
    if status.catalog.complete_serial is None:
        return "working on it"
    failed, failing = status.outcomes["failed"], status.catalog.visited.failing
    counts = [counted(count, noun) for count, noun in ((failed, "file"), (failing, "visit")) if count]
    remarks = [f"{' and '.join(counts)} failed: `pypi-assets failures list`"] if counts else []
    if status.lag.serials or status.answers.serials:
        remarks.append("the lag is recent: `pypi-assets follow --once` ends it now")
    if remarks:
        return f"nothing to do yet ({'; '.join(remarks)})"
    if status.catalog.followed.observed_serial is None:
        return "all is well"
    return "all is well as of the last polls: `pypi-assets follow --once --now` polls all projects now"


def _print_as_json(status: "Status") -> None:
    from pypi_assets.status import status_to_json

    for error in (status.lag.index_error, status.storage_error, status.dagster_error):
        if error:
            print_message(error)
    crawl = status.catalog.open_crawl
    print_json(
        status_to_json(
            status,
            running_since=[local_time(one.since) for one in status.catalog.running],
            expected_end=local_time(crawl.expected_end if crawl else None),
            last_full_crawl=local_time(status.catalog.last_crawl_completed_at),
            longest_unvisited=local_time(status.catalog.visited.longest_unvisited_at),
        )
    )


def _facts(status: "Status", settings: "Settings") -> Iterator[tuple[str, object]]:
    from sqlalchemy.engine import make_url

    from pypi_assets.index.urls import redact

    serial = status.lag.index_serial
    if status.is_mirror:
        yield (
            "mirror",
            "sends no request to an index, and publishes nothing itself: `pypi-assets mirror status` shows its source",
        )
    else:
        known = "its last serial is not known" if serial is None else f"last serial {serial}"
        yield "index", f"{redact(settings.index_url)}, {known}"
    if hosts := _describe_file_hosts(status):
        yield "file hosts", hosts
    yield "catalog", _describe_catalog(status)
    if status.catalog.open_crawl or status.catalog.complete_serial is not None:
        yield "distributions", _describe_distributions(status)
        yield "visits", _describe_visits(status)
    for scope in status.catalog.scopes:
        yield "scope", _describe_scope(scope)
    if (kept := status.catalog.kept).files:
        corrupt = f", {kept.corrupt} corrupt" if kept.corrupt else ""
        yield "kept files", f"{counted(kept.files, 'file')}, {shown_size(kept.bytes)}{corrupt}"
    if unexplained := status.catalog.unexplained_changes:
        yield (
            "unexplained",
            f"{counted(unexplained, 'change')} of files that pages show and no event explains",
        )
    if broken := sum(status.catalog.broken_entries.values()):
        yield "broken entries", f'{broken} of the index, set aside: `pypi-assets failures list --kind "broken entry"`'
    if missing := status.missing_containment:
        yield "readers", f"not fully contained on this system: {'; '.join(map(str, missing))}"
    if crawl := status.catalog.open_crawl:
        yield "full crawl", _describe_crawl(crawl)
    yield "dumps", _describe_dumps(status)
    for name, newest in status.leveldbs.items():
        yield name, _describe_version(newest)
    yield "answers", _describe_answers(status)
    if status.due.journal.serial is not None:
        yield "journal", _describe_journal(status)
    if status.dagster:
        yield "dagster", _describe_dagster(status.dagster)
    for consumer in status.catalog.consumers:
        yield "consumer", _describe_consumer(consumer)
    database = make_url(settings.resolved_database_url)
    database = database.set(drivername=database.get_backend_name())  # as it is written in the setting
    yield "database", database.render_as_string(hide_password=True)
    yield "storage", settings.resolved_storage_url


def _describe_file_hosts(status: "Status") -> str | None:
    """Return the hosts besides the index's own, and where they come from; None without others."""
    if not status.file_hosts:
        return None
    is_listed = isinstance(status.settings.allowed_file_hosts, tuple)
    by = "from PYPI_ASSETS_ALLOWED_FILE_HOSTS" if is_listed else "which the first pages of the index named"
    return f"{plain(status.file_hosts)}, {by}"


def _describe_catalog(status: "Status") -> str:
    if status.catalog.complete_serial is None:
        first = "scope" if status.due.crawl.is_scoped else "full crawl"
        return f"no {first} is complete yet, so there are no answers yet"
    text = f"complete up to serial {status.catalog.complete_serial}, exact from {status.catalog.exact_from}"
    if status.lag.serials is not None:
        text += f", lags the index by {counted(status.lag.serials, 'serial')}{_describe_age(status.lag.seconds)}"
    if status.catalog.followed_projects is not None:
        text += f", about {counted(status.catalog.followed_projects, 'followed project')}"
    if status.catalog.open_ranges:
        text += f"; open ranges: {status.catalog.open_ranges}, running: {status.catalog.running_ranges}"
    return text


def _describe_scope(one: "ScopeStatus") -> str:
    depths = by_depth(one.depths)
    parts = [f"{one.scope.name}: {one.state}", f"{counted(one.projects, 'project')}{f' ({depths})' if depths else ''}"]
    left = {"entering": one.entering, "visits left": one.visits.todo, "reads left": one.reads_left}
    parts += [f"{count} {what}" for what, count in left.items() if count]
    return ", ".join(parts)


def _describe_journal(status: "Status") -> str:
    serials, seconds = status.journal_lag
    text = f"up to serial {status.due.journal.serial}"
    return f"{text}, lags the catalog by {counted(serials, 'serial')}{_describe_age(seconds)}" if serials else text


def _describe_dagster(activity: "Activity") -> str:
    """Return the runs that have not ended and the sensors that are off."""
    runs = [f"{name}: {counted(count, 'run')}" for name, count in activity.runs.items()]
    off = ", ".join(activity.sensors_off)
    sensors = f"sensors that are off: {off} (PYPI_ASSETS_SENSORS_ON)" if off else "all sensors are on"
    return "; ".join([", ".join(runs) or "no run", sensors])


def _describe_consumer(one: "ConsumerLag") -> str:
    text = f"{one.name}: up to serial {one.serial}"
    if one.lag_serials:
        text += f", lags by {counted(one.lag_serials, 'serial')}{_describe_age(one.lag_seconds)}"
    letters = {"waiting": one.waiting, "dead": one.dead}
    return text + "".join(f", {counted(count, 'letter')} {state}" for state, count in letters.items() if count)


def _describe_answers(status: "Status") -> str:
    lag = status.answers
    if lag.serial is None:
        return "none: no LevelDB version is known"
    if lag.serials is None:
        return f"up to serial {lag.serial}; it is not known how far they lag the index"
    return f"up to serial {lag.serial}, lag the index by {counted(lag.serials, 'serial')}{_describe_age(lag.seconds)}"


def _describe_dumps(status: "Status") -> str:
    if not any(status.dump_counts.values()):
        return "none yet"
    counts = ", ".join(f"{count} {kind}" for kind, count in status.dump_counts.items() if count)
    return f"{counts}; they reach serial {plain(status.cover.serial or None)}"


def _describe_version(newest: "NewestVersion") -> str:
    return "no version yet" if newest.version is None else f"version {newest.version}, serial {plain(newest.serial)}"


def _describe_running(work: "RunningWork", status: "Status") -> str:
    """Return running work, its start and progress, and the processes that work on it."""
    since = "" if work.since is None else f" since {local_time(work.since)}"
    age = None if work.since is None else status.lag.measured_at - work.since
    by = "1 process" if work.processes == 1 else f"{work.processes} processes"
    by += f" on {', '.join(work.hosts)}" if work.hosts else ""
    if not work.projects:
        return f"{work.name}{since}{_describe_age(age)} by {by}: projects are being listed"
    done = f"{work.projects_done} of {counted(work.projects, 'project')} visited"
    done += f", {counted(work.reads_left, 'distribution')} left to read"
    return f"{work.name}{since}{_describe_age(age)} by {by}: {done}"


def _describe_age(seconds: float | None) -> str:
    """Return the age in parentheses, or an empty string if it is below a minute."""
    return "" if seconds is None or seconds < 60 else f" ({timedelta(seconds=round(seconds))})"


def _describe_distributions(status: "Status") -> str:
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in status.outcomes.items() if count]
    return ": ".join([f"{status.catalog.live_distributions} live", *([", ".join(counts)] if counts else [])])


def _describe_visits(status: "Status") -> str:
    visited, exhausted = status.catalog.visited, status.catalog.failed_visits
    never = visited.never_visited
    crawl = status.catalog.open_crawl
    everything = "every project" if crawl is None or crawl.limited_to is None else "every project of the trial"
    parts = [f"{counted(never, 'project')} not visited yet" if never else f"{everything} was visited"]
    if visited.failing:
        parts.append(f"the last visit of {counted(visited.failing, 'project')} failed")
    if exhausted:
        parts.append(f"{exhausted} exhausted")
    if visited.longest_unvisited_at is not None:
        parts.append(f"the oldest visit was at {local_time(visited.longest_unvisited_at)}")
    return "; ".join(parts)


def _describe_crawl(crawl: "OpenCrawl") -> str:
    shards = f"{crawl.shards_done} of {counted(crawl.shards, 'shard')}"
    projects = (
        f"{crawl.projects_done} of {counted(crawl.projects, 'project')}, {crawl.projects_per_second:.1f} a second"
    )
    expected_end = "not known yet" if crawl.expected_end is None else local_time(crawl.expected_end)
    if crawl.limited_to is not None:
        return (
            f"partial, open at serial {crawl.serial}: a trial (`--limit {crawl.limited_to}`), {projects};"
            " the rest of the index was not visited"
        )
    return f"open at serial {crawl.serial}: {shards}, {projects}, expected end {expected_end}"
