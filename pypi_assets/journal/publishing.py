"""Writes the journal: first the segments of a range, then the chain up to the first missing segment.

Segments can be written in any order and in parallel; the chain grows in order of serials. Every step can be stopped at
any moment and repeated: recorded segments stay, and a manifest that is written again has the same bytes. Stored
takedowns that are not completed yet are completed first.

The streams `observed`, `content` and `visits` have one segment for each range of the ledger. The stream `index` is cut
into cells of GRID serials, so its segments are the same for every catalog that follows the index. Records after its
last complete cell are in an open segment, which the head names and later writes replace.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection

from pypi_assets.catalog.coordination.leases import LeaseTakenError
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial, read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.journal_segments import (
    all_takedowns,
    chain_segment,
    find_segment,
    last_chained,
    latest_generation,
    ranges_without_segment,
    record_segment,
    restore_segments,
    seal_range,
    stream_lease,
)
from pypi_assets.catalog.publications.written_segments import ChainedSegment, SegmentFile
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.catalog.reports.journal_ranges import BY_RANGE, journal_records
from pypi_assets.catalog.reports.journal_records import index_records
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.segment_files import (
    GRID,
    OPEN_PREFIX,
    Head,
    JournalDamagedError,
    OpenSegment,
    Pruned,
    SegmentManifest,
    SegmentWriter,
    chained,
    read_head,
    read_manifest,
    segment_path,
    write_head,
    write_manifest,
    write_segment,
)
from pypi_assets.journal.signing import publish_heads
from pypi_assets.journal.takedown_files import as_replaced, newest_takedown_file, replaced_segments
from pypi_assets.journal.takedowns import Taking, take_down
from pypi_assets.storage.store import Storage

Progress = Callable[[int], None]
_PROGRESS_RECORDS = 10_000


class JournalForkError(ExpectedError):
    """The catalog and the storage have different segments for one generation of a stream."""


@dataclass(frozen=True, slots=True)
class WrittenRange:
    """The journal's records for a range, by stream. Segments that were written earlier count too."""

    serials: SerialRange
    records: dict[str, int]
    size: int


def write_range(
    catalog: Catalog, storage: Storage, serials: SerialRange, progress: Progress | None = None
) -> WrittenRange:
    """Write a complete range to the journal and seal the range. Existing segments are kept.

    `progress` receives the number of records. Raises RangeError if the range is not complete.
    """
    seal_range(catalog, serials)
    for stream in BY_RANGE:
        _restore(catalog, storage, stream)
    files = _write(catalog, storage, BY_RANGE, serials, progress)
    publish(catalog, storage)
    with catalog.read() as connection:
        of_index = _first_index_cell(connection, serials)
    counts = {file.stream: file.records for file in files}
    return WrittenRange(serials, counts | of_index, sum(file.size for file in files))


def write_first_range(catalog: Catalog, storage: Storage, progress: Progress | None = None) -> WrittenRange | None:
    """Write the range of the full crawl, which begins at 0, if it is complete and not written yet."""
    first = next(iter(missing_ranges(catalog)), None)
    return write_range(catalog, storage, first, progress) if first is not None and first.start == 0 else None


def missing_ranges(catalog: Catalog) -> list[SerialRange]:
    """Return the complete ranges that have no segment in some stream, in order."""
    with catalog.read() as connection:
        found = {
            serials
            for stream in BY_RANGE
            for serials in ranges_without_segment(connection, stream, _generation(connection, stream))
        }
    return sorted(found)


def write_missing(catalog: Catalog, storage: Storage, progress: Progress | None = None) -> Iterator[WrittenRange]:
    """Write each range that the journal lacks, in order, and yield the results."""
    for serials in missing_ranges(catalog):
        yield write_range(catalog, storage, serials, progress)
    publish(catalog, storage)


def publish(catalog: Catalog, storage: Storage) -> dict[str, Head]:
    """Write the index stream up to the complete serial, and the manifests of all segments that can be chained.

    Returns the heads. If another process is writing a stream, that stream is left to it.
    """
    for stream in JournalStream:
        _restore(catalog, storage, stream)
    with suppress(LeaseTakenError):
        take_down(catalog, storage, partial(_chain, catalog, storage))
    for serials in _index_cells(catalog):
        _write(catalog, storage, (JournalStream.INDEX,), serials)
    heads = {}
    for stream in JournalStream:
        try:
            with stream_lease(catalog, stream):
                heads[stream.value] = _chain(catalog, storage, stream)
        except LeaseTakenError:
            continue
    publish_heads(storage)
    return heads


