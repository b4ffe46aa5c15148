"""The records of the dataset `simple`. Its keys are in docs/formats.md.

    f PROJECT FILENAME    the project page's facts about a file

Each file is one record, so the cost of a change depends only on the changed files. The page is assembled when it is
read.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from pypi_assets.leveldbs.datasets.dataset import Change
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import Records, Row, key, prefix

FORMAT = 2
COLUMNS = (
    *("project", "version", "filename", "kind", "outcome", "requires_python", "requires_dist", "provides_extra"),
    *("requires_by", "notes"),
    *("tombstone", "url", "sha256", "size", "uploaded_at", "yanked", "yanked_reason", "core_metadata_sha256"),
    *("project_status", "first_seen_at"),
)
"""The dump columns that `change` reads."""


class FileRecord(NamedTuple):
    """The facts that a page shows about a file. `version` is the text of its release, `kind` the kind of file.

    `yanked` is a flag or the reason, as in PEP 691. `metadata_sha256` is the hash of the metadata rendered for the
    file. If `is_rendered` is False, it is the hash of the metadata served by the index, or None if there are none.
    `first_seen_at` is when an observed index first showed the file, if its page states no upload time. `status` is the
    project's status (PEP 792), or None if unknown.
    """

    version: str
    kind: str
    url: str | None
    sha256: str | None
    size: int | None
    requires_python: str | None
    uploaded_at: str | None
    yanked: bool | str
    metadata_sha256: str | None
    is_rendered: bool
    first_seen_at: str | None
    status: str | None


def change(db: Database | None, project: str, rows: list[Row]) -> Change:
    """Return the records that `rows` change, before and after. `project` is the normalized name."""
    newest = {row["filename"]: row for row in rows}
    before = _stored(db, [key("f", project, filename) for filename in newest]) if db else {}
    after = {
        key("f", project, filename): orjson.dumps(tuple(_record(row)))
        for filename, row in newest.items()
        if not row["tombstone"]
    }
    return before, after


def project_prefix(project: str) -> bytes:
    """Return the beginning of the keys of all files of a project (normalized)."""
    return prefix("f", project)


def file_key(project: str, filename: str) -> bytes:
    """Return the key of a file of a project (normalized)."""
    return key("f", project, filename)


def split_file_key(record_key: bytes) -> tuple[str, str]:
    """Return the project (normalized) and the filename in a key."""
    _, project, filename = record_key.decode().split("\0")
    return project, filename


def decode_files(values: Iterable[bytes]) -> list[FileRecord]:
    """Return the decoded records of files. They are decoded together, since a page can have thousands."""
    decoded: list[list[Any]] = orjson.loads(b"[" + b",".join(values) + b"]")
    return list(map(FileRecord._make, decoded))


def _record(row: Row) -> FileRecord:
    from pypi_assets.distributions.served_metadata import metadata_sha256

    rendered = metadata_sha256(row)
    yanked = row["yanked"] and (row["yanked_reason"] or True)
    return FileRecord(
        version=row["version"],
        kind=row["kind"],
        url=row["url"],
        sha256=row["sha256"],
        size=row["size"],
        requires_python=row["requires_python"],
        uploaded_at=row["uploaded_at"],
        yanked=yanked,
        metadata_sha256=rendered or row["core_metadata_sha256"],
        is_rendered=rendered is not None,
        first_seen_at=row.get("first_seen_at"),
        status=row["project_status"],
    )


def _stored(db: Database, keys: Iterable[bytes]) -> Records:
    found = ((record_key, db.get(record_key, verify_checksums=True)) for record_key in keys)
    return {record_key: value for record_key, value in found if value is not None}
