"""The assets that follow the index: its changelog in serial ranges, the changed projects, and their new files."""

from typing import Any

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.index_state import count_broken_rows
from pypi_assets.catalog.reports.failures import failed_reads_of_range
from pypi_assets.catalog.work.visit_queue import abandoned_projects, range_workload
from pypi_assets.crawl.incremental_crawl import read_range, store_changelog, visit_range
from pypi_assets.defs.ranges import RangeRun, RangeWork, crawled_range_asset
from pypi_assets.defs.reporting import failure_counts, failure_table, total_metadata
from pypi_assets.distributions.record import EXTRACTOR_VERSION


@crawled_range_asset(deps=["package_index"])
def changelog(run: RangeRun) -> RangeWork:
    """The events of the package index, such as uploads and removals, as the index reports them.

    A partition is a range `A-B` of serials, the numbers of the index's events: the serials above A, up to and including
    B. The sensor `new_serial_range` adds the partitions; other keys are rejected.
    """
    opened = run.open_crawler()

    def store(serials: SerialRange) -> dict[str, Any]:
        events = store_changelog(opened, serials)
        with opened.catalog.read() as connection:
            broken = count_broken_rows(connection, serials)
        return {
            "dagster/partition_row_count": events.events,
            "serials": serials.end - serials.start,
            "unknown_events": events.unknown,
            "broken_rows": broken,
            "changed_projects": events.changed_projects,
        }

    return store


@crawled_range_asset(deps=["changelog"])
def changed_distributions(run: RangeRun) -> RangeWork:
    """The pages of the projects whose files have changed, requested again.

    A partition is a range `A-B` of serials, the numbers of the index's events. The projects of a complete range are
    visited again.
    """
    opened = run.open_crawler()

    def visit(serials: SerialRange) -> dict[str, Any]:
        visits = visit_range(opened, serials)
        with opened.catalog.read() as connection:
            left = abandoned_projects(connection, range_workload(serials))
        return {
            "projects": visits.total,
            "visited": visits.done,
            "gave_up": visits.exhausted,
            "open_projects": ", ".join(left),
        }

    return visit


@crawled_range_asset(
    deps=["changed_distributions"],
    code_version=str(EXTRACTOR_VERSION),
    totals=lambda run: total_metadata(run.catalog.get()),
)
def changed_distribution_data(run: RangeRun) -> RangeWork:
    """The contents and requirements of new files of changed projects, or why they are unknown.

    A partition is a range `A-B` of serials, the numbers of the index's events. It is complete once each of its projects
    was visited or abandoned, and each of their files was read or has a reason why not.
    """
    opened = run.open_crawler()

    def read(serials: SerialRange) -> dict[str, Any]:
        reads = read_range(opened, serials)
        with opened.catalog.read() as connection:
            failures = failed_reads_of_range(connection, serials, opened.max_attempts)
        return {
            **failure_table(failures, len(failures)),
            "read": reads.data,
            **failure_counts(reads.failures),
            "unsupported": reads.unsupported,
            "vanished": reads.vanished,
            "bytes_fetched": reads.bytes_fetched,
            "requests": reads.requests,
        }

    return read
