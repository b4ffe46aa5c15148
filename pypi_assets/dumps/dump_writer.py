"""Write dumps: the shards of a full dump, ranges, and the manifest that commits a dump.

Every step can be interrupted at any time and repeated. Each attempt writes under a new name, and a dump exists when its
manifest exists.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import BinaryIO

from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import RangeState, recent_ranges
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.followed import count_answered
from pypi_assets.catalog.publications.dump_columns import DumpFile, DumpKind, format_of
from pypi_assets.catalog.publications.dump_registry import (
    Dump,
    DumpDroppedError,
    DumpError,
    DumpState,
    allocate_file_name,
    begin_commit,
    committing_dumps,
    dumps_that_hold,
    full_dump_rows,
    late_dump_rows,
    mark_committed,
    open_late_dump,
    open_range_dump,
    range_dump_rows,
    read_committed_dumps,
    record_file,
    recorded_files,
    require_not_dropped,
)
from pypi_assets.dumps.cover import Cover, cover, cover_of, still_covered
from pypi_assets.dumps.dump_format import DumpDamagedError, Row, write_rows
from pypi_assets.dumps.dump_manifest import (
    DumpManifest,
    dump_path,
    file_path,
    manifest_path,
    read_manifest,
    write_manifest,
)
from pypi_assets.dumps.published_dumps import publish_dumps
from pypi_assets.storage.store import Storage

Progress = Callable[[int], None]


def write_shard(
    catalog: Catalog, storage: Storage, dump: Dump, shard: int, progress: Progress | None = None
) -> DumpFile:
    """Write one shard of an open dump from the catalog. `progress` receives the number of rows."""
    full = dump.kind == DumpKind.FULL
    rows = full_dump_rows(catalog, dump, shard) if full else range_dump_rows(catalog, dump)
    return write_file(catalog, storage, dump, shard, rows, progress)


def write_file(
    catalog: Catalog,
    storage: Storage,
    dump: Dump,
    shard: int,
    rows: Iterable[Row],
    progress: Progress | None = None,
) -> DumpFile:
    """Write `rows` as one shard of an open dump, under a new name, and record the file."""
    name = allocate_file_name(catalog, dump, shard)
    write = partial(write_rows, rows=rows, progress=progress, columns=dump.columns, form=format_of(name))
    file = put_file(storage, file_path(dump.directory, name), shard, write)
    record_file(catalog, dump, file)
    return file


def put_file(storage: Storage, path: str, shard: int, write: Callable[[BinaryIO], int]) -> DumpFile:
    """Store the output of `write`, which returns its number of rows, at `path`."""
    with storage.unnamed_file() as local:
        rows = write(local)
        size = local.tell()
        local.seek(0)
        sha256 = hashlib.file_digest(local, "sha256").hexdigest()
        local.seek(0)
        storage.put(path, local)
    return DumpFile(shard, path.rpartition("/")[2], rows, size, sha256)


def missing_shards(catalog: Catalog, storage: Storage, dump: Dump) -> list[int]:
    """Return the shards of an open dump without a complete file, both recorded and stored."""
    written = {file.shard for file in _whole_files(storage, dump, recorded_files(catalog, dump))}
    return [shard for shard in range(dump.shards) if shard not in written]


def write_range(
    catalog: Catalog, storage: Storage, serials: SerialRange, *, again: bool = False, progress: Progress | None = None
) -> DumpManifest:
    """Write and commit the incremental dump of a complete range. `progress` receives the number of rows.

    If the range already has an intact committed dump, or a compaction that contains it, its manifest is returned
    instead, unless `again` is true.
    """
    commit_pending_dumps(catalog, storage)
    if not again:
        for known in dumps_that_hold(catalog, serials):
            manifest = _whole_manifest(storage, known)
            if manifest is not None:
                return manifest
    dump = open_range_dump(catalog, serials)
    write_shard(catalog, storage, dump, 0, progress)
    return commit(catalog, storage, dump)


def missing_ranges(catalog: Catalog) -> list[SerialRange]:
    """Return the complete ranges beyond the cover without a committed dump, in order.

    Reads all committed dumps: the cover, and dumps that were superseded since the last clean-up. Raises DumpError if
    there is no full dump that the ranges could follow.
    """
    with catalog.read() as connection:
        committed = read_committed_dumps(connection)
        in_use = cover_of(committed)
        if not in_use.dumps:
            raise DumpError("there is no full dump for ranges to follow: run `pypi-assets dump full` first")
        return ranges_without_dump(connection, committed, in_use)


def ranges_without_dump(connection: Connection, committed: Sequence[Dump], in_use: Cover) -> list[SerialRange]:
    """Return the complete ranges beyond `in_use` without a dump, in order. `in_use` is the cover of the `committed`
    dumps.
    """
    recent = recent_ranges(connection, beyond=in_use.serial)
    complete = [entry.serials for entry in recent if entry.state == RangeState.COMPLETE]
    beyond = [serials for serials in complete if serials.end > in_use.serial]
    return _not_held(beyond, [dump.serials for dump in committed if dump.kind != DumpKind.FULL])


def _not_held(wanted: Sequence[SerialRange], held: Iterable[SerialRange]) -> list[SerialRange]:
    """Return the `wanted` ranges, which ascend, that no range in `held` contains. Takes the time of sorting `held`."""
    found, reached = [], 0
    waiting = sorted(held, key=lambda serials: serials.start, reverse=True)
    for serials in wanted:
        while waiting and waiting[-1].start <= serials.start:
            reached = max(reached, waiting.pop().end)
        if reached < serials.end:
            found.append(serials)
    return found


def write_missing_ranges(catalog: Catalog, storage: Storage) -> Iterator[DumpManifest]:
    """Write and commit the missing incremental dumps and the dump of late changes, and yield their manifests."""
    commit_pending_dumps(catalog, storage)
    for serials in missing_ranges(catalog):
        yield write_range(catalog, storage, serials)
    if (late := write_late_changes(catalog, storage)) is not None:
        yield late


def write_late_changes(catalog: Catalog, storage: Storage, progress: Progress | None = None) -> DumpManifest | None:
    """Write and commit a dump of the late changes to dumped serials. Return None if there are none.

    Changes that the pending dump of a range will have are left to it. `progress` receives the number of rows.
    """
    commit_pending_dumps(catalog, storage)
    last = cover(catalog).dumps[-1:]
    dump = open_late_dump(catalog, last[0]) if last else None
    if dump is None:
        return None
    with suppress(DumpDroppedError):  # in the meantime a range was dumped that has these changes
        write_file(catalog, storage, dump, 0, late_dump_rows(catalog, dump, last[0]), progress)
        return commit(catalog, storage, dump)
    return None


def commit(catalog: Catalog, storage: Storage, dump: Dump) -> DumpManifest:
    """Freeze the dump's files, write its manifest and mark it as committed. Repeating this writes the same bytes.

    Raises DumpError if shards are missing, DumpDamagedError if a recorded file is not in the storage, and
    DumpDroppedError for a compaction that was abandoned, or whose inputs have left the cover in the meantime.
    """
    if dump.state == DumpState.OPEN:  # once the list is frozen, no shard can be written again
        try:
            _require_stored(storage, dump, recorded_files(catalog, dump))
        except DumpDamagedError:
            require_not_dropped(catalog, dump)  # a dropped dump's files may have been deleted
            raise
    try:
        files = begin_commit(catalog, dump, partial(still_covered, dump) if dump.kind == DumpKind.COMPACTED else None)
        manifest = DumpManifest(
            kind=dump.kind,
            serials=dump.serials,
            directory=dump.directory,
            sequence=dump.sequence,
            shards=dump.shards,
            inputs=dump.inputs,
            files=tuple(files),
            columns=dump.columns,
            joined=dump.joined,
            followed_projects=_followed_projects(catalog, storage, dump),
        )
        write_manifest(storage, manifest)
        mark_committed(catalog, dump)
    except DumpDroppedError:
        storage.delete(manifest_path(dump.directory))  # written just now, or by a process that then was interrupted
        raise
    publish_dumps(catalog, storage)
    return manifest


def _followed_projects(catalog: Catalog, storage: Storage, dump: Dump) -> int | None:
    """Return the number of followed projects for the manifest.

    If the manifest was already written, its number is kept, since projects may have been added in the meantime.
    """
    if dump.state != DumpState.OPEN:
        with suppress(DumpDamagedError):
            return read_manifest(storage, dump.directory).followed_projects
    with catalog.read() as connection:
        return count_answered(connection, dump.serials.end)


def commit_pending_dumps(catalog: Catalog, storage: Storage) -> list[DumpManifest]:
    """Commit the dumps whose process ended between freezing their files and marking the commit; return their
    manifests.
    """
    settled = []
    for dump in committing_dumps(catalog):
        with suppress(DumpDroppedError):  # a compaction that came too late, or that another process settled
            settled.append(commit(catalog, storage, dump))
    return settled


def _whole_manifest(storage: Storage, dump: Dump) -> DumpManifest | None:
    try:
        manifest = read_manifest(storage, dump.directory)
        _require_stored(storage, dump, list(manifest.files))
    except DumpDamagedError:
        return None
    return manifest


def _require_stored(storage: Storage, dump: Dump, files: list[DumpFile]) -> None:
    whole = _whole_files(storage, dump, files)
    for file in files:
        if file not in whole:
            uri = storage.uri(file_path(dump.directory, file.name))
            raise DumpDamagedError(
                f"{uri} is not stored with the recorded size of {file.size} bytes: write the shard again"
            )


def _whole_files(storage: Storage, dump: Dump, files: list[DumpFile]) -> list[DumpFile]:
    """Return the `files` that are stored with the right size."""
    sizes = {stored.path: stored.size for stored in storage.list(dump_path(dump.directory))}
    return [file for file in files if sizes.get(file_path(dump.directory, file.name)) == file.size]
