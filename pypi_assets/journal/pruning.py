"""Prunes the journal: deletes the segments up to a serial, but not their manifests.

So the chain can still be verified from its beginning, and readers learn from the head where the records begin. Segments
that a replay from the newest full dump needs are never pruned. Segments that a live consumer has not read are pruned
only with `force`. Segments are never joined, since their hashes are part of the chain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pypi_assets.catalog.coordination.leases import renewing, waiting_for_lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_deliveries import UNSEEN_S, Consumer, all_consumers
from pypi_assets.catalog.publications.journal_segments import stream_lease
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.cursors import Cursor, JournalCursorError
from pypi_assets.journal.replay import newest_full_dump
from pypi_assets.journal.segment_files import (
    Head,
    Pruned,
    SegmentManifest,
    read_head,
    read_manifest,
    segment_path,
    write_head,
)
from pypi_assets.journal.signing import publish_heads
from pypi_assets.journal.takedown_files import as_replaced, replaced_segments
from pypi_assets.storage.store import Storage


class JournalPruneError(ExpectedError):
    """The journal cannot be pruned as requested. The message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class PrunedStream:
    """The number of segments and records deleted from a stream, which now begins after `readable_from`."""

    stream: str
    readable_from: int
    segments: int
    records: int


def prune_journal(
    catalog: Catalog, storage: Storage, before: int, *, force: bool = False, dry_run: bool = False, wait_s: float = 0.0
) -> list[PrunedStream]:
    """Delete the segments that end at the serial `before` or earlier, and return the deletions by stream.

    With `dry_run`, nothing is deleted. Raises JournalPruneError unless a full dump ends at `before` or later, or if a
    live consumer has not read all of these records and `force` is not set. Waits up to `wait_s` seconds for a stream
    that is being written, then raises LeaseTakenError.
    """
    dump = newest_full_dump(storage)
    if dump is None or dump.serials.end < before:
        has = "there is none" if dump is None else f"the newest one is at serial {dump.serials.end}"
        raise JournalPruneError(
            f"a replay needs the records after a full dump, and {has}: prune up to its serial at most, or make one"
            " first (pypi-assets dump full)"
        )
    if not force and (lacking := _lacking(catalog, before)):
        named = ", ".join(f"{consumer.name} (has read up to {_whole_serial(consumer)})" for consumer in lacking)
        raise JournalPruneError(
            f"these consumers have not read all records up to serial {before}: {named}. Wait for them, forget them"
            " (pypi-assets journal consumers --forget), or use --force"
        )
    pruned = [
        waiting_for_lease(partial(_prune_stream, catalog, storage, stream, before, dry_run=dry_run), wait_s)
        for stream in JournalStream
    ]
    if not dry_run:
        publish_heads(storage)
        for _, segments in pruned:
            for segment in segments:
                storage.delete(segment_path(segment))
    return [
        PrunedStream(head.stream, head.readable_from, len(segments), sum(segment.records for segment in segments))
        for head, segments in pruned
        if head is not None
    ]


def _lacking(catalog: Catalog, before: int) -> list[Consumer]:
    """Return the live consumers that have not read everything up to the serial `before`."""
    seen_since = catalog.clock() - UNSEEN_S
    with catalog.read() as connection:
        found = list(all_consumers(connection))
    return [consumer for consumer in found if consumer.seen_at >= seen_since and _whole_serial(consumer) < before]


def _whole_serial(consumer: Consumer) -> int:
    try:
        return Cursor.parse(consumer.cursor).whole_serial
    except JournalCursorError:
        return max(consumer.serial - 1, 0)


def _prune_stream(
    catalog: Catalog, storage: Storage, stream: JournalStream, before: int, *, dry_run: bool
) -> tuple[Head | None, Sequence[SegmentManifest]]:
    """Return the new head of a stream and its pruned segments. The head is written unless `dry_run`."""
    with stream_lease(catalog, stream) as held:
        head = read_head(storage, stream.value)
        if head is None:
            return None, ()
        report = renewing(held)
        segments = []
        for segment in _up_to(storage, head, before):
            segments.append(segment)
            report(segment.number)
        if not segments:
            return head, ()
        head = replace(head, pruned=Pruned(segments[-1].number, segments[-1].serials.end))
        if not dry_run:
            write_head(storage, head)
        return head, segments


def _up_to(storage: Storage, head: Head, before: int) -> Iterator[SegmentManifest]:
    replaced = replaced_segments(storage, head)
    for number in range(head.first_number, head.number + 1):
        manifest = read_manifest(storage, head.stream, head.generation, number)
        if manifest.serials.end > before:
            return
        yield as_replaced(manifest, replaced)
