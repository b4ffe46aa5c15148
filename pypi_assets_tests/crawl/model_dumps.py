"""What a reader of dumps has: the rows of a full dump, and of the dumps of all ranges after it, in order."""

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
    """Dumps a catalog as soon as it is exact, and each range that is complete since; keeps what follows from that."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self.serial: int | None = None

    def go_on(self, catalog: Catalog) -> bool:
        """Dumps what is complete now; returns whether that was anything.

        What is known better later, of serials that are dumped already, comes with the next range.
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
    """The rows of a new full dump, by filename."""
    dump = open_full_dump(catalog, 1, since=catalog.clock() + 1.0)  # an older one is not joined
    return {str(row["filename"]): row for row in map(as_dumped, full_dump_rows(catalog, dump, 0))}
