"""The records of the dataset `hashes`. Its keys are in docs/formats.md.

    h SHA256 PROJECT FILENAME    [version, display name, serial]    the answer for a hash
    f PROJECT FILENAME           SHA256                             leads to the record of a file

It has live files only, so a version that was built on others equals a version built from scratch. A file has no record
if the index does not show its hash.
"""

from collections.abc import Iterable

import orjson

from pypi_assets.leveldbs.datasets.dataset import Change
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.records import Records, Row, as_part, key, prefix

FORMAT = 1
COLUMNS = ("project", "version", "filename", "tombstone", "sha256", "live_since")
"""The dump columns that `change` reads."""


def change(db: Database | None, project: str, rows: list[Row]) -> Change:
    """Return the records that `rows` change, before and after. `project` is the normalized name."""
    filenames = {as_part(row["filename"]) for row in rows}
    return _stored(db, project, filenames) if db else {}, _records(project, rows)


def hash_prefix(sha256: str) -> bytes:
    """Return the beginning of the keys of all files with this hash (64 hex digits, lower case)."""
    return prefix("h", sha256)


def hashes_prefix(beginning: str) -> bytes:
    """Return the beginning of the keys of all files whose hash begins with `beginning`."""
    return key("h", beginning)


def split_hash_key(hash_key: bytes) -> tuple[str, str, str]:
    """Return the hash, the project's normalized name and the filename in a key below `hash_prefix`."""
    _, sha256, project, filename = hash_key.decode().split("\0")
    return sha256, project, filename


def decode_file(value: bytes) -> tuple[str, str, int]:
    """Return the version, the project's display name, and the serial since which the file is live."""
    version, display, live_since = orjson.loads(value)
    return version, display, live_since


def _records(project: str, rows: Iterable[Row]) -> Records:
    """Return the records of the files in `rows`. If a file has several rows, the last row counts."""
    records: Records = {}
    for row in {row["filename"]: row for row in rows}.values():
        if row["tombstone"] or row["sha256"] is None:
            continue
        sha256 = as_part(row["sha256"].lower())
        value = orjson.dumps([row["version"], row["project"], row["live_since"]])
        records[key("h", sha256, project, row["filename"])] = value
        records[key("f", project, row["filename"])] = sha256.encode()
    return records


def _stored(db: Database, project: str, filenames: Iterable[str]) -> Records:
    """Return the records of these files. Raises LeveldbDamagedError if a file has only one of its two records."""
    records: Records = {}
    for filename in filenames:
        place_key = key("f", project, filename)
        sha256 = db.get(place_key, verify_checksums=True)
        if sha256 is None:
            continue
        hash_key = key("h", sha256.decode(), project, filename)
        value = db.get(hash_key, verify_checksums=True)
        if value is None:
            raise LeveldbDamagedError(f"{hash_key!r} is missing, but a file refers to it")
        records |= {place_key: sha256, hash_key: value}
    return records
