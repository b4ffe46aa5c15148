"""The catalog's registry of journal segments, and of takedowns (redactions).

A segment is published once its manifest is in the storage; the rows here only index the manifests. A takedown names a
project, release or file, or one record by its place. The catalog keeps the data that it hides, so each segment that is
written omits it by these rows. Redacting published segments does not belong here.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, exists, func, insert, or_, select, update

from pypi_assets.catalog.coordination.leases import Lease, lease
from pypi_assets.catalog.database import Catalog, insert_missing
from pypi_assets.catalog.ledger.epochs import NoticeKind, announce
from pypi_assets.catalog.ledger.range_ledger import RangeState, lock_state, require_range, seal
from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange
from pypi_assets.catalog.publications.written_segments import ChainedSegment, SegmentFile
from pypi_assets.catalog.reads.forgotten_files import forget, hashes_of
from pypi_assets.catalog.reads.kept_files import doom, lock_kept_files
from pypi_assets.catalog.tables import (
    distributions,
    journal_segments,
    journal_takedowns,
    projects,
    releases,
    serial_ranges,
)


@dataclass(frozen=True, slots=True)
class Takedown:
    """A takedown of a `project` (normalized name), optionally only of a `version` or `filename`, or of a single record.

    A record is given by its `stream`, `serial` and `ordinal`. Times are unix seconds; `done_at` is None while a
    published segment still has the data. `release` is the version of the file's release, if the catalog has the file.
    """

    id: int
    added_at: float
    reason: str
    project: str | None = None
    version: str | None = None
    filename: str | None = None
    stream: str | None = None
    serial: int | None = None
    ordinal: int | None = None
    hides_name: bool = False
    done_at: float | None = None
    release: str | None = None


def add_takedown(catalog: Catalog, wanted: Takedown) -> Takedown:
    """Store a takedown, and set its id and time. Segments that are recorded later omit its data.

    The bytes of the files that it names are forgotten. The caller deletes those that are kept (`keeping/`).
    """

    def work(connection: Connection) -> Takedown:
        lock_kept_files(connection)
        lock_state(connection, exclusive=True)  # see `newest_takedown`
        row = {column.name: getattr(wanted, column.name) for column in journal_takedowns.c if column.name != "id"}
        row |= {"added_at": catalog.clock(), "done_at": None}
        new = insert(journal_takedowns).values(row).returning(journal_takedowns.c.id)
        added = Takedown(**row, id=connection.execute(new).scalar_one())
        if added.project is not None:
            hashes = hashes_of(connection, added.project, added.version, added.filename)
            doom(connection, forget(connection, hashes, added.reason, added.added_at, added.id))
        return added

    return catalog.transact(work)


def all_takedowns(connection: Connection) -> list[Takedown]:
    """Return all takedowns, the oldest first."""
    c = journal_takedowns.c
    query = (
        select(journal_takedowns, releases.c.version)
        .outerjoin(projects, projects.c.normalized == c.project)
        .outerjoin(
            distributions, and_(distributions.c.project_id == projects.c.id, distributions.c.filename == c.filename)
        )
        .outerjoin(releases, releases.c.id == distributions.c.release_id)
        .order_by(c.id)
    )
    return [Takedown(*row) for row in connection.execute(query)]


def newest_takedown(connection: Connection) -> int:
    """Return the id of the newest takedown; 0 if there is none. The state's shared lock prevents new ones."""
    return int(connection.scalar(select(func.max(journal_takedowns.c.id))) or 0)


def finish_takedowns(catalog: Catalog, done: int, least_serial: int | None) -> None:
    """Record that no published segment has the data of takedowns up to the id `done`.

    If records were replaced, `least_serial` is the serial of the first one, and the takedown is announced.
    """

    def work(connection: Connection) -> None:
        lock_state(connection, exclusive=False)
        if least_serial is not None:
            announce(connection, NoticeKind.TAKEN_DOWN, least_serial)
        c = journal_takedowns.c
        finished = update(journal_takedowns).where(c.id <= done, c.done_at.is_(None))
        connection.execute(finished.values(done_at=catalog.clock()))

    catalog.transact(work)


def lift_takedown(catalog: Catalog, id_: int) -> bool:
    """Delete a takedown, so that segments written from now on are complete. Return whether it existed."""
    gone = delete(journal_takedowns).where(journal_takedowns.c.id == id_)
    return catalog.transact(lambda connection: connection.execute(gone).rowcount) == 1


_LEASE_TTL_S = 600.0


def seal_range(catalog: Catalog, serials: SerialRange) -> None:
    """Seal a complete range of the ledger: later changes at its serials are logged after it. Raises RangeError."""

    def work(connection: Connection) -> None:
        lock_state(connection, exclusive=True)
        if require_range(connection, serials).state != RangeState.COMPLETE:
            raise RangeError(f"range {serials} is not complete: crawl it first (pypi-assets crawl incremental)")
        seal(connection, serials)

    catalog.transact(work)


def latest_generation(connection: Connection, stream: str) -> int:
    """Return the generation of a stream that is written now; 0 if there is none."""
    query = select(func.max(journal_segments.c.generation)).where(journal_segments.c.stream == stream)
    return int(connection.scalar(query) or 0)


