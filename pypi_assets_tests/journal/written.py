"""Journals for tests: one of a small index with a history, and one of drawn records without a catalog."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson
import zstandard

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import JournalStream, Record, new_record, numbered
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import Head, SegmentManifest, write_head, write_manifest, write_segment
from pypi_assets.journal.tailing import Scan, beginning
from pypi_assets.storage.store import Storage
from pypi_assets_tests.service.published import Published, fill, published_index


@contextmanager
def journaled_index(folder: Path) -> Iterator[Published]:
    """Yield the published index of the service's tests, with its journal."""
    with published_index(folder) as index:
        fill(index)
        index.publish_first()
        write_journal(index)
        yield index


def write_journal(published: Published) -> None:
    """Write the missing parts of its journal."""
    list(write_missing(published.catalog, published.storage))


def simple_record(serial: int, kind: str, project: str, **fields: object) -> Record:
    """Return a record of a stream, without its position."""
    return (
        new_record(serial, serial, kind, 1_772_000_000 + serial) | {"project": project, "normalized": project} | fields
    )


def write_streams(
    storage: Storage,
    streams: dict[JournalStream, Sequence[Record]],
    through: int,
    *,
    start: int = 0,
    cuts: Iterable[int] = (),
) -> Journal:
    """Write a journal of these records, with segments that end at `cuts` and at `through`."""
    ends = sorted({*cuts, through})
    for stream in JournalStream:
        records = list(numbered(stream, streams.get(stream, ())))
        begin, previous = start, None
        for number, end in enumerate(ends, 1):
            serials = SerialRange(begin, end)
            some = [record for record in records if record["serial"] in serials]
            manifest = SegmentManifest.of(write_segment(storage, stream, 1, serials, some), number, previous)
            write_manifest(storage, manifest)
            begin, previous = end, manifest.digest
        write_head(storage, Head(stream.value, 1, start, through, len(ends), previous))
    return Journal(storage)


def records_of(
    journal: Journal, after: Cursor | None = None, streams: Sequence[str] = (), through: int | None = None
) -> list[Record]:
    """Return the records of some streams (default: all) after a cursor (None: from the beginning)."""
    wanted = RecordFilter(streams=frozenset(streams))
    scan = Scan(journal, beginning(journal, wanted) if after is None else after, wanted, through=through)
    return [orjson.loads(line) for _, line in scan if line is not None]


def plain_files(storage: Storage) -> dict[str, bytes]:
    """Return all journal files in a storage, with decompressed segments."""
    contents = {file.path: storage.get(file.path) for file in storage.list("journal")}
    return {
        path: zstandard.ZstdDecompressor().decompressobj().decompress(content) if path.endswith(".zst") else content
        for path, content in contents.items()
    }


def flip_a_bit(file: Path) -> None:
    """Flip one bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.chmod(0o644)
    file.write_bytes(content)
