"""The command that shows the state of every stage, and what to do next."""

from datetime import timedelta

from sqlalchemy.engine import make_url

from pypi_assets.cli.options import JSON, command
from pypi_assets.index.urls import redact
from pypi_assets.settings import load_settings
from pypi_assets.status import Status, read_status, status_to_json
from pypi_assets.terminal import (
    local_time,
    plain,
    print_facts,
    print_json,
    print_message,
)


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
                print_message(error)
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
