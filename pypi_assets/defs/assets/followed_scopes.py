"""The assets of scopes: the projects that their roots lead to, and the contents of their files."""

from typing import Any

import dagster as dg

from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.catalog_status import read_followed
from pypi_assets.catalog.scopes.scope_status import ScopeStatus, scope_status
from pypi_assets.catalog.scopes.stored_scopes import require_scope
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.scope_crawl import find_scope_projects, run_scope
from pypi_assets.defs.factories import crawl_asset
from pypi_assets.defs.policy import scope_names
from pypi_assets.defs.reporting import failure_counts, marking, progress_log, total_metadata
from pypi_assets.defs.resources import CrawlerResource
from pypi_assets.distributions.record import EXTRACTOR_VERSION


@crawl_asset(partitions=scope_names, deps=["package_index"])
def scope_projects(context: dg.AssetExecutionContext, crawler: CrawlerResource) -> dg.MaterializeResult[None]:
    """The pages of the projects that a scope leads to. Files that may lead to further projects are read, to find them
    all.

    A partition is a scope, by its name. `pypi-assets scope create` makes one, and the sensor `scope_work` adds it here.
    The list of all projects is never requested.
    """
    with marking(context) as mark:
        opened = crawler.get(progress_log(context), context.log.warning)
        for name in context.partition_keys:
            find_scope_projects(opened, name)
            mark(name, _project_metadata(_status(opened, name)))
        mark.data_version = _complete_serial(opened)
    return mark.result()


@crawl_asset(partitions=scope_names, deps=["scope_projects"], code_version=str(EXTRACTOR_VERSION))
def scope_distribution_data(context: dg.AssetExecutionContext, crawler: CrawlerResource) -> dg.MaterializeResult[None]:
    """The contents and requirements of the files of a scope's projects, or why they are unknown.

    A partition is a scope, by its name. After a run, it has no pending work until the index changes.
    """
    with marking(context) as mark:
        opened = crawler.get(progress_log(context), context.log.warning)
        for name in context.partition_keys:
            reads = run_scope(opened, name).reads
            mark(
                name,
                _project_metadata(found := _status(opened, name))
                | _file_metadata(found)
                | failure_counts(reads.failures)
                | {"bytes_fetched": reads.bytes_fetched, "requests": reads.requests},
            )
        mark.data_version = _complete_serial(opened)
        return mark.result(total_metadata(opened.catalog))


def _complete_serial(crawler: Crawler) -> str | None:
    """Return the serial up to which the catalog is complete; None before the first scope is complete."""
    with crawler.catalog.read() as connection:
        serial = read_followed(connection).complete_serial
    return None if serial is None else str(serial)


def _status(crawler: Crawler, name: str) -> ScopeStatus:
    with crawler.catalog.read() as connection:
        return scope_status(connection, require_scope(connection, name), crawler.catalog.clock())


def _project_metadata(found: ScopeStatus) -> dict[str, Any]:
    """Return numbers of a scope that are worth a plot: discovered projects, and their progress."""
    depths = {f"projects at depth {depth}": count for depth, count in found.depths.items()}
    return depths | {
        "discovered": found.projects,
        "beyond_depth": found.beyond,
        "entering": found.entering,
        "entered_late": found.late,
        "visited": found.visits.done,
        "gave_up": found.visits.exhausted,
        "visits_left": found.visits.todo,
        "reads_left": found.reads_left,
    }


def _file_metadata(found: ScopeStatus) -> dict[str, Any]:
    """Return numbers of a scope's files that are live now."""
    return {
        "dagster/partition_row_count": sum(found.files.values()),
        "read": found.files[ReadOutcome.DATA],
        "skipped": found.files[ReadOutcome.SKIPPED],
        "unsupported": found.files[ReadOutcome.UNSUPPORTED],
    }
