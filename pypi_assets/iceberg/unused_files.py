"""Expire old snapshots of the tables, and delete the files that no remaining snapshot names.

The newest snapshot is kept, those that were superseded within the grace time, and those that recent days are named
after. Tags of other snapshots are deleted with them.
"""

from collections.abc import Collection, Iterator
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING

from pypi_assets.catalog.coordination.leases import Deadlines
from pypi_assets.catalog.database import Catalog
from pypi_assets.iceberg.table_catalog import OpenTables, TableOptions, opened_tables, tables_path
from pypi_assets.iceberg.table_columns import TABLES
from pypi_assets.storage.store import Storage
from pypi_assets.storage.sweeping import DeletionReason, Removal, is_older, sweep_objects

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def clean_tables(
    catalog: Catalog,
    storage: Storage,
    options: TableOptions,
    deadlines: Deadlines,
    first_day: date,
    *,
    dry_run: bool = False,
) -> Iterator[Removal]:
    """Expire snapshots and delete unreferenced files of all tables, and yield the deletions of each table.

    Expired are snapshots that were superseded before `deadlines.since`, and that no day since `first_day` is named
    after. A file that no snapshot names is deleted if it was written before `deadlines.old`. A `dry_run` deletes
    nothing. Without tables, pyiceberg is not needed. Raises TablesError.
    """
    if next(iter(storage.list(tables_path(options.namespace))), None) is None:
        return
    with opened_tables(catalog, storage, options) as tables:
        for name in TABLES:
            table = tables.find(name)
            if table is None:  # perhaps another catalog has it, so its files are kept
                continue
            kept = kept_snapshots(table, deadlines.since, first_day)
            if not dry_run:
                _expire(table, {snapshot.snapshot_id for snapshot in kept})
            named = _named_paths(tables, table, kept)
            waste = [
                stored
                for stored in storage.list(tables.path(name))
                if stored.path not in named and is_older(stored, deadlines.old)
            ]
            if waste:
                sweep_objects(storage, waste, dry_run=dry_run)
                yield Removal(
                    tables.path(name), DeletionReason.SUPERSEDED, len(waste), sum(stored.size for stored in waste)
                )


def kept_snapshots(table: "Table", since: float, first_day: date) -> list["Snapshot"]:
    """Return the snapshots that are not to expire: see `clean_tables`. `since` is in unix seconds."""
    from pypi_assets.iceberg.snapshots import day_of_tag, tags_of

    of_days = {
        snapshot_id
        for tag, snapshot_id in tags_of(table).items()
        if (day := day_of_tag(tag)) is not None and day >= first_day
    }
    current = table.current_snapshot()
    snapshots = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
    superseded = {
        snapshot.snapshot_id for snapshot, following in pairwise(snapshots) if following.timestamp_ms < since * 1000
    }
    return [
        snapshot
        for snapshot in snapshots
        if snapshot.snapshot_id not in superseded
        or snapshot.snapshot_id in of_days
        or (current is not None and snapshot.snapshot_id == current.snapshot_id)
    ]


def _expire(table: "Table", kept: Collection[int]) -> None:
    from pyiceberg.table.update.snapshot import ExpireSnapshots, ManageSnapshots

    from pypi_assets.iceberg.snapshots import tags_of

    expired = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot.snapshot_id not in kept]
    if not expired:
        return
    with table.transaction() as transaction:
        tags = ManageSnapshots(transaction)
        for tag, snapshot_id in tags_of(table).items():
            if snapshot_id not in kept:
                tags = tags.remove_tag(tag)
        tags.commit()
        ExpireSnapshots(transaction).by_ids(expired).commit()


def _named_paths(tables: OpenTables, table: "Table", snapshots: Collection["Snapshot"]) -> set[str]:
    """Return the storage paths of all files that the table's metadata and these snapshots name."""
    locations = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    manifests = {}
    for snapshot in snapshots:
        locations.add(snapshot.manifest_list)
        manifests.update({manifest.manifest_path: manifest for manifest in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        locations.add(path)
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        locations.update(entry.data_file.file_path for entry in entries)
    return {tables.stored_path(table, location) for location in locations}
