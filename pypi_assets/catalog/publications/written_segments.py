"""Descriptions of written journal segments, shared by the catalog and the storage."""

from dataclasses import dataclass

from pypi_assets.catalog.ledger.serial_range import SerialRange


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A written segment: its file, and the records in it.

    `content_bytes` and `sha256` are of the records before compression; `size` is the size of the file in bytes.
    """

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
