"""Compare the rows of committed dumps with the counts of the catalog."""

from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump, count_changed
from pypi_assets.catalog.reports.live_files import count_live
from pypi_assets.dumps.dump_manifest import read_manifest
from pypi_assets.storage.store import Storage


@dataclass(frozen=True, slots=True)
class DumpAudit:
    """The number of rows in a dump's manifest, and the number that the catalog expects.

    `expected` does not include late changes, and `at_most` does. A dump that was written again has some of them.
    """

    directory: str
    rows: int
    expected: int
    at_most: int

    @property
    def ok(self) -> bool:
        return self.expected <= self.rows <= self.at_most


def audit_dump(catalog: Catalog, storage: Storage, dump: Dump) -> DumpAudit:
    """Count the live files at a full dump's serial, or the changes in a range. Raises DumpDamagedError."""
    manifest = read_manifest(storage, dump.directory)
    with catalog.read() as connection:
        if dump.kind == DumpKind.FULL:
            expected = at_most = count_live(connection, dump.serials.end)
        else:
            expected, at_most = count_changed(connection, dump.serials)
    return DumpAudit(dump.directory, manifest.rows, expected, at_most)
