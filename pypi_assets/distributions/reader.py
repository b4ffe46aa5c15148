"""Reads one distribution, from a source of bytes or a path, into a record. Nothing of it is run or unpacked."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from pypi_assets.distributions import eggs, sdists, wheels
from pypi_assets.distributions.archives import Names, SafeNames
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import Budget, LimitExceededError, Limits
from pypi_assets.distributions.metadata import CoreMetadata
from pypi_assets.distributions.record import DistributionKind, DistributionRecord, ErrorKind, FilenameParts
from pypi_assets.distributions.record_building import build_record
from pypi_assets.distributions.sdist_kinds import (
    START_BYTES,
    ends_in_zip,
    is_read_as_tar,
    is_tar,
    kind_notes,
    unread_compression,
)
from pypi_assets.distributions.sdist_names import SdistNames
from pypi_assets.distributions.sources import (
    CHUNK,
    FileSource,
    RangeReader,
    RangeSource,
    SequentialSource,
    SourceError,
    Spool,
    is_range_source,
)
from pypi_assets.distributions.tars import extract_tar
from pypi_assets.distributions.wheel_names import WheelNames
from pypi_assets.distributions.zips import extract_zip

_READERS = {
    DistributionKind.WHEEL: (wheels.wanted, wheels.wheel_record),
    DistributionKind.EGG: (eggs.wanted, eggs.egg_record),
    DistributionKind.SDIST: (sdists.wanted, sdists.sdist_record),
}
_NAMES: dict[DistributionKind, Callable[[Extract, Budget], Names]] = {
    DistributionKind.WHEEL: WheelNames,
    DistributionKind.EGG: SafeNames,
    DistributionKind.SDIST: SdistNames,
}
"""What collects the names of a zip of each kind, by the rules of what installs or unpacks it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The record of a distribution, and the extract that it was made of."""

    record: DistributionRecord
    extract: Extract


def read_distribution(
    source: BinaryIO | RangeSource,
    filename: str,
    *,
    project: str | None = None,
    limits: Limits | None = None,
    hash_content: bool = True,
) -> Reading:
    """Reads the distribution in `source`, which is at its start; its kind follows from `filename`.

    Never raises at bad content: the record's `error` describes it. What the source itself raises comes up, and so does
    MismatchError, where a range source is not what the index promised. sha256 and size are of all bytes,
    and None where a limit stopped the reading before the end, or without `hash_content`. A tar is read in one pass, so
    its source need not be seekable; a zip from a source that is not seekable is kept in memory, within a limit. A range
    source, and without `hash_content` any seekable zip, is only read where its directory and its metadata are.
    """
    parts = parse_filename(filename, project)
    extract, hashed = _take_out(source, parts, Budget(limits or Limits()), hash_content=hash_content)
    sdists.condense(extract)
    record = make_parsed_record(extract, parts, project)
    if hashed is not None:
        record = replace(record, sha256=hashed.sha256, size=hashed.size)
    return Reading(record, extract)


def read_extract(source: BinaryIO | RangeSource, parts: FilenameParts, limits: Limits) -> Extract:
    """What `make_parsed_record` needs of the distribution in `source`, unhashed and not yet condensed."""
    extract, _ = _take_out(source, parts, Budget(limits), hash_content=False)
    return extract


def _take_out(
    source: BinaryIO | RangeSource, parts: FilenameParts, budget: Budget, *, hash_content: bool
) -> tuple[Extract, SequentialSource | None]:
    """The extract, and the source where all of it was hashed."""
    sequential = None
    if not is_range_source(source):
        sequential = SequentialSource(cast("BinaryIO", source), budget, hash_content=hash_content)
    hashed = sequential is not None and hash_content
    try:
        try:
            extract = _extract(parts, source, sequential, budget, hash_content=hashed)
        except LimitExceededError as error:
            extract = _failed(ErrorKind.LIMIT_EXCEEDED, str(error))
        if sequential is not None and hash_content:
            try:
                sequential.drain()
            except LimitExceededError as error:
                extract.fail(ErrorKind.LIMIT_EXCEEDED, str(error))
                hashed = False
    except SourceError as error:
        raise error.error from None
    return extract, sequential if hashed else None


def make_record(extract: Extract, filename: str, *, project: str | None = None) -> DistributionRecord:
    """The record that follows from `extract`: a pure function, so that later rules can read it again.

    sha256 and size are None. The extract is left as it is.
    """
    return make_parsed_record(extract, parse_filename(filename, project), project)


def make_parsed_record(extract: Extract, parts: FilenameParts, project: str | None) -> DistributionRecord:
    """The same as `make_record`, of a filename that is parsed already."""
    extract = extract.copied()
    try:
        if parts.kind in _READERS:
            return _READERS[parts.kind][1](parts, project, extract)
    except LimitExceededError as error:
        extract.fail(ErrorKind.LIMIT_EXCEEDED, str(error))
    return build_record(parts, project, extract, CoreMetadata())


def read_path(path: Path, *, project: str | None = None, limits: Limits | None = None) -> DistributionRecord:
    """The record of the file at `path`; its kind follows from its name. Raises OSError where it can't be read."""
    with path.open("rb") as source:
        return read_distribution(source, path.name, project=project, limits=limits).record


def _extract(
    parts: FilenameParts,
    source: BinaryIO | RangeSource,
    sequential: SequentialSource | None,
    budget: Budget,
    *,
    hash_content: bool,
) -> Extract:
    kind = parts.kind
    if kind not in _READERS:
        return _failed(ErrorKind.UNSUPPORTED_KIND, f"files of kind {kind} are not read")
    if sequential is None:
        return _extract_zip(cast("RangeSource", source), kind, budget)
    file = cast("BinaryIO", source)
    if kind == DistributionKind.SDIST:
        start = sequential.peek(START_BYTES)
        if compression := unread_compression(start):
            return _failed(ErrorKind.UNSUPPORTED_KIND, f"archives compressed by {compression} are not read")
        if is_read_as_tar(parts.filename, start):
            extract = extract_tar(sequential, sdists.is_wanted, budget)
            sequential.drain()
            extract.notes += kind_notes(parts.filename, start, sequential.tail)
            return extract
    if file.seekable():
        if hash_content or kind == DistributionKind.SDIST:
            sequential.drain()
        return _extract_zip_of(FileSource(file), parts, sequential, budget)
    with Spool() as spool:
        while chunk := sequential.read(CHUNK):
            budget.check_spooled(spool.size + len(chunk))
            spool.add(chunk)
        return _extract_zip_of(spool, parts, sequential, budget)


def _extract_zip_of(whole: RangeSource, parts: FilenameParts, sequential: SequentialSource, budget: Budget) -> Extract:
    """The extract of what is a zip by its name or its content; `sequential` was at the end of the file."""
    if parts.kind != DistributionKind.SDIST:
        return _extract_zip(whole, parts.kind, budget)
    start = whole.read_at(0, START_BYTES)
    if ends_in_zip(sequential.tail) or not is_tar(start):
        extract = _extract_zip(whole, parts.kind, budget)
    else:
        again = SequentialSource(cast("BinaryIO", RangeReader(whole)), budget, hash_content=False)
        extract = extract_tar(again, sdists.is_wanted, budget)
    extract.notes += kind_notes(parts.filename, start, sequential.tail)
    return extract


def _extract_zip(source: RangeSource, kind: DistributionKind, budget: Budget) -> Extract:
    return extract_zip(source, _READERS[kind][0], budget, _NAMES[kind])


def _failed(kind: ErrorKind, text: str) -> Extract:
    extract = Extract()
    extract.fail(kind, text)
    return extract