def find_segment(connection: Connection, stream: str, generation: int, start: int) -> SegmentFile | None:
    """Return the segment that begins after the serial `start`; None if there is none."""
    c = journal_segments.c
    row = connection.execute(_SEGMENTS.where(_is(stream, generation), c.start == start)).first()
    return None if row is None else _file(row)


def stream_lease(catalog: Catalog, stream: str) -> AbstractContextManager[Lease]:
    """Take the lease for publishing segments of a stream, or changing its published segments."""
    return lease(catalog, f"journal {stream}", _LEASE_TTL_S)


def record_segment(catalog: Catalog, file: SegmentFile, takedown: int = 0) -> SegmentFile | None:
    """Record a segment whose file is complete in the storage. Return it, or the one that was recorded before.

    `takedown` is the newest takedown that was applied to it. If there is a newer one, return None and record nothing.
    """

    def work(connection: Connection) -> SegmentFile | None:
        lock_state(connection, exclusive=False)
        if newest_takedown(connection) > takedown:
            return None
        row = _row(file, catalog.clock())
        insert_missing(connection, journal_segments, [row])
        return find_segment(connection, file.stream, file.generation, file.serials.start) or file

    return catalog.transact(work)


def last_chained(connection: Connection, stream: str, generation: int) -> ChainedSegment | None:
    """Return the last segment of the chain; None if there is none."""
    c = journal_segments.c
    chained = _SEGMENTS.where(_is(stream, generation), c.number.is_not(None))
    row = connection.execute(chained.order_by(c.number.desc()).limit(1)).first()
    return None if row is None else ChainedSegment(_file(row), row.number, row.manifest_sha256)


def chain_segment(catalog: Catalog, segment: ChainedSegment) -> None:
    """Record that the manifest of a segment is in the storage."""
    file = segment.file
    c = journal_segments.c
    chained = (
        update(journal_segments)
        .where(_is(file.stream, file.generation), c.start == file.serials.start)
        .values(number=segment.number, manifest_sha256=segment.manifest_sha256)
    )
    catalog.transact(lambda connection: connection.execute(chained))


def restore_segments(catalog: Catalog, segments: Sequence[ChainedSegment]) -> None:
    """Record segments that have a manifest in the storage, for a catalog that lacks them.

    Unpublished segments of the same serials are replaced.
    """

    def work(connection: Connection) -> None:
        c = journal_segments.c
        for one in segments:
            unpublished = (_is(one.file.stream, one.file.generation), c.start == one.file.serials.start)
            connection.execute(delete(journal_segments).where(*unpublished, c.number.is_(None)))
        rows = [
            _row(one.file, catalog.clock()) | {"number": one.number, "manifest_sha256": one.manifest_sha256}
            for one in segments
        ]
        insert_missing(connection, journal_segments, rows)

    catalog.transact(work)


def unchained_segments(connection: Connection, stream: str, generation: int) -> list[SegmentFile]:
    """Return the written segments that have no place in the chain yet."""
    rows = connection.execute(_SEGMENTS.where(_is(stream, generation), journal_segments.c.number.is_(None)))
    return [_file(row) for row in rows]


def replace_unchained(catalog: Catalog, file: SegmentFile) -> None:
    """Record another file for a segment that has no place in the chain yet."""
    c = journal_segments.c
    replaced = (
        update(journal_segments)
        .where(_is(file.stream, file.generation), c.start == file.serials.start, c.number.is_(None))
        .values(name=file.name, records=file.records, bytes=file.content_bytes, size=file.size, sha256=file.sha256)
    )
    catalog.transact(lambda connection: connection.execute(replaced))


def ranges_without_segment(connection: Connection, stream: str, generation: int) -> list[SerialRange]:
    """Return the complete ranges of the ledger that have no segment of the stream yet, in order."""
    c = serial_ranges.c
    written = exists().where(_is(stream, generation), journal_segments.c.start == c.start)
    query = select(c.start, c.end).where(c.state == RangeState.COMPLETE, ~written).order_by(c.start)
    return [SerialRange(start, end) for start, end in connection.execute(query)]


def segment_names(connection: Connection, stream: str, generation: int, after: int = 0) -> set[str]:
    """Return the filenames of a generation's segments, without segments numbered up to `after`."""
    c = journal_segments.c
    kept = or_(c.number.is_(None), c.number > after)
    return set(connection.scalars(select(c.name).where(_is(stream, generation), kept)))


_SEGMENTS = select(journal_segments)


def _is(stream: str, generation: int) -> Any:
    return and_(journal_segments.c.stream == stream, journal_segments.c.generation == generation)


def _row(file: SegmentFile, now: float) -> dict[str, Any]:
    return {
        "stream": file.stream,
        "generation": file.generation,
        "start": file.serials.start,
        "end": file.serials.end,
        "name": file.name,
        "records": file.records,
        "bytes": file.content_bytes,
        "size": file.size,
        "sha256": file.sha256,
        "written_at": now,
    }


def _file(row: Row[Any]) -> SegmentFile:
    return SegmentFile(
        stream=row.stream,
        generation=row.generation,
        serials=SerialRange(row.start, row.end),
        name=row.name,
        records=row.records,
        content_bytes=row.bytes,
        size=row.size,
        sha256=row.sha256,
    )
