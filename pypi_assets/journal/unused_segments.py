"""Deletes files of the journal that readers cannot find: replaced open segments, and files from stopped writers."""

from collections.abc import Iterator

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_segments import last_chained, segment_names
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.segment_files import Head, read_head, stream_path
from pypi_assets.journal.takedown_files import replaced_segments
from pypi_assets.storage.store import Storage, StoredObject
from pypi_assets.storage.sweeping import is_older, sweep_objects


def clean_journal(catalog: Catalog, storage: Storage, before: float, *, dry_run: bool = False) -> list[StoredObject]:
    """Delete files that are not part of a stream and were written before `before` (unix seconds). Returns them by path.

    A stream is skipped if the catalog and the storage do not have the same chain. With `dry_run`, nothing is deleted.
    """
    found = [
        stored
        for stream in JournalStream
        if (head := read_head(storage, stream)) is not None and _is_known(catalog, head)
        for stored in _unused(catalog, storage, head)
        if is_older(stored, before)
    ]
    return sweep_objects(storage, found, dry_run=dry_run)


def _is_known(catalog: Catalog, head: Head) -> bool:
    with catalog.read() as connection:
        last = last_chained(connection, head.stream, head.generation)
    return (last.number if last else 0, last.manifest_sha256 if last else None) == (head.number, head.digest)


def _unused(catalog: Catalog, storage: Storage, head: Head) -> Iterator[StoredObject]:
    folder = stream_path(head.stream, head.generation)
    with catalog.read() as connection:
        named = segment_names(connection, head.stream, head.generation, head.first_number - 1)
    named |= {
        segment.name for segment in replaced_segments(storage, head).values() if segment.number >= head.first_number
    }
    if head.open is not None:
        named.add(head.open.name)
    for stored in storage.list(folder):
        name = stored.path.removeprefix(f"{folder}/")
        if "/" not in name and name not in named:  # manifests and takedowns are in folders
            yield stored
