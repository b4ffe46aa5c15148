"""The resident follower: lanes that work on the same catalog, ledger and storage as all other processes.

- `poll` requests the changes of the index, and allocates their ranges in the ledger;
- `range 1` to `range 3` each crawl a range, write it to the journal and dump it;
- `leveldbs` builds the next versions when there are dumps that the newest versions lack;
- `requested` makes the visits that people requested;
- `late`, `scopes`, `journal` and `compaction` do the remaining work from time to time.

A restart needs nothing from memory: pending work is computed from the ledger and the storage. So the process can be
killed at any time, and any number of processes can do the same work at once.
"""

import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pypi_assets.catalog.coordination.claims import FOLLOWER
from pypi_assets.catalog.ledger.range_ledger import RangeState, complete_serial, require_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import first_event_time
from pypi_assets.catalog.publications.journal_segments import last_chained, latest_generation
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.draining import claiming
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_range
from pypi_assets.crawl.requested import run_requested
from pypi_assets.crawl.scope_crawl import keep_in_line, run_ready_scopes
from pypi_assets.crawl.simple_lister import LIST_PAUSE_S
from pypi_assets.dumps import dump_writer
from pypi_assets.dumps.compaction import compact
from pypi_assets.dumps.cover import cover
from pypi_assets.following.lanes import Lanes, Log
from pypi_assets.journal import publishing
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import newest_serials
from pypi_assets.leveldbs.versions.publish import BuildResult, build_version
from pypi_assets.leveldbs.versions.shared_reading import SharedReading
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.upkeep.due import due_crawl, due_datasets, due_ranges, due_scopes

RANGES_AT_ONCE = 3
"""A slow file, or a page that fails for hours, blocks one range. The other lanes go on with later ranges."""
COMPACT_EVERY_S = 600.0
_NAP_S = 0.5
GRACE_S = 20.0
"""How long running work may take to stop. After that it is dropped, as if the process had been killed."""


@dataclass(frozen=True, slots=True)
class FollowerPace:
    """The follower's intervals, in seconds.

    `poll_s` is the interval between two polls of the index, and `leveldb_s` between two LevelDB versions of a dataset.
    `look_s` is the interval between two searches for work that others have left, such as a killed process or a command.
    """

    poll_s: float = 2.0
    leveldb_s: float = 5.0
    look_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Builds:
    """The settings for building LevelDBs; the fields are parameters of `build_version`."""

    work_dir: Path
    write_buffer_bytes: int
    memory_bytes: int

    def build(
        self,
        crawler: Crawler,
        name: str,
        version: int | None,
        shared: SharedReading,
        progress: Callable[[int], None],
    ) -> BuildResult:
        """Build a version of the dataset `name` with `build_version`, from the catalog and storage of `crawler`."""
        return build_version(
            name,
            storage=crawler.storage,
            catalog=crawler.catalog,
            version=version,
            write_buffer_bytes=self.write_buffer_bytes,
            memory_bytes=self.memory_bytes,
            work_dir=self.work_dir,
            progress=progress,
            shared=shared,
        )


def follow(
    crawler: Crawler,
    builds: Builds,
    pace: FollowerPace,
    log: Log,
    stopping: threading.Event,
    declared: Sequence[ScopePlan] = (),
) -> bool:
    """Follow the index until `stopping` is set. Return whether all running work has ended.

    Transient errors are logged, and the work is retried. Raises any other error, which needs a person.
    """
    follower = _Follower(crawler, builds, pace, Lanes(log, stopping))
    with claiming(crawler, FOLLOWER):  # so that Dagster's sensors leave new changes to the follower
        follower.start(declared)
        is_clean = follower.lanes.wait(GRACE_S)
    log({"step": "stopped", "clean": is_clean})
    return is_clean


