"""Cleans up a mirror: deletes files that published.json has not named for the grace period.

Within the grace period, readers of the mirror, or a mirror of it, may still use them. No catalog is needed.
"""

from collections.abc import Iterator, Mapping

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.dumps.dump_manifest import DUMPS
from pypi_assets.dumps.dump_manifest import MANIFEST_NAME as DUMP_MANIFEST
from pypi_assets.journal.segment_files import (
    JOURNAL,
    OPEN_PREFIX,
    Head,
    open_manifest,
    read_head,
    segment_path,
    stream_path,
)
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import input_list_path, leveldbs_path, stored_input_lists
from pypi_assets.mirror.chains import dropped_segments
from pypi_assets.mirror.sync_plan import PublishedState, held_publication
from pypi_assets.storage.store import Storage, StoredObject
from pypi_assets.storage.sweeping import drop_empty_folder, is_older, sweep_objects


def superseded_since(
    storage: Storage, held: PublishedState, before: Mapping[str, float], now: float
) -> dict[str, float]:
    """Return since when dumps, versions, generations, and open or dropped segments in the storage are no longer named.

    The keys are paths, and the values are unix seconds. `before` is the previous result; new entries get the time
    `now`.
    """
    heads = _heads(storage, held)
    named = held.roots | {stream_path(head.stream, head.generation) for head in heads}
    named |= {segment_path(open_manifest(head, head.open)) for head in heads if head.open is not None}
    roots = (*_roots(storage), *dropped_segments(storage, heads))
    return {root: before.get(root, now) for root in roots if root not in named}


def delete_unnamed(
    storage: Storage, held: PublishedState, superseded: Mapping[str, float], before: float
) -> list[StoredObject]:
    """Delete publications that were superseded before `before` (unix seconds), and older orphaned files. Returns them.

    Input lists and manifests are deleted before the files that they name. If a publication that stays cannot be read,
    nothing in its folder is deleted.
    """
    list(storage.delete_unfinished(before))
    found = [
        *_of_publications(storage, DUMPS, held, superseded, before),
        *(stored for dataset in DATASETS for stored in _of_publications(storage, dataset, held, superseded, before)),
        *_of_journal(storage, held, superseded, before),
    ]
    sweep_objects(storage, found)
    for folder in sorted({stored.path.rpartition("/")[0] for stored in found}, reverse=True):
        drop_empty_folder(storage, folder)
    return found


def _heads(storage: Storage, held: PublishedState) -> list[Head]:
    """Return the heads that the source names, and the local heads of streams that it does not name now.

    So a stream that the source temporarily lost is kept here.
    """
    own = (read_head(storage, stream) for stream in JournalStream if stream.value not in held.heads)
    return [*held.heads.values(), *(head for head in own if head is not None)]


def _roots(storage: Storage) -> Iterator[str]:
    for stored in storage.list(DUMPS):
        if stored.path.endswith(f"/{DUMP_MANIFEST}"):
            yield stored.path
    for dataset in DATASETS:
        for version in stored_input_lists(storage, dataset):
            yield input_list_path(dataset, version)
    of_journal = [stored.path for stored in storage.list(JOURNAL) if stored.path.count("/") > 2]
    yield from {_generation(path) for path in of_journal}
    yield from (path for path in of_journal if _is_open(path))


def _of_publications(
    storage: Storage, folder: str, held: PublishedState, superseded: Mapping[str, float], before: float
) -> Iterator[StoredObject]:
    over = {root for root, since in superseded.items() if since < before}
    kept = {root for root in (held.roots | superseded.keys()) - over if root.startswith(f"{folder}/")}
    named: set[str] = set()
    for root in kept:
        publication = held_publication(storage, root)
        if publication is None:
            return
        named.update((root, *(file.path for file in publication.files), *(path for path, _ in publication.objects)))
    prefixes = [DUMPS] if folder == DUMPS else [f"{folder}/input_lists", leveldbs_path(folder)]
    for prefix in prefixes:
        for stored in storage.list(prefix):
            if stored.path not in named and (stored.path in over or is_older(stored, before)):
                yield stored


def _of_journal(
    storage: Storage, held: PublishedState, superseded: Mapping[str, float], before: float
) -> Iterator[StoredObject]:
    """Yield the superseded files of the journal.

    In a generation with a head, only open segments and segments that the source has pruned or replaced can be
    superseded.
    """
    named = {stream_path(head.stream, head.generation) for head in _heads(storage, held)}
    for stored in storage.list(JOURNAL):
        if stored.path.count("/") > 2:
            root = _generation(stored.path)
            is_apart = stored.path in superseded or _is_open(stored.path)
            root = stored.path if root in named and is_apart else root
            if superseded.get(root, before) < before:
                yield stored


def _generation(path: str) -> str:
    return "/".join(path.split("/")[:3])


def _is_open(path: str) -> bool:
    return path.rpartition("/")[2].startswith(OPEN_PREFIX)
