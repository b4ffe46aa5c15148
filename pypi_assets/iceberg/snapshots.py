"""Snapshots of a table: commit one for a serial, find the serial of one, and the buckets that one changed.

The properties of a snapshot decide what follows it. So a repeated or concurrent run adds no row twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.table.update.snapshot import ManageSnapshots

from pypi_assets.iceberg.table_catalog import TablesError

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

SERIAL = "pypi-assets.serial"
DUMPS = "pypi-assets.dumps"
"""Only in snapshots of `files`: the dumps that the rows come from."""
SOURCE = "pypi-assets.files-snapshot"
"""Only in snapshots of derived tables: the snapshot of `files` from which the rows were computed."""
EVENTS_SINCE = "pypi-assets.events-since"
"""Only in snapshots of `events`: the serial after which the events begin."""
_SERIAL_TAG = "serial-"


def serial_tag(serial: int) -> str:
    """Return the tag of the newest snapshot of a serial.

    >>> serial_tag(1350)
    'serial-1350'
    """
    return f"{_SERIAL_TAG}{serial}"


def day_of_tag(tag: str) -> date | None:
    """Return the day that a tag names, such as `2026-11-28`, or None for other tags."""
    try:
        return date.fromisoformat(tag)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class SnapshotTime:
    """A serial, and the day of its last event, UTC. The day is None if no event is known."""

    serial: int
    day: date | None

    @property
    def tags(self) -> list[str]:
        return [serial_tag(self.serial), *([self.day.isoformat()] if self.day else [])]


def property_of(snapshot: "Snapshot | None", name: str) -> str | None:
    """Return a property of the snapshot's summary, or None."""
    if snapshot is None or snapshot.summary is None:
        return None
    value: str | None = snapshot.summary.additional_properties.get(name)
    return value


def serial_of(snapshot: "Snapshot | None") -> int | None:
    """Return the serial of a snapshot; None if there is no snapshot, or if another program made it."""
    value = property_of(snapshot, SERIAL)
    return None if value is None else int(value)


def rows_of(snapshot: "Snapshot | None") -> int:
    """Return the number of rows of a snapshot."""
    return int(property_of(snapshot, "total-records") or 0)


def current_snapshot(table: "Table") -> "Snapshot":
    """Return the newest snapshot of a table. Raises TablesError if it has none."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        raise TablesError(f"the table {'.'.join(table.name())} has no snapshot: run `pypi-assets dump tables`")
    return snapshot


def commit(
    table: "Table",
    moment: SnapshotTime,
    properties: Mapping[str, str],
    *,
    added: Iterable["DataFile"],
    deleted: Iterable["DataFile"],
) -> "Snapshot":
    """Commit one snapshot that replaces the `deleted` files by the `added` ones, with its tags, and return it.

    Raises CommitFailedException if another process has committed to the table since `table` was loaded.
    """
    with table.transaction() as transaction:
        with transaction.update_snapshot({SERIAL: str(moment.serial), **properties}).overwrite() as change:
            for file in deleted:
                change.delete_data_file(file)
            for file in added:
                change.append_data_file(file)
        tags = ManageSnapshots(transaction)
        for tag in moment.tags:
            tags = tags.create_tag(change.snapshot_id, tag)
        tags.commit()
    return current_snapshot(table)


def data_files(table: "Table", snapshot: "Snapshot | None") -> dict[int, list["DataFile"]]:
    """Return the data files of a snapshot by bucket. A table without buckets has one bucket."""
    found: dict[int, list[DataFile]] = {}
    if snapshot is not None:
        for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
            found.setdefault(_bucket(task.file), []).append(task.file)
    return found


def changed_buckets(table: "Table", snapshot: "Snapshot") -> set[int]:
    """Return the buckets of which the snapshot has added or deleted files."""
    return {
        _bucket(entry.data_file)
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        if entry.status != ManifestEntryStatus.EXISTING and entry.snapshot_id == snapshot.snapshot_id
    }


def _bucket(file: "DataFile") -> int:
    return int(file.partition[0]) if len(file.partition) else 0


def snapshots_in_order(table: "Table") -> list["Snapshot"]:
    """Return the newest snapshot and those that it follows, the oldest first, as far back as they are kept."""
    newest = table.current_snapshot()
    return [] if newest is None else list(ancestors_of(newest, table.metadata))[::-1]


def snapshots_after(table: "Table", snapshot_id: int | None) -> tuple[list["Snapshot"], bool]:
    """Return the snapshots after a snapshot, the oldest first, and whether the newest one follows it.

    Otherwise only the newest snapshot is returned, because the snapshots in between are unknown.
    """
    lineage = snapshots_in_order(table)
    ids = [snapshot.snapshot_id for snapshot in lineage]
    if snapshot_id in ids:
        return lineage[ids.index(snapshot_id) + 1 :], True
    return lineage[-1:], False


def tags_of(table: "Table") -> dict[str, int]:
    """Return the tags of the table, each with the id of its snapshot."""
    return {
        name: ref.snapshot_id
        for name, ref in table.metadata.refs.items()
        if ref.snapshot_ref_type == SnapshotRefType.TAG
    }
