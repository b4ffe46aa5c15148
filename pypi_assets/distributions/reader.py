"""Read one distribution from a source of bytes or a path into a record. Nothing is run or unpacked."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from pypi_assets.characters import lower
from pypi_assets.distributions import sdists, wheels
from pypi_assets.distributions.archives import Names, SafeNames
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import Budget, LimitExceededError, ReadLimits
from pypi_assets.distributions.metadata import (
    CoreMetadata,
    parse_entry_points,
    parse_metadata,
    parse_requires_txt,
    parse_top_level,
    unique,
)
from pypi_assets.distributions.module_names import find_modules
from pypi_assets.distributions.record import AMBIGUOUS, DistributionKind, DistributionRecord, ErrorKind, FilenameParts
from pypi_assets.distributions.record_building import build_record
from pypi_assets.distributions.sdist_names import SdistNames
from pypi_assets.distributions.sources import (
    CHUNK,
    TAIL_BYTES,
    RangeReader,
    RangeSource,
    RangeSourceError,
    SeekableFileSource,
    SequentialSource,
    Spool,
    is_range_source,
)
from pypi_assets.distributions.tars import LZMA_START, extract_tar
from pypi_assets.distributions.wheel_names import WheelNames
from pypi_assets.distributions.zips import extract_zip

_INFO = "EGG-INFO/"
_REQUIRES = (f"{_INFO}requires.txt", f"{_INFO}depends.txt")
_KEPT = frozenset({f"{_INFO}PKG-INFO", f"{_INFO}entry_points.txt", f"{_INFO}top_level.txt", *_REQUIRES})


def wanted(names: Iterable[str]) -> list[str]:
    """Return the members of an egg whose content its record needs."""
    return [name for name in names if name in _KEPT]


def egg_record(parts: FilenameParts, project: str | None, extract: Extract) -> DistributionRecord:
    """Return the record of an egg. setuptools writes no requires.txt if nothing is required."""
    files = extract.files
    metadata = CoreMetadata()
    if f"{_INFO}PKG-INFO" in files:
        metadata = parse_metadata(files[f"{_INFO}PKG-INFO"], "PKG-INFO")
        if metadata.is_empty:
            extract.fail(ErrorKind.BAD_METADATA, "PKG-INFO has neither Metadata-Version nor Name nor Version")
    else:
        extract.fail(ErrorKind.NO_METADATA, f"no {_INFO}PKG-INFO")
    listed = [parse_requires_txt(files[name]) for name in _REQUIRES if name in files]
    if listed:
        requirements = [requirement for requires, _ in listed for requirement in requires]
        requires_dist = unique(requirements)
    else:
        requires_dist = unique(metadata.requires_dist)
    modules = find_modules(extract.members.items())
    return build_record(
        parts,
        project,
        extract,
        metadata,
        requires_dist=None if metadata.is_empty and not listed else requires_dist,
        provides_extra=unique((*metadata.provides_extra, *(extra for _, extras in listed for extra in extras))),
        entry_points=parse_entry_points(files.get(f"{_INFO}entry_points.txt", b"")),
        modules=modules.names if extract.members else None,
        modules_by="archive",
        stubs=modules.stubs,
        left_out=modules.unnameable,
        requires_by="requires.txt" if listed else "PKG-INFO",
        declared=(*parse_top_level(files.get(f"{_INFO}top_level.txt", b"")), *metadata.declared_names),
        at_root=[extract.members[""]] if "" in extract.members else (),
        notes=modules.notes,
    )


_READERS = {
    DistributionKind.WHEEL: (wheels.wanted, wheels.wheel_record),
    DistributionKind.EGG: (wanted, egg_record),
    DistributionKind.SDIST: (sdists.wanted, sdists.sdist_record),
}
_NAMES: dict[DistributionKind, Callable[[Extract, Budget], Names]] = {
    DistributionKind.WHEEL: WheelNames,
    DistributionKind.EGG: SafeNames,
    DistributionKind.SDIST: SdistNames,
}
"""The collector of names for a zip of each kind, by the rules of the tool that installs or unpacks it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The record of a distribution, and the extract that it was made from."""

    record: DistributionRecord
    extract: Extract


def read_distribution(
    source: BinaryIO | RangeSource,
    filename: str,
    *,
    project: str | None = None,
    limits: ReadLimits | None = None,
    hash_content: bool = True,
) -> Reading:
    """Read the distribution in `source` from its start. Its kind follows from `filename`.

    Bad content never raises: the record's `error` describes it. Errors of the source itself are raised, and so is
    MismatchError if a range source differs from the promise of the index. sha256 and size cover all bytes. They are
    None if a limit stopped the reading before the end, or without `hash_content`.

    A tar is read in one pass, so its source need not be seekable. A zip from a source that is not seekable is kept in
    memory, within a limit. Only the directory and the metadata are read from a range source, and from any seekable zip
    without `hash_content`.
    """
    parts = parse_filename(filename, project)
    extract, hashed = _take_out(source, parts, Budget(limits or ReadLimits()), hash_content=hash_content)
    sdists.condense(extract)
    record = make_parsed_record(extract, parts, project)
    if hashed is not None:
        record = replace(record, sha256=hashed.sha256, size=hashed.size)
    return Reading(record, extract)


def read_extract(source: BinaryIO | RangeSource, parts: FilenameParts, limits: ReadLimits) -> Extract:
    """Return the extract that `make_parsed_record` needs, without hashing the source or condensing the extract."""
    extract, _ = _take_out(source, parts, Budget(limits), hash_content=False)
    return extract


def _take_out(
    source: BinaryIO | RangeSource, parts: FilenameParts, budget: Budget, *, hash_content: bool
) -> tuple[Extract, SequentialSource | None]:
    """Return the extract, and the source if all of it was hashed."""
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
    except RangeSourceError as error:
        raise error.error from None
    return extract, sequential if hashed else None


def make_record(extract: Extract, filename: str, *, project: str | None = None) -> DistributionRecord:
    """Return the record that follows from `extract`.

    This is a pure function, so that newer rules can make the record again. sha256 and size are None. The extract is not
    changed.
    """
    return make_parsed_record(extract, parse_filename(filename, project), project)


def make_parsed_record(extract: Extract, parts: FilenameParts, project: str | None) -> DistributionRecord:
    """Return the same record as `make_record` for a filename that is already parsed."""
    extract = extract.copied()
    try:
        if parts.kind in _READERS:
            return _READERS[parts.kind][1](parts, project, extract)
    except LimitExceededError as error:
        extract.fail(ErrorKind.LIMIT_EXCEEDED, str(error))
    return build_record(parts, project, extract, CoreMetadata())


def read_path(path: Path, *, project: str | None = None, limits: ReadLimits | None = None) -> DistributionRecord:
    """Return the record of the file at `path`. Its kind follows from its name. Raise OSError if it cannot be read."""
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
        return _extract_zip_of(SeekableFileSource(file), parts, sequential, budget)
    with Spool() as spool:
        while chunk := sequential.read(CHUNK):
            budget.check_spooled(spool.size + len(chunk))
            spool.add(chunk)
        return _extract_zip_of(spool, parts, sequential, budget)


def _extract_zip_of(whole: RangeSource, parts: FilenameParts, sequential: SequentialSource, budget: Budget) -> Extract:
    """Return the extract of a file that is a zip by its name or content. `sequential` is at the end of the file."""
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


START_BYTES = 512
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_ZIP_END, _ZIP_END_BYTES = b"PK\x05\x06", 22
_GZIP, _BZIP2, _XZ = "gzip", "bzip2", "xz"
_COMPRESSIONS = {b"\x1f\x8b": _GZIP, b"BZh": _BZIP2, b"\xfd7zXZ\0": _XZ, LZMA_START: _XZ}
_UNREAD_COMPRESSIONS = {b"\x1f\x9d": "compress", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z", b"Rar!": "rar"}
_BY_NAME = {
    **dict.fromkeys((".tar.gz", ".tgz"), _GZIP),
    **dict.fromkeys((".tar.bz2", ".tbz"), _BZIP2),
    **dict.fromkeys((".tar.xz", ".txz", ".tlz", ".tar.lz", ".tar.lzma"), _XZ),
}
_PLAIN_TAR_MAGIC = slice(257, 262)
_IS_ZIP = "its name is a tar's and it is a zip: older versions of pip unpack it, newer ones refuse it"
_ENDS_IN_ZIP = "it is a tar that ends like a zip: older versions of pip unpack the zip, newer ones the tar"
_STARTS_AS_TAR = "it is a zip that starts like a tar: pip unpacks the zip"
_IS_TAR = "its name is a zip's and it is a tar: pip refuses it"
_OTHER_COMPRESSION = "it is not compressed as its name has it: pip refuses it"


def unread_compression(start: bytes) -> str | None:
    """Return the name of an unsupported compression, by the first bytes of a file, or None."""
    return _UNREAD_COMPRESSIONS.get(start[:4]) or _UNREAD_COMPRESSIONS.get(start[:2])


def is_tar(start: bytes) -> bool:
    """Check whether the first bytes belong to a compressed file or a tar."""
    return _compression(start) is not None or start[_PLAIN_TAR_MAGIC] == b"ustar"


def is_read_as_tar(filename: str, start: bytes) -> bool:
    """Check whether to read a file as a tar from start to end: it is not a zip by its name or its first bytes."""
    return not lower(filename).endswith(".zip") and not start.startswith(_ZIP_STARTS)


def ends_in_zip(tail: bytes) -> bool:
    """Check whether Python would take a file that ends with `tail` for a zip."""
    tail = tail[-TAIL_BYTES:]
    if tail[-_ZIP_END_BYTES:].startswith(_ZIP_END) and tail.endswith(b"\0\0"):
        return True
    return 0 <= tail.rfind(_ZIP_END) <= len(tail) - _ZIP_END_BYTES


def kind_notes(filename: str, start: bytes, tail: bytes) -> list[str]:
    """Return notes on doubts about the kind of an sdist, from its name, its first bytes and its last bytes."""
    name = lower(filename)
    compression = _compression(start)
    if name.endswith(".zip"):
        problem = None
        if is_tar(start):
            problem = _STARTS_AS_TAR if ends_in_zip(tail) else _IS_TAR
    elif start.startswith(_ZIP_STARTS):
        problem = _IS_ZIP
    elif ends_in_zip(tail):
        problem = _ENDS_IN_ZIP
    else:
        expected = next((by_name for suffix, by_name in _BY_NAME.items() if name.endswith(suffix)), compression)
        problem = _OTHER_COMPRESSION if compression != expected else None
    return [f"{AMBIGUOUS} {problem}"] if problem else []


def _compression(start: bytes) -> str | None:
    return next((name for magic, name in _COMPRESSIONS.items() if start.startswith(magic)), None)
