"""What a reader's parent reads for it: the bytes that it requests, from a stream or by ranges.

The messages are those of `reader_process.py`. How the index is fetched from does not belong here.
"""

from collections.abc import Callable
from typing import BinaryIO, cast

from pypi_assets.characters import lower
from pypi_assets.distributions.reader_process import BytesAt, FromReader, NextBytes, Sidecar
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.distributions.sources import RangeSource, RangeSourceError, SeekableFileSource, is_range_source
from pypi_assets.distributions.zips import first_read_at


def as_ranges(source: BinaryIO | RangeSource, filename: str, kind: DistributionKind) -> RangeSource | None:
    """`source` as a range source where it can be one. A local sdist is one where it is a zip by its name and its first
    bytes: the reader sees all of any other, and notes where it is not what its name stands for."""
    if is_range_source(source):
        return cast("RangeSource", source)
    file = cast("BinaryIO", source)
    if not file.seekable():
        return None
    if kind == DistributionKind.SDIST:
        start = file.read(4)
        file.seek(0)
        if not (start.startswith(b"PK") and lower(filename).endswith(".zip")):
            return None
    return SeekableFileSource(file)


def end_of(ranges: RangeSource) -> bytes:
    """What is read of a zip first, which keeps no reader waiting: of most files it needs no more."""
    start = first_read_at(ranges.size)
    try:
        return ranges.read_at(start, ranges.size - start)
    except RangeSourceError as error:
        raise error.error from None


def answer_from(
    stream: BinaryIO, ranges: RangeSource | None, question: FromReader
) -> Callable[[], bytes | None] | None:
    """How to fetch what the reader requests; None where a source of this kind has no such part."""
    match question:
        case NextBytes(size=size) if ranges is None:
            return lambda: stream.read(size)
        case BytesAt(offset=offset, size=size) if ranges is not None:
            return lambda: ranges.read_at(offset, size)
        case Sidecar() if ranges is not None:
            return ranges.sidecar
        case _:
            return None
