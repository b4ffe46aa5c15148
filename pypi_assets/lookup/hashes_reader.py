"""Look up files by SHA-256: their project and version, and the serial since which they are live."""

import re
from collections.abc import Iterable, Iterator
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
    """A live file with this SHA-256. It has been live without interruption since the serial `live_since`."""

    sha256: str
    project: str
    normalized: str
    version: str
    filename: str
    live_since: int


class KnownHashResult(TypedDict):
    """A file with this SHA-256 that is or was live.

    `live` lists its live intervals as (first serial, first serial at which it was no longer live, or None).
    `live_since` is None if the file is not live now.
    """

    sha256: str
    project: str
    normalized: str
    version: str
    filename: str
    live_since: int | None
    live: list[tuple[int, int | None]]


class HashesReader(DatasetReader):
    """A reader of the dataset `hashes`. Hashes may be written in upper case."""

    dataset = "hashes"

    def file(self, sha256: str) -> Answer[HashResult]:
        """Return the live files with this hash, by project and filename. Raises LookupNameError if it is invalid."""
        start = hashes.hash_prefix(parse_sha256(require_text("file", sha256)))
        return self._answer(HashResult, lambda db: map(_result, records_of(db, start)))

    def files(self, prefix: str = "", after: tuple[str, ...] | None = None) -> Stream[HashResult]:
        """Return all live files whose hash begins with `prefix`, by hash.

        `after` is a hash, a normalized project name and a filename: the stream begins after this file. Raises
        LookupNameError if `prefix` is not hexadecimal.
        """
        start = hashes.hashes_prefix(parse_sha256_prefix(prefix) if require_text("files", prefix) else "")

        def results(db: Database) -> Iterator[HashResult]:
            return map(_result, scan(db, start) if after is None else scan_after(db, start, key("h", *after)))

        return self._stream(HashResult, results)


def parse_sha256(text: str) -> str:
    """Return the hash in lower case. Raises LookupNameError unless it has 64 hex digits."""
    sha256 = text.strip().lower()
    if len(sha256) != _HASH_DIGITS or not _HEX.fullmatch(sha256):
        raise LookupNameError(f"{text!r} is not a SHA-256, which has {_HASH_DIGITS} hex digits")
    return sha256


def parse_sha256_prefix(text: str) -> str:
    """Return the beginning of a hash in lower case. Raises LookupNameError unless it has 1 to 64 hex digits."""
    prefix = text.strip().lower()
    if len(prefix) > _HASH_DIGITS or not _HEX.fullmatch(prefix):
        raise LookupNameError(f"{text!r} is not the beginning of a SHA-256, which has {_HASH_DIGITS} hex digits")
    return prefix


def known_files(sha256: str, found: Iterable["FoundFile"]) -> list[KnownHashResult]:
    """Return the files that the catalog has `found` as results, including deleted files, with their live intervals."""
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
    """Yield the live files, without their live intervals."""
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
