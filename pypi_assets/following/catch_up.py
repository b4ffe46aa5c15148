"""Do all pending work once, from the index to the LevelDBs. The first time, begin with a full crawl.

The resident follower, which repeats this for years, is in `follower.py`. Each stage has its own package.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_columns import DEFAULT_SHARDS, FULL_DUMP_SHARDS
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.scope_crawl import keep_in_line, run_ready_scopes
from pypi_assets.dumps import dump_writer
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.following.follower import Builds
from pypi_assets.following.lanes import Log
from pypi_assets.journal import publishing
from pypi_assets.leveldbs.versions.shared_reading import SharedReading
from pypi_assets.progress import Progress
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.upkeep.due import due_crawl, due_datasets, due_full_dump, due_journal
from pypi_assets.upkeep.live_totals import live_totals

_FILES_A_SHARD = 20_000


def follow_once(
    crawler: Crawler,
    builds: Builds,
    log: Log,
    declared: Sequence[ScopePlan] = (),
    *,
    everything: bool = False,
    dump_shards: int = DEFAULT_SHARDS,
    dump_concurrency: int = 1,
) -> None:
    """Run each due step once: crawl, journal, dumps, LevelDBs. `log` receives a mapping for each step with a result.

    `everything` compares all projects of an index without serials, as in `crawl_incremental`. Raises the first error;
    nothing is retried. It can be stopped at any time, and run again.
    """
    once = _Once(crawler, builds, log)
    keep_in_line(crawler, declared)
    once.crawl(everything=everything)
    once.publish_journal()
    once.dump(dump_shards, dump_concurrency)
    once.build()


def is_begun(catalog: Catalog) -> bool:
    """Check whether a first crawl is complete and dumped, so that a resident follower can go on."""
    return due_crawl(catalog).is_followable and bool(cover(catalog).dumps)


class _Once:
    def __init__(self, crawler: Crawler, builds: Builds, log: Log) -> None:
        self._crawler, self._builds, self._log = crawler, builds, log
        self._catalog, self._storage = crawler.catalog, crawler.storage

    def crawl(self, *, everything: bool) -> None:
        due = due_crawl(self._catalog)
        if due.is_due:
            with self._step("full crawl") as numbers:
                result = crawl_full(self._crawler)
                numbers["serial"] = result.crawl.serial
                numbers["projects"] = result.listing.projects
                numbers |= {"read": result.reads.data, "failed": sum(result.reads.failures.values())}
                if result.listing.missing:
                    numbers["missing_projects"] = result.listing.missing
            everything = False  # the full crawl has just visited every project
        elif not due.is_followable:
            for scope in run_ready_scopes(self._crawler):
                self._log({"step": "scope", "scope": scope.scope.name, "complete": scope.is_complete})
        for ranged in crawl_incremental(self._crawler, everything=everything):
            reads = ranged.reads
            self._log(
                {
                    "step": "crawl",
                    "range": ranged.serials.key,
                    "events": ranged.events.events,
                    "projects": ranged.visits.total,
                    "read": reads.data,
                    "failed": sum(reads.failures.values()),
                }
            )

    def publish_journal(self) -> None:
        if due_journal(self._catalog).missing:
            for written in publishing.write_missing(self._catalog, self._storage, self._show("journal")):
                self._log({"step": "journal", "range": written.serials.key, "records": dict(written.records)})

    def dump(self, most_shards: int, concurrency: int) -> None:
        if due_full_dump(self._catalog).is_due:
            shards = shards_for(live_totals(self._catalog).live, most_shards)
            with self._step("full dump") as numbers:
                written = self._show("shards", shards)
                manifest = full_dump(self._catalog, self._storage, shards, written, concurrency=concurrency)
                numbers |= {"shards": shards, "rows": manifest.rows, "bytes": manifest.size}
        for manifest in dump_writer.write_missing_ranges(self._catalog, self._storage):
            self._log({"step": "dump", "range": manifest.serials.key, "rows": manifest.rows, "bytes": manifest.size})

    def build(self) -> None:
        version = None
        due = due_datasets(self._catalog, self._storage, cover(self._catalog))
        with SharedReading(name for name, of_dataset in due.items() if of_dataset.is_due) as shared:
            for name in shared.names:
                with self._step("leveldb", dataset=name) as numbers:
                    result = self._builds.build(self._crawler, name, version, shared, self._show(name))
                    version = result.version if result.published else version
                    numbers |= {"version": result.version, "serial": result.serial, "records": result.written}

    def _show(self, stage: str, total: int = 0) -> Callable[[int], None]:
        return partial(self._report, stage, total)

    def _report(self, stage: str, total: int, done: int) -> None:
        self._crawler.report(Progress(stage, done, total))

    @contextmanager
    def _step(self, step: str, **names: str) -> Iterator[dict[str, Any]]:
        """Log the step with its duration in seconds, and with the numbers that the block adds."""
        started, numbers = time.monotonic(), dict[str, Any]()
        yield numbers
        self._log({"step": step, **names, "seconds": round(time.monotonic() - started, 3), **numbers})


def shards_for(files: int, most: int) -> int:
    """Return the number of shards for a full dump of `files` distributions: the least with about 20,000 rows a shard,
    but `most` at most.
    """
    return min(next((shards for shards in FULL_DUMP_SHARDS if files <= shards * _FILES_A_SHARD), most), most)