def complete_takedowns(
    catalog: Catalog, storage: Storage, progress: Progress | None = None, *, wait_s: float = 0.0
) -> int:
    """Complete the stored takedowns; see `takedowns.take_down`."""
    for stream in JournalStream:
        _restore(catalog, storage, stream)
    return take_down(catalog, storage, partial(_chain, catalog, storage), progress, wait_s=wait_s)


def begin_generation(catalog: Catalog, storage: Storage, stream: JournalStream) -> int:
    """Restart a stream with everything that is known now about all serials. Returns the number of the new generation.

    This is needed if older events were stored after the stream was begun, or if its files were lost.
    """
    head = read_head(storage, stream)
    with catalog.read() as connection:
        generation = max(latest_generation(connection, stream), head.generation if head else 0) + 1
        first = _first(connection, stream)
    if first is not None:
        _write(catalog, storage, (stream,), first, generation=generation)
    publish(catalog, storage)
    return generation


def _restore(catalog: Catalog, storage: Storage, stream: JournalStream) -> None:
    """Record the storage's published segments that the catalog does not know.

    They are unknown if the catalog was restored from a backup, or created again over the same storage. Raises
    JournalForkError if the two have different segments.
    """
    head = read_head(storage, stream)
    with catalog.read() as connection:
        generation = latest_generation(connection, stream)
        last = last_chained(connection, stream, generation) if generation else None
    known = (generation, last.number if last else 0)
    if head is None or (head.generation, head.number) <= known:
        return
    number, digest = (last.number, last.manifest_sha256) if last and generation == head.generation else (0, None)
    found = []
    while number < head.number:
        number += 1
        manifest = read_manifest(storage, stream, head.generation, number)
        if manifest.previous != digest:
            raise JournalForkError(
                f"the journal's stream {stream.value} in {storage.url} and the catalog have different segments from"
                f" serial {manifest.serials.start} on: did two catalogs write to one storage? Restart the stream"
                f" (pypi-assets journal restart {stream.value})"
            )
        digest = manifest.digest
        found.append(chained(manifest))
    restore_segments(catalog, found)


def _generation(connection: Connection, stream: JournalStream) -> int:
    return latest_generation(connection, stream) or 1


def _write(
    catalog: Catalog,
    storage: Storage,
    streams: Sequence[JournalStream],
    serials: SerialRange,
    progress: Progress | None = None,
    *,
    generation: int | None = None,
) -> list[SegmentFile]:
    """Return the segments of these streams. Write those that do not exist, from one reading of the catalog."""
    written: dict[JournalStream, SegmentFile] = {}
    generations: dict[JournalStream, int] = {}
    with catalog.read() as connection:
        for stream in streams:
            number = _generation(connection, stream) if generation is None else generation
            found = find_segment(connection, stream, number, serials.start)
            last = last_chained(connection, stream, number)
            if found is not None and found.serials == serials:
                written[stream] = found
            elif found is not None or (last is not None and last.file.serials.end > serials.start):
                raise JournalForkError(
                    f"the journal's stream {stream.value} in {storage.url} is cut at other serials than {serials}:"
                    f" another catalog wrote it. Restart the stream (pypi-assets journal restart {stream.value})"
                )
            generations[stream] = number
    while missing := {stream: generations[stream] for stream in streams if stream not in written}:
        files, takedown = _write_files(catalog, storage, missing, serials, progress)
        for stream, file in files.items():
            recorded = record_segment(catalog, file, takedown)
            if recorded is not None:
                written[stream] = recorded
    return [written[stream] for stream in streams]


def _write_files(
    catalog: Catalog,
    storage: Storage,
    generations: Mapping[JournalStream, int],
    serials: SerialRange,
    progress: Progress | None,
) -> tuple[dict[JournalStream, SegmentFile], int]:
    """Write a segment of each stream. Return the files, and the newest takedown that was applied to them."""
    with ExitStack() as stack, catalog.read_once() as connection:
        taking = Taking(all_takedowns(connection))
        writers = {
            stream: stack.enter_context(SegmentWriter(storage, stream, generation, serials))
            for stream, generation in generations.items()
        }
        count = itertools.count(1)
        for stream, records in journal_records(connection, serials, generations):
            taken = taking.records(records if progress is None else _counted(records, count, progress))
            writers[stream].add(map(to_utf8_json, taken))
        files = {stream: writer.finish() for stream, writer in writers.items()}
    if progress is not None:
        progress(next(count) - 1)
    return files, taking.newest


def _counted(records: Iterable[Record], count: Iterator[int], progress: Progress) -> Iterator[Record]:
    """Yield `records`, and pass the number of all records to `progress` from time to time."""
    for record in records:
        number = next(count)
        if number % _PROGRESS_RECORDS == 0:
            progress(number)
        yield record


