"""What is known of a written segment of the journal, in the catalog and in the storage."""

from dataclasses import dataclass

from pypi_assets.catalog.ledger.serial_range import SerialRange


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A written segment: its file and what the file holds. `content_bytes` and `sha256` are of the records before
    compression, `size` is of the file in bytes."""

    stream: str
    generation: int
    serials: SerialRange
    name: str
    records: int
    content_bytes: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ChainedSegment:
    """A segment with its number, from 1, and the hash of its manifest."""

    file: SegmentFile
    number: int
    manifest_sha256: str
