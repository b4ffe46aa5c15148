"""A reader of dumps: it holds the rows of a full dump, updated by the dumps of all later ranges in order."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import RangeState, complete_serial, ledger, read_state
from pypi_assets.catalog.publications.dump_registry import (
    full_dump_rows,
    open_full_dump,
    open_range_dump,
    range_dump_rows,
)
from pypi_assets.dumps.dump_format import as_dumped

Rows = dict[str, dict[str, object]]


class DumpReader:
    """Dumps a catalog once it is exact, then each range as it completes, and keeps the resulting rows."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self.serial: int | None = None

    def go_on(self, catalog: Catalog) -> bool:
        """Dump everything that is complete now, and return whether there was anything to dump.

        Late corrections to serials that are already dumped come with the next range.
        """
        with catalog.read() as connection:
            complete, exact_from = complete_serial(connection), read_state(connection)["exact_from"]
            ranges = [entry.serials for entry in ledger(connection) if entry.state == RangeState.COMPLETE]
        before = self.serial
        if self.serial is None:
            if complete == 0 or complete < exact_from:
                return False
            self.rows, self.serial = full_dump_of(catalog), complete
        for serials in ranges:
            if self.serial <= serials.start < complete:
                for row in map(as_dumped, range_dump_rows(catalog, open_range_dump(catalog, serials))):
                    if row["tombstone"]:
                        self.rows.pop(str(row["filename"]), None)
                    else:
                        self.rows[str(row["filename"])] = row
                self.serial = serials.end
        return self.serial != before


def full_dump_of(catalog: Catalog) -> Rows:
    """Return the rows of a new full dump, by filename."""
    dump = open_full_dump(catalog, 1, since=catalog.clock() + 1.0)  # do not join an older dump
    return {str(row["filename"]): row for row in map(as_dumped, full_dump_rows(catalog, dump, 0))}
