"""Holds committed dumps against the catalog: as many rows as the catalog counts."""

from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_facts import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump, count_changed
from pypi_assets.catalog.reports.live_files import count_live
from pypi_assets.dumps.dump_manifest import read_manifest
from pypi_assets.storage.store import Storage


@dataclass(frozen=True, slots=True)
class DumpAudit:
    """The rows that a dump's manifest promises, and those that the catalog counts for it: `expected` without, and
    `at_most` with what was learnt late, some of which a dump that was written again has."""

    directory: str
    rows: int
    expected: int
    at_most: int

    @property
    def ok(self) -> bool:
        return self.expected <= self.rows <= self.at_most


def audit_dump(catalog: Catalog, storage: Storage, dump: Dump) -> DumpAudit:
    """Counts what is live at a full dump's serial, or what changed in a range. Raises DumpDamagedError."""
    manifest = read_manifest(storage, dump.directory)
    with catalog.read() as connection:
        if dump.kind == DumpKind.FULL:
            expected = at_most = count_live(connection, dump.serials.end)
        else:
            expected, at_most = count_changed(connection, dump.serials)
    return DumpAudit(dump.directory, manifest.rows, expected, at_most)