def _first(connection: Connection, stream: JournalStream) -> SerialRange | None:
    """Return the serials of a new generation's first segment, or None if it cannot be written yet."""
    if stream == JournalStream.INDEX:
        start, end = _index_start(connection), complete_serial(connection)
        cell = SerialRange(start, (start // GRID + 1) * GRID)
        return cell if cell.end <= end else None
    complete = ranges_without_segment(connection, stream, latest_generation(connection, stream) + 1)
    return complete[0] if complete else None


def _index_start(connection: Connection) -> int:
    """Return the serial above which the events of all projects are stored."""
    state = read_state(connection)
    return max(int(state["events_since"]), int(state["all_events_since"] or 0))


def _index_cells(catalog: Catalog) -> Iterator[SerialRange]:
    """Yield the complete cells of the index stream that have no segment yet, in order."""
    with catalog.read() as connection:
        complete = complete_serial(connection)
        if complete == 0:
            return
        generation = _generation(connection, JournalStream.INDEX)
        last = last_chained(connection, JournalStream.INDEX, generation)
        start = _index_start(connection) if last is None else last.file.serials.end
    while (end := (start // GRID + 1) * GRID) <= complete:
        yield SerialRange(start, end)
        start = end


def _first_index_cell(connection: Connection, serials: SerialRange) -> dict[str, int]:
    """Count the records of the index stream in the segments that end within the range."""
    generation = _generation(connection, JournalStream.INDEX)
    cells = range(serials.start // GRID * GRID, serials.end, GRID)
    found = (find_segment(connection, JournalStream.INDEX, generation, start) for start in cells)
    ended = [segment.records for segment in found if segment is not None and segment.serials.end in serials]
    return {JournalStream.INDEX.value: sum(ended)} if ended else {}


def _chain(catalog: Catalog, storage: Storage, stream: JournalStream) -> Head:
    """Publish the segments that continue the chain, then the head."""
    with catalog.read() as connection:
        generation = _generation(connection, stream)
        last = last_chained(connection, stream, generation)
        start = _index_start(connection) if stream == JournalStream.INDEX else 0
        first = find_segment(connection, stream, generation, start) if last is None else None
        following = first if last is None else find_segment(connection, stream, generation, last.file.serials.end)
    before = read_head(storage, stream)
    before = before if before is not None and before.generation == generation else None
    begun = before.start if before is not None and before.number else start
    while following is not None:
        manifest = SegmentManifest.of(
            following, 1 if last is None else last.number + 1, None if last is None else last.manifest_sha256
        )
        write_manifest(storage, manifest)
        last = ChainedSegment(following, manifest.number, manifest.digest)
        chain_segment(catalog, last)
        with catalog.read() as connection:
            following = find_segment(connection, stream, generation, following.serials.end)
    end = begun if last is None else last.file.serials.end
    head = Head(
        stream=stream.value,
        generation=generation,
        start=begun,
        end=end,
        number=0 if last is None else last.number,
        digest=None if last is None else last.manifest_sha256,
        open=_open_segment(catalog, storage, generation, end) if stream == JournalStream.INDEX else None,
        takedowns=before.takedowns if before else newest_takedown_file(storage, stream, generation),
        pruned=before.pruned if before else None,
    )
    if before is None:
        head = replace(head, pruned=_found_pruned(storage, head))
    if before != head:
        write_head(storage, head)
    return head


def _found_pruned(storage: Storage, head: Head) -> Pruned | None:
    """Return the pruned part of a generation whose head is lost: everything before the first segment with a file."""
    pruned = None
    try:
        replaced = replaced_segments(storage, head)
        for number in range(1, head.number + 1):
            manifest = read_manifest(storage, head.stream, head.generation, number)
            if storage.exists(segment_path(as_replaced(manifest, replaced))):
                return pruned
            pruned = Pruned(number, manifest.serials.end)
    except JournalDamagedError:
        return None  # pruning keeps manifests, so more than the head was lost
    return pruned


def _open_segment(catalog: Catalog, storage: Storage, generation: int, end: int) -> OpenSegment | None:
    """Write the records of the index stream after its last complete cell, up to the complete serial."""
    head = read_head(storage, JournalStream.INDEX)
    with catalog.read_once() as connection:
        complete = complete_serial(connection)
        if complete <= end:
            return None
        serials = SerialRange(end, complete)
        if head is not None and head.generation == generation and head.open and head.open.serials == serials:
            return head.open
        records = Taking(all_takedowns(connection)).records(index_records(connection, serials))
        file = write_segment(storage, JournalStream.INDEX, generation, serials, records, prefix=OPEN_PREFIX)
    return OpenSegment(serials, file.name, file.records, file.content_bytes, file.sha256)
