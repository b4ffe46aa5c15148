"""The asset of the journal: every change of a serial range, in order, in segments with a chain of hashes."""

from typing import Any

import dagster as dg

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.defs.ranges import RangeRun, RangeWork, range_asset
from pypi_assets.defs.reporting import count_log
from pypi_assets.journal.publishing import write_first_range, write_range
from pypi_assets.journal.segment_files import FORMAT, head_path


@range_asset(deps=["incremental_dump"], kinds={"json", "zstd"}, code_version=str(FORMAT))
def change_journal(run: RangeRun) -> RangeWork:
    """The changes of the package index within a range of serials, in order: a record for each event, for each file that
    it changed, and for the contents of each new file.

    A partition is a crawled range `A-B` of serials, the numbers of the index's events. Written records do not change.
    Each segment has the hash of the previous one, so that a missing or changed record is detected. The first run also
    writes the results of the first full crawl.
    """
    opened, store = run.catalog.get(), run.storage.get()
    write_first_range(opened, store, count_log(run.context, "records of the first range"))

    def write(serials: SerialRange) -> dict[str, Any]:
        written = write_range(opened, store, serials, count_log(run.context, f"records of {serials}"))
        counts = {f"records: {stream}": count for stream, count in written.records.items()}
        heads = {f"head: {one.value}": dg.MetadataValue.path(store.uri(head_path(one.value))) for one in JournalStream}
        return {
            "dagster/partition_row_count": sum(written.records.values()),
            "bytes": written.size,
            **counts,
            **heads,
        }

    return write
