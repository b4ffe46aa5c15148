"""Takes out of a zip what records are made of: the names of its members and its small metadata files."""

import zipfile
from collections.abc import Callable
from typing import BinaryIO, cast

from pypi_assets.distributions.archives import ARCHIVE_ERRORS, FAILURES, Members
from pypi_assets.distributions.extracts import Extract, printable
from pypi_assets.distributions.limits import Budget
from pypi_assets.distributions.models import ErrorKind
from pypi_assets.distributions.sources import CHUNK, FileSource, RangeSource, SeekableSource

_ZIP_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2})


def extract_zip(source: RangeSource, wanted: Callable[[str], bool], budget: Budget) -> Extract:
    """The names of all files in the zip, and the content of the `wanted` ones."""
    extract = Extract()
    members = Members(extract, budget)
    try:
        seekable = SeekableSource(cast("FileSource", source)._raw, budget.limits.max_directory_bytes)
        with zipfile.ZipFile(cast("BinaryIO", seekable)) as archive:
            kept: dict[str, zipfile.ZipInfo] = {}
            for info in archive.infolist():
                name = members.add(info.filename, is_file=not info.is_dir())
                if name is not None and wanted(name):
                    kept[name] = info
            budget.check_time()
            for name, info in kept.items():
                try:
                    extract.files[name] = _read_zip_member(archive, info, budget)
                except ARCHIVE_ERRORS as error:
                    extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{name}: {type(error).__name__}: {error}"))
    except FAILURES as error:
        extract.fail_with(error)
    members.finish()
    return extract


def _read_zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> bytes:
    """The content, CRC checked. The sizes in the directory are claims: the read itself is bounded."""
    if info.flag_bits & 0x1:
        raise zipfile.BadZipFile("encrypted")
    if info.compress_type not in _ZIP_METHODS:
        raise zipfile.BadZipFile(f"compression method {info.compress_type} is not read")
    budget.keep(info.filename, info.file_size)
    content = bytearray()
    with archive.open(info) as member:
        while chunk := member.read(min(CHUNK, budget.limits.max_metadata_bytes + 1 - len(content))):
            content += chunk
            budget.count_inflated(len(chunk))
    if len(content) != info.file_size:
        raise zipfile.BadZipFile(f"{len(content)} bytes instead of {info.file_size}")
    return bytes(content)
