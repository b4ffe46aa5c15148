"""Reads the pending distributions of a workload until each has an outcome, and stores the outcomes.

`fetching.py` downloads a distribution. `visiting.py` has the same loop for project pages.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from typing import Any

from pypi_assets.catalog.reads.read_outcomes import FinishedRead, ReadOutcome, StoredPack
from pypi_assets.catalog.work.read_queue import (
    PendingRead,
    claim_reads,
    count_pending_reads,
    finish_reads,
    pending_by_shard,
    reads_ready_at,
)
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.draining import Pace, claiming, drain
from pypi_assets.crawl.fetching import choose_file_origin, fetch_and_read, in_bundles
from pypi_assets.crawl.keeping import ReadKeeping
from pypi_assets.extracts.packs import PackedExtract, make_pack, pack_path
from pypi_assets.progress import Progress
from pypi_assets.storage.store import Storage

_COMMIT_EVERY_S = 5.0
_COMMIT_BYTES = 32 * 1024**2
_COMMIT_READS = 500
"""Reads are committed once one of these three limits is reached. A pack holds the extracts of one commit."""
_GROUP_READS = 5_000


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """The outcomes of the reads of one call, and their cost in bytes, requests and seconds.

    `failures` counts errors and exhausted reads by kind. `lost` counts reads that another worker has taken over, since
    their claims were not renewed in time.
    """

    data: int = 0
    errors: int = 0
    unsupported: int = 0
    vanished: int = 0
    exhausted: int = 0
    lost: int = 0
    bytes_fetched: int = 0
    requests: int = 0
    seconds: float = 0.0
    failures: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "ReadCounts") -> "ReadCounts":
        sums: dict[str, Any] = {
            one.name: getattr(self, one.name) + getattr(other, one.name)
            for one in fields(self)
            if one.name != "failures"
        }
        return ReadCounts(**sums, failures=dict(Counter(self.failures) + Counter(other.failures)))


def read_workload(
    crawler: Crawler,
    workload: str | None,
    shards: Sequence[int] | None = None,
    *,
    only_due: bool = False,
    only_first: bool = False,
) -> ReadCounts:
    """Read all pending distributions of the projects in `workload` (None: of all projects), within `shards` (None:
    all).

    It returns when no process has such a read left. With `only_due`, it returns if no remaining read is due and free.
    With `only_first`, it reads only files that may bring further projects into a scope. Raises RefusedError if no host
    of files can be trusted: see `fetching.py`.
    """
    started = time.monotonic()
    with claiming(crawler, workload) as worker, closing(ReadKeeping(crawler)) as keeping:
        reading = _WorkloadReading(crawler, worker, workload, shards, only_first, keeping)
        while reading.find_groups():
            choose_file_origin(crawler)
            drain(crawler, reading, only_due=only_due)
            if only_due:
                break
    counts = reading.counts
    return ReadCounts(
        data=counts[ReadOutcome.DATA],
        errors=counts[ReadOutcome.ERROR],
        unsupported=counts[ReadOutcome.UNSUPPORTED],
        vanished=counts[ReadOutcome.VANISHED],
        exhausted=counts[ReadOutcome.EXHAUSTED],
        lost=reading.lost,
        bytes_fetched=reading.bytes_fetched,
        requests=reading.requests,
        seconds=time.monotonic() - started,
        failures=dict(reading.failures),
    )


@dataclass(slots=True)
class _Group:
    """Some shards with pending reads. No read can be claimed before `ready_at` (unix seconds)."""

    shards: Sequence[int]
    ready_at: float = 0.0


class _WorkloadReading:
    """The reads of a workload.

    They are claimed group by group of shards, since a full crawl may have millions pending.
    """

    def __init__(
        self,
        crawler: Crawler,
        worker: str,
        workload: str | None,
        shards: Sequence[int] | None,
        only_first: bool,
        keeping: ReadKeeping,
    ) -> None:
        self._crawler = crawler
        self._keeping = keeping
        self._catalog = crawler.catalog
        self._worker = worker
        self._workload = workload
        self._shards = shards
        self._only_first = only_first
        self._groups: list[_Group] = []
        self._stored_at = time.monotonic()
        self._pending = 0
        self._reason = ""
        self._counting = Pace()
        self.counts = dict.fromkeys(ReadOutcome, 0)
        self.failures: Counter[str] = Counter()
        self.lost = self.bytes_fetched = self.requests = 0

    def find_groups(self) -> bool:
        """Find the shards with pending reads, including new ones. Return whether there are any."""
        with self._catalog.read() as connection:
            pending = pending_by_shard(connection, self._workload, self._shards, only_first=self._only_first)
        self._groups = [_Group(shards) for shards in in_groups(pending, pending, _GROUP_READS)]
        self._pending = sum(pending.values())
        self.report()
        return bool(pending)

    def claim(self, limit: int) -> list[list[PendingRead]]:
        claimed: list[PendingRead] = []
        now = self._catalog.clock()
        for group in list(self._groups):
            if group.ready_at > now:
                continue
            free = self._claim_in(group, limit - len(claimed), now)
            claimed += free
            if len(claimed) == limit:
                break
            if not free:
                self._look_again(group)
        self._keeping.reserve(claimed)
        return in_bundles(self._crawler, claimed)

    def do(self, bundle: Iterable[PendingRead]) -> list[FinishedRead]:
        return fetch_and_read(self._crawler, bundle, self._keeping)

    def is_enough(self, done: Sequence[tuple[PendingRead, FinishedRead]]) -> bool:
        return (
            time.monotonic() >= self._stored_at + _COMMIT_EVERY_S
            or len(done) >= _COMMIT_READS
            or sum(len(finished.extract or b"") for _, finished in done) >= _COMMIT_BYTES
            or self._keeping.is_full
        )

    def store(self, done: Sequence[tuple[PendingRead, FinishedRead]]) -> None:
        """Store the extracts as one pack, and then the outcomes of the reads in one transaction."""
        ordered = sorted(done, key=lambda pair: pair[0].distribution_id)
        pack = _store_extracts(self._crawler.storage, ordered)
        finished = [finished for _, finished in ordered]
        self._keeping.finish([read.distribution_id for read in finished])
        stored = self._catalog.transact(
            lambda connection: finish_reads(connection, finished, self._worker, self._catalog.clock(), pack)
        )
        self._keeping.store_unreserved()
        self._stored_at = time.monotonic()
        self.lost += len(finished) - len(stored)
        for read in stored:
            self.counts[read.outcome] += 1
            if read.failure is not None:
                self.failures[read.failure] += 1
            self._pending -= read.outcome != ReadOutcome.PENDING
            self._reason = (read.error_text or "") if read.outcome == ReadOutcome.PENDING else self._reason
        for read in finished:
            self.bytes_fetched += read.bytes_fetched
            self.requests += read.requests
        self.report()

    def report(self, wait_s: float = 0.0) -> None:
        if self._counting.is_due():  # other processes work on the same reads
            with self._counting.timed(), self._catalog.read() as connection:
                self._pending = count_pending_reads(connection, self._workload, self._shards)
        done = sum(count for outcome, count in self.counts.items() if outcome != ReadOutcome.PENDING)
        failed = self.counts[ReadOutcome.ERROR] + self.counts[ReadOutcome.EXHAUSTED]
        reason = self._reason if wait_s else ""
        self._crawler.report(Progress("reads", done, done + max(self._pending, 0), failed, wait_s, reason))

    def ready_at(self) -> float | None:
        """Check each group again, and drop groups without pending reads. Return when the next read can be claimed."""
        for group in list(self._groups):
            self._look_again(group)
        return min((group.ready_at for group in self._groups), default=None)

    def _claim_in(self, group: _Group, limit: int, now: float) -> list[PendingRead]:
        return self._catalog.transact(
            lambda connection: claim_reads(
                connection,
                self._workload,
                group.shards,
                worker=self._worker,
                now=now,
                until=now + self._crawler.claim_lease_s,
                limit=limit,
                only_first=self._only_first,
            )
        )

    def _look_again(self, group: _Group) -> None:
        with self._catalog.read() as connection:
            ready_at = reads_ready_at(connection, self._workload, group.shards, only_first=self._only_first)
        if ready_at is None:
            self._groups.remove(group)
        else:
            group.ready_at = ready_at


def in_groups(shards: Iterable[int], sizes: Mapping[int, int], most: int) -> Iterator[list[int]]:
    """Divide `shards` into groups of about `most` items. `sizes` has the items of each shard; a missing shard has 0."""
    group: list[int] = []
    held = 0
    for shard in shards:
        group.append(shard)
        held += sizes.get(shard, 0)
        if held >= most:
            yield group
            group, held = [], 0
    if group:
        yield group


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
