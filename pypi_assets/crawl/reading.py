"""Fetches and reads distributions until each one of a scope has an outcome."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.packs import StoredPack
from pypi_assets.catalog.queue import shards_with_projects
from pypi_assets.catalog.reads import (
    FinishedRead,
    Outcome,
    PendingRead,
    count_pending_reads,
    next_read_due,
    pending_reads,
    store_reads,
)
from pypi_assets.crawl.crawler import Crawler, Progress
from pypi_assets.crawl.fetching import fetch_and_read
from pypi_assets.crawl.packs import PackedExtract, make_pack, pack_path
from pypi_assets.crawl.visiting import in_threads
from pypi_assets.storage.store import Storage

_BATCH = 500
"""Reads that are looked for at once. What was read is committed at the end of a batch, so a pack holds as many."""
_COMMIT_EVERY_S = 5.0
_COMMIT_BYTES = 32 * 1024**2
_GROUP_PROJECTS = 500


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """What came of the reads of one call, and what it cost; `bytes_fetched` counts what was fetched for them."""

    data: int = 0
    errors: int = 0
    unsupported: int = 0
    vanished: int = 0
    gave_up: int = 0
    bytes_fetched: int = 0
    requests: int = 0
    seconds: float = 0.0


def read_scope(crawler: Crawler, scope: str | None, shards: Sequence[int] | None = None) -> ReadCounts:
    """Reads every distribution that is pending in the projects of `scope` (None: of all), within `shards`."""
    catalog = crawler.catalog
    started = time.monotonic()
    counts = dict.fromkeys(Outcome, 0)
    fetched = requests = done = 0
    with ThreadPoolExecutor(crawler.connections, thread_name_prefix="read") as pool:
        while True:
            with catalog.read() as connection:
                due_at = next_read_due(connection, scope, shards)
                total = done + count_pending_reads(connection, scope, shards)
                groups = [shards] if scope is None else _groups_to_read(connection, scope, shards)
            crawler.report(Progress("reads", done, total, counts[Outcome.ERROR] + counts[Outcome.GAVE_UP]))
            if due_at is None:
                break
            if due_at > catalog.clock():
                crawler.wait_until(due_at)
                continue
            for reads in _due_reads(catalog, scope, groups):
                unsaved: list[tuple[PendingRead, FinishedRead]] = []
                saved_at, unsaved_bytes = time.monotonic(), 0
                for answers in in_threads(pool, lambda read: fetch_and_read(crawler, read), reads):
                    for read, finished in answers:
                        counts[finished.outcome] += 1
                        fetched += finished.bytes_fetched
                        requests += finished.requests
                        unsaved.append((read, finished))
                        unsaved_bytes += len(finished.extract or b"")
                        if time.monotonic() >= saved_at + _COMMIT_EVERY_S or unsaved_bytes >= _COMMIT_BYTES:
                            _save(crawler, unsaved)
                            unsaved = []
                            saved_at, unsaved_bytes = time.monotonic(), 0
                _save(crawler, unsaved)
                done = sum(counts[outcome] for outcome in Outcome if outcome != Outcome.PENDING)
                failed = counts[Outcome.ERROR] + counts[Outcome.GAVE_UP]
                crawler.report(Progress("reads", done, max(total, done), failed))
    return ReadCounts(
        data=counts[Outcome.DATA],
        errors=counts[Outcome.ERROR],
        unsupported=counts[Outcome.UNSUPPORTED],
        vanished=counts[Outcome.VANISHED],
        gave_up=counts[Outcome.GAVE_UP],
        bytes_fetched=fetched,
        requests=requests,
        seconds=time.monotonic() - started,
    )


def shard_groups(shards: Iterable[int], sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """`shards` in groups of a few hundred projects; `sizes` tells how many projects a shard has, if any."""
    group: list[int] = []
    projects = 0
    for shard in shards:
        group.append(shard)
        projects += sizes.get(shard, 0)
        if projects >= _GROUP_PROJECTS:
            yield group
            group, projects = [], 0
    if group:
        yield group


def _groups_to_read(connection: Connection, scope: str, shards: Sequence[int] | None) -> list[Sequence[int] | None]:
    """What is due is looked for in one group at a time, since a full crawl can have millions of reads pending."""
    sizes = shards_with_projects(connection, scope)
    if shards is None and sum(sizes.values()) <= _GROUP_PROJECTS:
        return [None]
    return list(shard_groups(sorted(sizes if shards is None else sizes.keys() & set(shards)), sizes))


def _due_reads(
    catalog: Catalog, scope: str | None, groups: Sequence[Sequence[int] | None]
) -> Iterator[list[PendingRead]]:
    """What is due, in batches, group by group."""
    for group in groups:
        while True:
            with catalog.read() as connection:
                reads = pending_reads(connection, scope, group, catalog.clock(), _BATCH)
            if not reads:
                break
            yield reads


def _save(crawler: Crawler, reads: Sequence[tuple[PendingRead, FinishedRead]]) -> None:
    """Stores the extracts as one pack, and then, in one transaction, what came of the reads."""
    catalog = crawler.catalog
    ordered = sorted(reads, key=lambda pair: pair[0].distribution_id)
    pack = _store_extracts(crawler.storage, ordered)
    finished = [finished for _, finished in ordered]
    catalog.transact(lambda connection: store_reads(connection, finished, catalog.clock(), pack))


def _store_extracts(storage: Storage, reads: Iterable[tuple[PendingRead, FinishedRead]]) -> StoredPack | None:
    extracted = [(read, finished.extract) for read, finished in reads if finished.extract is not None]
    if not extracted:
        return None
    pack = make_pack([PackedExtract(read.project, read.filename, read.sha256, extract) for read, extract in extracted])
    storage.put(pack_path(pack.name), pack.content)
    places = {
        read.distribution_id: (entry.offset, entry.length)
        for (read, _), entry in zip(extracted, pack.entries, strict=True)
    }
    return StoredPack(pack.name, len(pack.content), places)
