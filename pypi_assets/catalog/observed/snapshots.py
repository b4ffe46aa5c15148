"""Snapshots: what pages showed. Each set of files is stored once, named by the hash of its content."""

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from pypi_assets.catalog.database import at_a_time, insert_missing
from pypi_assets.catalog.tables import snapshots
from pypi_assets.index.models import IndexFile


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files that a page showed, as (filename, sha256, yanked), by filename. `sha256` is of the whole snapshot."""

    sha256: str
    files: list[tuple[str, str | None, bool]]


def snapshot_content(files: Iterable[IndexFile]) -> bytes:
    """The snapshot of a page with these files, as it is hashed and stored."""
    shown = sorted(((file.filename, file.sha256, file.yanked) for file in files), key=lambda entry: entry[0])
    return json.dumps(shown, separators=(",", ":")).encode()


def store_snapshots(connection: Connection, contents: Iterable[bytes]) -> dict[bytes, int]:
    """Stores new snapshots of `contents`. Returns the id of each."""
    digests = {content: hashlib.sha256(content).hexdigest() for content in contents}
    found = _find_snapshots(connection, digests.values())
    new = {digest: content for content, digest in digests.items() if digest not in found}
    insert_missing(
        connection, snapshots, [{"sha256": digest, "content": zlib.compress(new[digest])} for digest in sorted(new)]
    )
    found |= _find_snapshots(connection, new)
    return {content: found[digest] for content, digest in digests.items()}


def read_snapshots(connection: Connection, snapshot_ids: Collection[int]) -> Iterator[tuple[int, Snapshot]]:
    """Yields the id and the snapshot for each of these ids."""
    for ids in at_a_time(sorted(snapshot_ids)):
        for row in connection.execute(select(snapshots).where(snapshots.c.id.in_(ids))):
            yield row.id, Snapshot(row.sha256, json.loads(zlib.decompress(row.content)))


def _find_snapshots(connection: Connection, digests: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for wanted in at_a_time(digests):
        rows = connection.execute(select(snapshots.c.sha256, snapshots.c.id).where(snapshots.c.sha256.in_(wanted)))
        found.update((sha256, snapshot_id) for sha256, snapshot_id in rows)
    return found
