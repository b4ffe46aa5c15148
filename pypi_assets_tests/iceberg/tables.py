"""Tables as tests read them."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.dump_format import Row
from pypi_assets.iceberg.snapshots import tags_of
from pypi_assets.iceberg.table_catalog import TableOptions, opened_tables
from pypi_assets.iceberg.updates import TablesResult, update_tables
from pypi_assets.storage.store import Storage
from pypi_assets_tests.parquet.exports import exported

OPTIONS = TableOptions()


def updated(catalog: Catalog, storage: Storage) -> TablesResult:
    return update_tables(catalog, storage, OPTIONS)


def rows_of(catalog: Catalog, storage: Storage, name: str, tag: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a table in a fixed order: of the newest snapshot, or of the snapshot with a tag."""
    with opened_tables(catalog, storage, OPTIONS) as tables:
        table = tables.find(name)
        assert table is not None
        found = table.scan(snapshot_id=None if tag is None else tags_of(table)[tag]).to_arrow()
    return in_key_order(found.to_pylist())


def in_key_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ("serial", "normalized", "version", "filename", "requirement", "module", "command", "kind")
    return sorted(rows, key=lambda row: [str(row[key]) for key in keys if key in row])


def expected_files(live: Iterable[Row]) -> list[dict[str, Any]]:
    return in_key_order(exported(row) for row in live)


def expected_modules(live: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the rows of `modules` as a plain loop computes them."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(live, key=itemgetter("normalized", "version", "filename")):
        for module in dict.fromkeys(row["modules"] or ()):  # type: ignore[call-overload]
            key = str(row["normalized"]), module
            one = found.setdefault(
                key, {"project": row["project"], "normalized": key[0], "module": module, "versions": [], "files": 0}
            )
            one["versions"] += [] if row["version"] in one["versions"] else [row["version"]]
            one["files"] += 1
    return in_key_order(found.values())
