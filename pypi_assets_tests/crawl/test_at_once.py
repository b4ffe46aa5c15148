"""Concurrent history, visits, reads, audits, seals and pruning on one server never deadlock.

`STRESS_SECONDS=60` runs it for a minute.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import Engine, delete, event, select

from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.derived.visits import recompute_stored
from pypi_assets.catalog.ledger.range_ledger import RangeState, ledger
from pypi_assets.catalog.pruning import old_attempts, old_visits, sweep, unused_details, unused_lists
from pypi_assets.catalog.publications.dump_registry import open_full_dump, open_range_dump
from pypi_assets.catalog.reports.catalog_status import count_differences
from pypi_assets.catalog.tables import checkpoints, projects
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental, crawl_range
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.listers import AUTO
from pypi_assets.crawl.retry_failures import retry
from pypi_assets_tests.crawl.followers import Follower, SilentIndex
from pypi_assets_tests.crawl.test_exactness import content

SECONDS = float(os.environ.get("STRESS_SECONDS", "0"))
PROJECTS = [f"project{number}" for number in range(12)]


@contextmanager
def counted_deadlocks() -> Iterator[list[str]]:
    """Yield the SQLSTATEs of all errors for which the server rolls back a transaction."""
    found: list[str] = []

    def note(context: Any) -> None:
        state = getattr(context.original_exception, "sqlstate", None)
        if state in {"40001", "40P01"}:
            found.append(state)

    event.listen(Engine, "handle_error", note)
    try:
        yield found
    finally:
        event.remove(Engine, "handle_error", note)


def change(index: SilentIndex, number: int, draw: random.Random) -> None:
    for name in draw.sample(PROJECTS, 6):
        kind = draw.choice(["add", "add", "add", "yank", "unyank", "remove-release", "remove-project"])
        version = f"1.{draw.randrange(number + 1)}"
        if kind == "add":
            index.do("add", name, f"1.{number}", f"{name}-1.{number}-py3-none-any.whl")
        else:
            index.do(kind, name, None if kind == "remove-project" else version)


def jobs(follower: Follower) -> list[Callable[[], object]]:
    catalog = follower.catalog

    def seal() -> None:
        with catalog.read() as connection:
            complete = [entry for entry in ledger(connection) if entry.state == RangeState.COMPLETE]
        for entry in complete[1:]:
            open_range_dump(catalog, entry.serials)
        open_full_dump(catalog, 1, since=catalog.clock() + 1)

    def visit_again() -> None:
        with catalog.read() as connection:
            entries = ledger(connection)[1:]
        for entry in entries[-3:]:
            crawl_range(follower.crawler, entry.serials)

    def prune() -> None:
        for sweeping in (old_visits(follower.now), old_attempts(follower.now), unused_lists(), unused_details()):
            sweep(catalog, sweeping)

    return [
        lambda: crawl_full(follower.crawler, with_history=True),
        lambda: crawl_incremental(follower.crawler),
        visit_again,
        lambda: audit_index(follower.crawler, 50.0),
        seal,
        prune,
        lambda: retry(follower.crawler),
    ]


def permissive(job: Callable[[], object]) -> None:
    """Run a job and ignore a CatalogError: the state of other jobs may reject it."""
    with suppress(CatalogError):
        job()


@pytest.mark.nightly
def test_all_writers_run_concurrently(postgres_database_url: str):
    catalog = open_catalog(postgres_database_url)
    index, draw = SilentIndex(), random.Random(5)
    follower = Follower(index, catalog, AUTO)
    for number in range(3):
        change(index, number, draw)
    crawl_full(follower.crawler)
    until, number = time.monotonic() + SECONDS, 3
    with counted_deadlocks() as deadlocks, ThreadPoolExecutor(7) as pool:
        while number < 6 or time.monotonic() < until:
            change(index, number, draw)
            for done in [pool.submit(permissive, job) for job in jobs(follower)]:
                done.result(timeout=300)
            number += 1
    crawl_full(follower.crawler, with_history=True)
    crawl_incremental(follower.crawler)
    follower.require_exact()
    assert follower.live() == index.shown[index.serial]
    with catalog.read() as connection:
        assert count_differences(connection) == {}
    assert deadlocks == []
    require_equal_from_scratch(catalog)
    catalog.close()


def require_equal_from_scratch(catalog: Catalog) -> None:
    """Check that rows computed step by step equal rows recomputed from everything that is stored."""
    before = content(catalog)
    with catalog.read() as connection:
        ids = connection.scalars(select(projects.c.id).order_by(projects.c.id)).all()
    with catalog.write() as connection:
        connection.execute(delete(checkpoints))
    catalog.transact(lambda connection: recompute_stored(connection, ids))
    assert content(catalog) == before
