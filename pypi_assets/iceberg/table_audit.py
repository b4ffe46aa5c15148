"""Compare the newest snapshots of the tables with the catalog: the numbers of rows, and the rows of one bucket."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.events import stored_event_count
from pypi_assets.catalog.reports.live_files import count_live, live_files
from pypi_assets.iceberg.table_catalog import OpenTables, TablesError
from pypi_assets.iceberg.table_columns import DERIVED, EVENTS, FILES

if TYPE_CHECKING:
    import pyarrow as pa

_COMPARED = ("filename", "project", "version", "kind", "sha256", "size", "yanked", "live_since", "url", "uploaded_at")
"""The columns that do not depend on when a file was read."""


@dataclass(frozen=True, slots=True)
class TableCount:
    """The number of rows of a table, and the number that the catalog counts at the table's serial."""

    name: str
    serial: int
    rows: int
    expected: int


def count_rows(catalog: Catalog, tables: OpenTables) -> list[TableCount]:
    """Return the counts of `files` and `events`. Raises TablesError if there are no tables."""
    from pypi_assets.iceberg.snapshots import current_snapshot, rows_of, serial_of

    counts = []
    for name, count in ((FILES, count_live), (EVENTS, stored_event_count)):
        snapshot = current_snapshot(tables.get(name))
        serial = serial_of(snapshot) or 0
        with catalog.read() as connection:
            counts.append(TableCount(name, serial, rows_of(snapshot), count(connection, serial)))
    return counts


@dataclass(frozen=True, slots=True)
class ScannedBucket:
    """The comparison of one bucket: its number, its numbers of rows and projects, and the differences as texts."""

    bucket: int
    serial: int
    rows: int
    projects: int
    differences: list[str]


def scan_bucket(catalog: Catalog, tables: OpenTables, bucket: int | None = None) -> ScannedBucket:
    """Compare a bucket of `files` with the files of its projects in the catalog, and the derived tables with `files`.

    Without `bucket`, the serial chooses one, so that the buckets take turns. Raises TablesError.
    """
    from pypi_assets.iceberg.arrow_schemas import SCHEMAS
    from pypi_assets.iceberg.bucket_files import bucket_count, read_data_files
    from pypi_assets.iceberg.derived_rows import derived_rows
    from pypi_assets.iceberg.snapshots import current_snapshot, data_files, serial_of

    def read(name: str) -> "pa.Table":
        table = tables.get(name)
        if serial_of(current_snapshot(table)) != serial:
            raise TablesError(f"{name} has another serial than {FILES}: run `pypi-assets dump tables`")
        return read_data_files(table, data_files(table, table.current_snapshot()).get(number, ()), SCHEMAS[name])

    files = tables.get(FILES)
    serial = serial_of(current_snapshot(files)) or 0
    number = serial % bucket_count(files) if bucket is None else bucket
    rows = read(FILES)
    found: dict[str, set[tuple[Any, ...]]] = {}
    for row in rows.select([*_COMPARED, "normalized"]).to_pylist():
        found.setdefault(row["normalized"], set()).add(tuple(row[name] for name in _COMPARED))
    differences = []
    for normalized, ones in sorted(found.items()):
        expected = {_compared(file) for file in live_files(catalog, serial, normalized)}
        if expected != ones:
            names = sorted(str(one[0]) for one in expected ^ ones)
            differences.append(f"{FILES} of {normalized} differ from the catalog at serial {serial}: {names[0]}")
    differences += [
        f"{name} differs from {FILES} in bucket {number}"
        for name in DERIVED
        if _in_order(read(name)) != _in_order(derived_rows(name, rows))
    ]
    return ScannedBucket(number, serial, rows.num_rows, len(found), differences)


def _compared(file: Any) -> tuple[Any, ...]:
    uploaded_at = None if file.uploaded_at is None else datetime.fromisoformat(file.uploaded_at)
    values = {name: getattr(file, name) for name in _COMPARED} | {"uploaded_at": uploaded_at}
    return tuple(values[name] for name in _COMPARED)


def _in_order(rows: "pa.Table") -> list[str]:
    return sorted(map(repr, rows.to_pylist()))
