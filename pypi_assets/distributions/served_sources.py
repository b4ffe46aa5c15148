"""Provide the bytes that a reader requests from its parent, from a stream or by ranges.

The messages are defined in `reader_process.py`. Fetching from an index does not belong here.
"""

from collections.abc import Callable
from typing import BinaryIO, cast

from pypi_assets.characters import lower
from pypi_assets.distributions.reader_process import BytesAt, FromReader, NextBytes, Sidecar
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.distributions.sources import RangeSource, RangeSourceError, SeekableFileSource, is_range_source
from pypi_assets.distributions.zips import first_read_at


def as_ranges(source: BinaryIO | RangeSource, filename: str, kind: DistributionKind) -> RangeSource | None:
    """Return `source` as a range source, or None if it has to be read as a stream.

    A local sdist is a range source only if it is a zip by its name and its first bytes. The reader sees all bytes of
    any other file and adds a note if its content does not match its name.
    """
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
    """Return the part of a zip that is read first, so that the reader need not wait for it. Most files need no more."""
    start = first_read_at(ranges.size)
    try:
        return ranges.read_at(start, ranges.size - start)
    except RangeSourceError as error:
        raise error.error from None


def answer_from(
    stream: BinaryIO, ranges: RangeSource | None, question: FromReader
) -> Callable[[], bytes | None] | None:
    """Return a function that fetches the requested bytes, or None if this kind of source has no such part."""
    match question:
        case NextBytes(size=size) if ranges is None:
            return lambda: stream.read(size)
        case BytesAt(offset=offset, size=size) if ranges is not None:
            return lambda: ranges.read_at(offset, size)
        case Sidecar() if ranges is not None:
            return ranges.sidecar
        case _:
            return None
