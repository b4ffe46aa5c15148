"""Bring the tables up to the end of the dumps: one snapshot for the full dump, and one for each dump after it.

`files` follows the cover. The derived tables follow the snapshots of `files`, and `events` follows their serials. Each
step reads what the last snapshot says, so a killed run is continued by the next. One process at a time writes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import CommitFailedException

from pypi_assets.catalog.coordination.leases import lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_registry import Dump
from pypi_assets.catalog.reports.moments import time_of
from pypi_assets.dumps.cover import Cover, cover
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import DumpManifest, read_manifest
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.held_dumps import HeldDumps
from pypi_assets.iceberg.arrow_schemas import SCHEMAS
from pypi_assets.iceberg.bucket_files import (
    FILES_AT_ONCE,
    MOST_GROUPS,
    ROWS_OF_A_GROUP,
    BucketRows,
    SortedIntoBuckets,
    are_of_projects,
    are_other_files,
    bucket_count,
    bucket_function,
    read_data_files,
    replaced_rows,
    write_buckets,
)
from pypi_assets.iceberg.derived_rows import SOURCE_COLUMNS, derived_rows
from pypi_assets.iceberg.event_files import write_events
from pypi_assets.iceberg.newest_tables import NewestTable, NewestTables, read_newest, write_newest
from pypi_assets.iceberg.snapshots import (
    DUMPS,
    SERIAL,
    SOURCE,
    SnapshotTime,
    changed_buckets,
    commit,
    current_snapshot,
    data_files,
    property_of,
    rows_of,
    serial_of,
    snapshots_after,
    snapshots_in_order,
)
from pypi_assets.iceberg.table_catalog import OpenTables, TableOptions, TablesError, opened_tables
from pypi_assets.iceberg.table_columns import EVENTS, FILES, TABLES
from pypi_assets.parquet.parquet_writer import record_batches
from pypi_assets.storage.store import Storage

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

LEASE_NAME = "publish tables"
LEASE_TTL_S = 600.0
ROWS_OF_A_BUCKET = 2_048
"""The rows of `files` in a bucket at first. A range writes the buckets of its projects again, and all their rows."""
MOST_BUCKETS = 4_096
_ATTEMPTS = 3
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class TablesResult:
    """The newest snapshots of all tables, and the number of snapshots that were added to each."""

    newest: NewestTables
    added: Mapping[str, int]


def update_tables(
    catalog: Catalog,
    storage: Storage,
    options: TableOptions,
    *,
    from_scratch: bool = False,
    progress: Progress | None = None,
) -> TablesResult:
    """Bring all tables up to the end of the dumps, and return them. It can be repeated at any time.

    With `from_scratch`, the tables are created again and their earlier snapshots are gone. `progress` receives the
    number of rows written.

    Raises TablesError, LeaseTakenError if another process writes the tables, and DumpDamagedError.
    """
    with lease(catalog, LEASE_NAME, LEASE_TTL_S) as held, opened_tables(catalog, storage, options) as tables:
        dumps = cover(catalog)
        if not dumps.dumps:
            raise TablesError("there is no full dump to make tables of: run `pypi-assets dump full` first")
        if storage.before_write is not None:
            storage.before_write()
        if from_scratch:
            for name in TABLES:
                tables.drop(name)
        update = _Update(catalog, tables, dumps, renewing(held, progress))
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                update.run()
                break
            except CommitFailedException as error:  # another process has lost the lease, and committed nevertheless
                if attempt == _ATTEMPTS:
                    raise TablesError(f"another process changes the tables of {options.namespace}: {error}") from error
        held.renew()  # a process that lost the lease must not publish
        return TablesResult(update.publish(), dict(update.added))


@dataclass(slots=True)
class _Update:
    """One run over the tables. `added` counts the snapshots of each table.

    `changed` has the projects that a snapshot of `files` changed, if this run made it and it is not of a full dump.
    """

    catalog: Catalog
    tables: OpenTables
    cover: Cover
    report: Progress
    added: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    changed: dict[int, set[str]] = field(default_factory=dict)
    rows: int = 0

    @property
    def storage(self) -> Storage:
        return self.tables.storage

    def run(self) -> None:
        files = self._files()
        self._follow(files)
        for dump in self._missing(files):
            self._apply(files, dump)
            self._follow(files)

    def publish(self) -> NewestTables:
        """Write and return the places of the newest snapshots."""
        found = {}
        for name in TABLES:
            table = self.tables.get(name)
            snapshot = current_snapshot(table)
            found[name] = NewestTable(table.metadata_location, snapshot.snapshot_id, rows_of(snapshot))
        dumps = tuple(HeldDumps.of(self.cover.dumps).encode())
        newest = NewestTables(self.tables.namespace, self.cover.serial, dumps, found)
        if read_newest(self.storage) != newest:
            write_newest(self.storage, newest)
        return newest

    def _files(self) -> "Table":
        table = self.tables.find(FILES)
        if table is not None:
            return self.tables.add_columns(table, FILES)
        rows = read_manifest(self.storage, self.cover.directories[0]).rows
        buckets = 1
        while buckets < MOST_BUCKETS and rows > buckets * ROWS_OF_A_BUCKET:
            buckets *= 2
        return self.tables.create(FILES, buckets)

    def _missing(self, files: "Table") -> Sequence[Dump]:
        """Return the dumps of the cover that `files` does not have; all if it has others."""
        held = held_dumps(files.current_snapshot())
        following = None if held is None else held.following(self.cover.dumps)
        return self.cover.dumps if following is None else following

    def _apply(self, files: "Table", dump: Dump) -> None:
        """Apply one dump to `files`. A full dump replaces all rows."""
        manifest = read_manifest(self.storage, dump.directory)
        before = data_files(files, files.current_snapshot())
        is_full = dump == self.cover.dumps[0]
        changed: dict[int, set[tuple[str, str]]] = defaultdict(set)
        bucket_of = bucket_function(bucket_count(files))

        def live(rows: Iterable[Row]) -> Iterator[Row]:
            for row in rows:
                if not is_full:
                    normalized = str(row["normalized"])
                    changed[bucket_of(normalized)].add((normalized, str(row["filename"])))
                if not row["tombstone"]:
                    yield row

        def merged(found: Iterable[BucketRows]) -> Iterator[BucketRows]:
            rest = dict(changed)
            only_deletions = ((bucket, SCHEMAS[FILES].empty_table()) for bucket in list(rest))
            for bucket, rows in chain(found, only_deletions):
                names = rest.pop(bucket, None)
                if names is not None or is_full:
                    old = read_data_files(files, () if is_full else before.get(bucket, ()), SCHEMAS[FILES])
                    yield bucket, replaced_rows(old, are_other_files(old, names or ()), rows)

        with SortedIntoBuckets(self.storage, bucket_count(files), _groups(manifest, files)) as buckets:
            for _ in buckets.add(record_batches(live(iter_dump(self.storage, dump.directory)))):
                self.report(self.rows)
            added = list(self._counted(write_buckets(files, merged(buckets.by_bucket()))))
        touched = set(before) if is_full else set(changed)
        deleted = [file for bucket, ones in before.items() if bucket in touched for file in ones]
        held = HeldDumps.of(self.cover.dumps[: self.cover.dumps.index(dump) + 1])
        properties = {DUMPS: orjson.dumps(held.encode()).decode()}
        snapshot = self._commit(FILES, files, self._moment(dump.serials.end), properties, added, deleted)
        if not is_full:
            self.changed[snapshot.snapshot_id] = {name for names in changed.values() for name, _ in names}

    def _follow(self, files: "Table") -> None:
        """Bring the other tables up to the newest snapshot of `files`, one snapshot after the other."""
        tables = {name: self._following(files, name) for name in TABLES if name != FILES}
        waiting: dict[tuple[int, bool], list[str]] = defaultdict(list)
        for name, table in tables.items():
            source = property_of(table.current_snapshot(), SOURCE)
            snapshots, is_known = snapshots_after(files, None if source is None else int(source))
            for snapshot in snapshots:
                waiting[snapshot.snapshot_id, is_known].append(name)
        for snapshot in snapshots_in_order(files):
            for is_known in (True, False):
                names = waiting.pop((snapshot.snapshot_id, is_known), ())
                self._follow_one(files, snapshot, {name: tables[name] for name in names}, is_known=is_known)

    def _following(self, files: "Table", name: str) -> "Table":
        """Return a table that follows `files`. It is created if it is missing, or has other buckets than `files`."""
        table = self.tables.find(name)
        if table is not None and (name == EVENTS or bucket_count(table) == bucket_count(files)):
            return self.tables.add_columns(table, name)
        self.tables.drop(name)
        return self.tables.create(name, bucket_count(files))

    def _follow_one(
        self, files: "Table", snapshot: "Snapshot", tables: Mapping[str, "Table"], *, is_known: bool
    ) -> None:
        """Add one snapshot to each of `tables` for a snapshot of `files`.

        If the snapshot before it `is_known`, only the buckets that it changed are computed, otherwise all.
        """
        if not tables:
            return
        properties, moment = {SOURCE: str(snapshot.snapshot_id)}, self._moment(serial_of(snapshot) or 0)
        derived = {name: table for name, table in tables.items() if name != EVENTS}
        if derived:
            sources = data_files(files, snapshot)
            before = {name: data_files(table, table.current_snapshot()) for name, table in derived.items()}
            buckets = (
                changed_buckets(files, snapshot) if is_known else {*sources, *chain.from_iterable(before.values())}
            )
            projects = self.changed.get(snapshot.snapshot_id) if is_known else None
            added = self._derive(files, sources, sorted(buckets), before, derived, projects)
            for name, table in derived.items():
                deleted = chain.from_iterable(before[name].get(bucket, ()) for bucket in buckets)
                self._commit(name, table, moment, properties, added[name], deleted)
        if (events := tables.get(EVENTS)) is not None:
            written = write_events(self.catalog, events, moment.serial, lambda: self.report(self.rows))
            list(self._counted(written.added))
            self._commit(EVENTS, events, moment, {**properties, **written.properties}, written.added, written.deleted)

    def _derive(
        self,
        files: "Table",
        sources: Mapping[int, Sequence["DataFile"]],
        buckets: Sequence[int],
        before: Mapping[str, Mapping[int, Sequence["DataFile"]]],
        tables: Mapping[str, "Table"],
        projects: set[str] | None,
    ) -> dict[str, list["DataFile"]]:
        """Write the data files of some buckets of derived tables, and return them.

        The rows of `projects` are computed from the data files of `files`, and the other rows are kept. If it is None,
        all are computed.
        """
        added: dict[str, list[DataFile]] = {name: [] for name in tables}

        def rows_of(name: str, bucket: int, rows: pa.Table) -> pa.Table:
            computed = derived_rows(name, rows)
            if projects is None or bucket not in before[name]:
                return computed
            old = read_data_files(tables[name], before[name][bucket], SCHEMAS[name])
            return replaced_rows(old, pc.invert(are_of_projects(old, projects)), computed)

        for start in range(0, len(buckets), FILES_AT_ONCE):
            found = {
                bucket: read_data_files(files, sources.get(bucket, ()), SCHEMAS[FILES], SOURCE_COLUMNS)
                for bucket in buckets[start : start + FILES_AT_ONCE]
            }
            if projects is not None:
                found = {bucket: rows.filter(are_of_projects(rows, projects)) for bucket, rows in found.items()}
            for name, table in tables.items():
                written = write_buckets(
                    table, ((bucket, rows_of(name, bucket, rows)) for bucket, rows in found.items())
                )
                added[name] += self._counted(written)
        return added

    def _commit(
        self,
        name: str,
        table: "Table",
        moment: SnapshotTime,
        properties: Mapping[str, str],
        added: Iterable["DataFile"],
        deleted: Iterable["DataFile"],
    ) -> "Snapshot":
        snapshot = commit(table, moment, properties, added=added, deleted=deleted)
        self.added[name] += 1
        return snapshot

    def _counted(self, files: Iterable["DataFile"]) -> Iterator["DataFile"]:
        for file in files:
            self.rows += file.record_count
            self.report(self.rows)
            yield file

    def _moment(self, serial: int) -> SnapshotTime:
        with self.catalog.read() as connection:
            time = time_of(connection, serial)
        return SnapshotTime(serial, None if time is None else time.date())


def held_dumps(snapshot: "Snapshot | None") -> HeldDumps | None:
    """Return the dumps of a snapshot of `files`; None if there is none, or if another program made the snapshot."""
    encoded = property_of(snapshot, DUMPS)
    return None if encoded is None or property_of(snapshot, SERIAL) is None else HeldDumps.decode(orjson.loads(encoded))


def _groups(manifest: DumpManifest, files: "Table") -> int:
    return max(1, min(MOST_GROUPS, bucket_count(files), manifest.rows // ROWS_OF_A_GROUP))