class _Follower:
    def __init__(self, crawler: Crawler, builds: Builds, pace: FollowerPace, lanes: Lanes) -> None:
        self.lanes, self._builds, self._pace = lanes, builds, pace
        self._catalog, self._storage = crawler.catalog, crawler.storage
        self._crawler = replace(
            crawler,
            report=lanes.pass_or_stop,
            sleep=lanes.sleep,
            notify=lambda text: lanes.log({"step": "notice", "text": text}),
        )
        self._ranges: queue.Queue[SerialRange] = queue.Queue()
        self._taken: set[SerialRange] = set()
        """The ranges in the queue and in progress. Only the lane `poll` adds to it."""
        self._looked_at: float | None = None
        self._waits_for = ""
        self._journal = threading.Lock()
        self._dumped = threading.Event()
        self._built_at = -math.inf

    def start(self, declared: Sequence[ScopePlan]) -> None:
        lanes = self.lanes
        lanes.patiently("scopes", partial(keep_in_line, self._crawler, declared))
        lanes.log({"step": "started", "poll_s": self._pace.poll_s, "leveldb_s": self._pace.leveldb_s})
        wait, look_s = lanes.stopping.wait, self._pace.look_s
        lanes.start("poll", self._poll, partial(wait, self._pace.poll_s))
        for number in range(1, RANGES_AT_ONCE + 1):
            lanes.start(f"range {number}", self._take_range, lambda: None)
        lanes.start("leveldbs", partial(self._once_followable, self._build), self._until_dumped)
        lanes.start("late", partial(self._once_followable, self._dump_late), partial(wait, look_s))
        lanes.start("scopes", partial(self._once_followable, self._run_scopes), partial(wait, look_s))
        lanes.start("requested", partial(self._once_followable, self._run_requested), partial(wait, self._pace.poll_s))
        lanes.start("journal", partial(self._once_followable, self._catch_up_journal), partial(wait, look_s))
        lanes.start("compaction", partial(self._once_followable, self._compact), partial(wait, COMPACT_EVERY_S))

    def _poll(self) -> None:
        """Allocate and queue new ranges. From time to time, also queue ranges that other processes have left."""
        if reason := due_crawl(self._catalog).unfollowable:
            self._wait_for(reason)
            return
        new = allocate_next_ranges(self._crawler, list_pause_s=LIST_PAUSE_S)
        for serials in new:
            self.lanes.log({"step": "allocated", "range": serials.key})
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at >= self._pace.look_s:
            self._looked_at = now
            new = due_ranges(self._catalog).all
        self._queue(new)

    def _wait_for(self, reason: str) -> None:
        if reason != self._waits_for:
            self._waits_for = reason
            self.lanes.log({"step": "waiting", "for": reason})

    def _queue(self, ranges: Iterable[SerialRange]) -> None:
        for serials in ranges:
            if serials not in self._taken:
                self._taken.add(serials)
                self._ranges.put(serials)

    def _once_followable(self, work: Callable[[], None]) -> None:
        if due_crawl(self._catalog).unfollowable is None:
            work()

    def _take_range(self) -> None:
        try:
            serials = self._ranges.get(timeout=_NAP_S)
        except queue.Empty:
            return
        try:
            self.lanes.patiently(f"range {serials}", partial(self._follow_range, serials))
        finally:
            self._taken.discard(serials)

    def _follow_range(self, serials: SerialRange) -> None:
        """Crawl a range, write it to the journal and dump it. Skip each step that was done before."""
        self._crawl(serials)
        with self._catalog.read() as connection:
            if require_range(connection, serials).state != RangeState.COMPLETE:
                return  # another process is finishing it, or the next poll queues it again
        started = time.monotonic()
        with self._journal:  # so that the chain never waits for a thread of this process
            written = publishing.write_range(self._catalog, self._storage, serials, self.lanes.pass_or_stop)
        self._log("journal", serials, started, records=dict(written.records), bytes=written.size)
        if serials not in due_ranges(self._catalog).undumped:
            return
        started = time.monotonic()
        manifest = dump_writer.write_range(self._catalog, self._storage, serials, progress=self.lanes.pass_or_stop)
        self._log("dump", serials, started, rows=manifest.rows, bytes=manifest.size)
        self._dumped.set()

    def _crawl(self, serials: SerialRange) -> None:
        with self._catalog.read() as connection:
            if require_range(connection, serials).state == RangeState.COMPLETE:
                return
        started = time.monotonic()
        result = crawl_range(self._crawler, serials, again=False)
        reads = result.reads
        self._log(
            "crawl",
            serials,
            started,
            events=result.events.events,
            projects=result.visits.total,
            gave_up=result.visits.exhausted,
            open=list(result.open_projects),
            read=reads.data,
            failed=sum(reads.failures.values()),
        )

    def _log(self, step: str, serials: SerialRange, started: float, **numbers: object) -> None:
        """Log a step of a range, with the age of the range's first event."""
        now = self._catalog.clock()
        with self._catalog.read() as connection:
            happened_at = first_event_time(connection, serials.start)
        age = {} if happened_at is None else {"age_s": round(now - happened_at, 3)}
        seconds = round(time.monotonic() - started, 3)
        self.lanes.log({"step": step, "range": serials.key, "seconds": seconds, **age, **numbers})

    def _dump_late(self) -> None:
        """Dump late changes to dumped serials, such as a read that succeeded at a later attempt."""
        if not due_ranges(self._catalog).are_late_undumped:
            return
        manifest = dump_writer.write_late_changes(self._catalog, self._storage, self.lanes.pass_or_stop)
        if manifest is not None:
            self.lanes.log({"step": "late dump", "directory": manifest.directory, "rows": manifest.rows})
            self._dumped.set()

    def _build(self) -> None:
        """Build a version of each due dataset. All versions that are built together have the same number."""
        version = None
        due = due_datasets(self._catalog, self._storage, cover(self._catalog))
        with SharedReading(name for name, of_dataset in due.items() if of_dataset.is_due) as shared:
            for name in shared.names:
                started = time.monotonic()
                result = self._builds.build(self._crawler, name, version, shared, self.lanes.pass_or_stop)
                if result.published:
                    version, self._built_at = result.version, started
                self.lanes.log(
                    {
                        "step": "leveldb",
                        "dataset": name,
                        "version": result.version,
                        "serial": result.serial,
                        "seconds": round(time.monotonic() - started, 3),
                        "published": result.published,
                        "records": result.written,
                    }
                )

    def _until_dumped(self) -> None:
        """Wait for a dump, and until the last version has the age that the pace requires."""
        until = time.monotonic() + self._pace.look_s
        while not self.lanes.stopping.is_set() and time.monotonic() < until and not self._dumped.wait(_NAP_S):
            pass
        self.lanes.stopping.wait(max(self._built_at + self._pace.leveldb_s - time.monotonic(), 0.0))
        self._dumped.clear()

    def _run_scopes(self) -> None:
        if due_scopes(self._catalog).ready:
            for result in run_ready_scopes(self._crawler):
                self.lanes.log({"step": "scope", "scope": result.scope.name, "complete": result.is_complete})

    def _run_requested(self) -> None:
        if ended := run_requested(self._crawler):
            self.lanes.log({"step": "requested visits", "ended": ended})

    def _catch_up_journal(self) -> None:
        """Write the complete ranges that others have not written, and publish the files that wait for earlier ones in
        the chain.
        """
        with self._catalog.read() as connection:
            complete = complete_serial(connection)
            streams = (JournalStream.OBSERVED, JournalStream.CONTENT, JournalStream.VISITS)
            ends = [last_chained(connection, one, latest_generation(connection, one)) for one in streams]
        if all(end is not None and end.file.serials.end >= complete for end in ends):
            return
        for written in publishing.write_missing(self._catalog, self._storage, self.lanes.pass_or_stop):
            self.lanes.log({"step": "journal", "range": written.serials.key, "records": dict(written.records)})

    def _compact(self) -> None:
        held = newest_serials(self._storage, DATASETS)
        for manifest in compact(self._catalog, self._storage, held=held, progress=self.lanes.pass_or_stop):
            self.lanes.log({"step": "compaction", "directory": manifest.directory, "rows": manifest.rows})
