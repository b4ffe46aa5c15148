"""Rows of dumps, and dumps of them, as tests make them."""

import hashlib
import io

from pypi_assets.catalog.dumps import DumpFile, DumpKind
from pypi_assets.catalog.ranges import SerialRange
from pypi_assets.dumps.layout import file_path, shard_of
from pypi_assets.dumps.manifest import Manifest, write_manifest
from pypi_assets.dumps.rows import COLUMNS, Row, write_rows
from pypi_assets.storage.store import Storage


def dump_row(normalized: str, version: str, filename: str, **columns: object) -> Row:
    """A row of a live file, with sensible values where `columns` names none."""
    row: Row = dict.fromkeys(COLUMNS)
    return row | {
        "project": normalized,
        "normalized": normalized,
        "version": version,
        "filename": filename,
        "tombstone": False,
        "kind": "wheel" if filename.endswith(".whl") else "sdist",
        "sha256": "ab" * 32,
        "size": 10,
        "uploaded_at": "2026-01-02T03:04:05Z",
        "yanked": False,
        "live_since": 1,
        "outcome": "data",
        "requires_dist": [],
        "provides_extra": [],
        "modules": [],
        "stubs": [],
        "left_out": 0,
        **columns,
    }


def tombstone_of(row: Row) -> Row:
    return {name: row[name] for name in ("project", "normalized", "version", "filename")} | {"tombstone": True}


def in_order(rows: list[Row]) -> list[Row]:
    """As they stand in a dump file."""
    return sorted(rows, key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))


def write_dump(storage: Storage, serials: SerialRange, rows: list[Row], *, shards: int = 1) -> Manifest:
    """Commits a dump of `rows`, a full one where the range begins at 0. `restore_index` enters it into a catalog."""
    files = []
    for shard in range(shards):
        buffer = io.BytesIO()
        count = write_rows(buffer, in_order([row for row in rows if shard_of(str(row["normalized"]), shards) == shard]))
        content = buffer.getvalue()
        file = DumpFile(
            shard,
            f"python_distribution_data{shard:04}.json.gz",
            count,
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
        storage.put(file_path(serials.key, file.name), content)
        files.append(file)
    kind = DumpKind.INCREMENTAL if serials.start else DumpKind.FULL
    manifest = Manifest(kind, serials, serials.key, serials.end, shards, (), tuple(files))
    write_manifest(storage, manifest)
    return manifest
