"""Looks up files by their sha256: which project and version they are from, and since when they are live."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from pypi_assets.leveldbs.datasets.hashes import hash_records as hashes
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import key, records_of, scan, scan_after
from pypi_assets.lookup.answers import Answer, LookupNameError, Stream
from pypi_assets.lookup.reader import DatasetReader, require_text

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.live_files import FoundFile

_HASH_DIGITS = 64
_HEX = re.compile(r"[0-9a-f]+")


class HashResult(TypedDict):
    """A live file with this sha256. `live_since` is the serial since which it is live without a break."""

    sha256: str
    project: str
    normalized: str
    version: str
    filename: str
    live_since: int


class KnownHashResult(TypedDict):
    """A file with this sha256 that is live, or was. `live` has each time it was live, as the serial from which on and
    the serial from which on no longer, or None. `live_since` is None where the file is not live.
    """

    sha256: str
    project: str
    normalized: str
    version: str
    filename: str
    live_since: int | None
    live: list[tuple[int, int | None]]


class HashesReader(DatasetReader):
    """Answers from `hashes`. Upper-case hex digits are as good as lower-case ones."""

    dataset = "hashes"

    def file(self, sha256: str) -> Answer[HashResult]:
        """The live files with this hash, by project and filename. Raises LookupNameError for what is not a sha256."""
        start = hashes.hash_prefix(parse_sha256(require_text("file", sha256)))
        return self._answer(HashResult, lambda db: map(_result, records_of(db, start)))

    def files(self, prefix: str = "", after: tuple[str, ...] | None = None) -> Stream[HashResult]:
        """Return all live files whose hash begins with `prefix`, by hash.

        With `after`, those that come after this hash, project (normalized) and filename. Raises LookupNameError for
        other than hex.
        """
        start = hashes.hashes_prefix(parse_sha256_prefix(prefix) if require_text("files", prefix) else "")

        def results(db: Database) -> Iterator[HashResult]:
            return map(_result, scan(db, start) if after is None else scan_after(db, start, key("h", *after)))

        return self._stream(HashResult, results)


def parse_sha256(text: str) -> str:
    """The hash in lower case. Raises LookupNameError for anything but 64 hex digits."""
    sha256 = text.strip().lower()
    if len(sha256) != _HASH_DIGITS or not _HEX.fullmatch(sha256):
        raise LookupNameError(f"{text!r} is not a sha256, which has {_HASH_DIGITS} hex digits")
    return sha256


def parse_sha256_prefix(text: str) -> str:
    """The beginning of a hash in lower case. Raises LookupNameError for anything but up to 64 hex digits."""
    prefix = text.strip().lower()
    if len(prefix) > _HASH_DIGITS or not _HEX.fullmatch(prefix):
        raise LookupNameError(f"{text!r} is not the beginning of a sha256, which has {_HASH_DIGITS} hex digits")
    return prefix


def hash_of_file(path: Path) -> str:
    """The sha256 of a local file. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def known_files(sha256: str, found: Iterable["FoundFile"]) -> list[KnownHashResult]:
    """Return the files that the catalog has `found`, also those that were removed, with their times."""
    return [
        KnownHashResult(
            sha256=sha256,
            project=file.project,
            normalized=file.normalized,
            version=file.version,
            filename=file.filename,
            live_since=next((start for start, end in file.live if end is None), None),
            live=list(file.live),
        )
        for file in found
    ]


def live_files(found: Iterable[KnownHashResult]) -> Iterator[HashResult]:
    """Yield the files of these that are live, without their times."""
    for one in found:
        if one["live_since"] is not None:
            yield cast("HashResult", {name: one[name] for name in HashResult.__annotations__})  # type: ignore[literal-required]


def _result(record: tuple[bytes, bytes]) -> HashResult:
    sha256, normalized, filename = hashes.split_hash_key(record[0])
    version, project, live_since = hashes.decode_file(record[1])
    return HashResult(
        sha256=sha256,
        project=project,
        normalized=normalized,
        version=version,
        filename=filename,
        live_since=live_since,
    )


READER = HashesReader
