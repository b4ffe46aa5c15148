"""Reads one distribution, from a source of bytes or a path, into a record. Nothing of it is run or unpacked."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from pypi_assets.distributions import eggs, sdists, wheels
from pypi_assets.distributions.archives import Extract, extract_tar, extract_zip
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import Budget, LimitExceededError, Limits
from pypi_assets.distributions.metadata import CoreMetadata
from pypi_assets.distributions.models import DistributionKind, DistributionRecord, ErrorKind
from pypi_assets.distributions.records import build_record
from pypi_assets.distributions.sources import CHUNK, SequentialSource, SourceError

SPOOLED_BYTES = 64 * 1024**2
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_UNREAD_COMPRESSIONS = {b"\x1f\x9d": "compress", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z", b"Rar!": "rar"}
_READERS = {
    DistributionKind.WHEEL: (wheels.is_wanted, wheels.wheel_record),
    DistributionKind.EGG: (eggs.is_wanted, eggs.egg_record),
    DistributionKind.SDIST: (sdists.is_wanted, sdists.sdist_record),
}


def read_distribution(
    source: BinaryIO,
    filename: str,
    *,
    project: str | None = None,
    limits: Limits | None = None,
    hash_content: bool = True,
) -> DistributionRecord:
    """The record of the distribution in `source`, which is at its start; `filename` tells its kind.

    Never raises at bad content: the record's `error` says what is wrong with it. What the source itself raises, comes
    up. sha256 and size are of all bytes, and None where a limit stopped the reading before the end. A tar is read in
    one pass, so its source need not be seekable; a zip from a source that is not seekable goes through a temporary
    file. Without `hash_content` a seekable zip is only read where its directory and its metadata are (sha256 and size
    stay None): for sources of which every byte costs.
    """
    parts = parse_filename(filename, project)
    budget = Budget(limits or Limits())
    sequential = SequentialSource(source, budget)
    hashed = hash_content
    try:
        try:
            extract = _extract(parts.kind, source, sequential, budget, hash_content=hash_content)
        except LimitExceededError as error:
            extract = _failed(ErrorKind.LIMIT_EXCEEDED, str(error))
        if hash_content:
            try:
                sequential.drain()
            except LimitExceededError as error:
                extract.fail(ErrorKind.LIMIT_EXCEEDED, str(error))
                hashed = False
    except SourceError as error:
        raise error.error from None
    try:
        record = _READERS[parts.kind][1](parts, project, extract) if parts.kind in _READERS else None
    except LimitExceededError as error:
        extract.fail(ErrorKind.LIMIT_EXCEEDED, str(error))
        record = None
    record = record or build_record(parts, project, extract, CoreMetadata())
    return replace(record, sha256=sequential.sha256, size=sequential.size) if hashed else record


def read_path(path: Path, *, project: str | None = None, limits: Limits | None = None) -> DistributionRecord:
    """The record of the file at `path`, whose name tells its kind. Raises OSError where it can't be read."""
    with path.open("rb") as source:
        return read_distribution(source, path.name, project=project, limits=limits)


def _extract(
    kind: DistributionKind, source: BinaryIO, sequential: SequentialSource, budget: Budget, *, hash_content: bool
) -> Extract:
    if kind not in _READERS:
        return _failed(ErrorKind.UNSUPPORTED_KIND, f"files of kind {kind} are not read")
    is_wanted = _READERS[kind][0]
    if kind == DistributionKind.SDIST:
        start = sequential.peek(4)
        if compression := _UNREAD_COMPRESSIONS.get(start) or _UNREAD_COMPRESSIONS.get(start[:2]):
            return _failed(ErrorKind.UNSUPPORTED_KIND, f"archives compressed by {compression} are not read")
        if start not in _ZIP_STARTS:
            return extract_tar(sequential, is_wanted, budget)
    if source.seekable():
        if hash_content:
            sequential.drain()
        return extract_zip(source, is_wanted, budget)
    with tempfile.SpooledTemporaryFile(SPOOLED_BYTES) as spool:
        while chunk := sequential.read(CHUNK):
            spool.write(chunk)
        return extract_zip(cast("BinaryIO", spool), is_wanted, budget)


def _failed(kind: ErrorKind, text: str) -> Extract:
    extract = Extract()
    extract.fail(kind, text)
    return extract
