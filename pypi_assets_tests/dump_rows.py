"""Make rows of dumps, and dumps of such rows, for tests."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import itemgetter

from hypothesis import strategies as st
from sqlalchemy import Connection

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS, DumpKind
from pypi_assets.catalog.publications.dump_rows import Contents, dumped_files
from pypi_assets.dumps.dump_format import Row, write_rows
from pypi_assets.dumps.dump_manifest import DumpManifest, file_path, shard_of, write_manifest
from pypi_assets.dumps.dump_writer import put_file
from pypi_assets.storage.store import Storage


def content_rows(connection: Connection, ids: Collection[int], serial: int | None) -> dict[int, dict[str, object]]:
    """Return the contents read from these distributions, by id: the columns CONTENT of a dump's row.

    If a file was replaced after `serial` (None: now), the result has its content at `serial`. Unread files are skipped.
    `requires_python` is the value from the metadata.
    """
    return Contents(connection, serial).read_from(dumped_files(connection, sorted(ids)).values())


def dump_row(normalized: str, version: str, filename: str, **columns: object) -> Row:
    """Return the row of a live file, with plausible values for all columns that `columns` does not name."""
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
    """Sort rows as in a dump file."""
    return sorted(rows, key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))


@st.composite
def histories(
    draw: st.DrawFn,
    files: Sequence[tuple[str, str, str]],
    row_of: Callable[[tuple[str, str, str], int], st.SearchStrategy[Row]],
    most: int,
) -> tuple[list[list[Row]], list[Row]]:
    """Draw a full dump and later ranges of up to `most` rows each. Also return the rows that are live after the last
    range.

    The rows describe the given `files`: (normalized name, version, filename). `row_of` draws the row of a file at a
    serial.
    """
    live: dict[str, Row] = {}
    dumps: list[list[Row]] = []
    for serial in range(draw(st.integers(1, 5))):
        dump = []
        for file in draw(st.lists(st.sampled_from(files), unique_by=itemgetter(2), max_size=most)):
            row = draw(row_of(file, serial))
            if serial == 0 or draw(st.booleans()):
                live[file[2]] = row
                dump.append(row)
            else:  # a tombstone may name a file that was not live
                live.pop(file[2], None)
                dump.append(tombstone_of(row))
        dumps.append(dump)
    return dumps, list(live.values())


def write_dump(storage: Storage, serials: SerialRange, rows: list[Row], *, shards: int = 1) -> DumpManifest:
    """Commit a dump of `rows`. It is a full dump if the range begins at 0. `restore_index` enters it into a catalog."""
    files = []
    for shard in range(shards):
        found = in_order([row for row in rows if shard_of(str(row["normalized"]), shards) == shard])
        path = file_path(serials.key, f"python_distribution_data{shard:04}.json.gz")
        files.append(put_file(storage, path, shard, partial(write_rows, rows=found)))
    kind = DumpKind.INCREMENTAL if serials.start else DumpKind.FULL
    manifest = DumpManifest(kind, serials, serials.key, serials.end, shards, (), tuple(files))
    write_manifest(storage, manifest)
    return manifest
