"""The queue of reads."""

from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import (
    distributions,
    read_attempts,
)
from pypi_assets.catalog.work.read_queue import ABANDONED, claim_reads, queue_reads
from pypi_assets_tests.catalog.claimed_queues import Reads


def test_lower_nice_values_come_first(catalog: Catalog):
    queue = Reads(catalog, 6)
    with catalog.write() as connection:
        project_id = connection.scalar(select(distributions.c.project_id).where(distributions.c.id == queue.items[0]))
        queue_reads(connection, [(item, project_id) for item in queue.items[4:]], nice=-1)
        queue_reads(connection, [(queue.items[0], project_id)], nice=1)
    assert queue.claim("one", 1_000.0, 6) == [*queue.items[4:], *queue.items[1:4], queue.items[0]]


def test_bytes_that_change_while_they_are_read_are_read_again(catalog: Catalog):
    queue = Reads(catalog, 2)
    assert queue.claim("one", 1_000.0, 2) == queue.items
    with catalog.write() as connection:
        project_id = connection.scalar(select(distributions.c.project_id).where(distributions.c.id == queue.items[0]))
        queue_reads(connection, [(queue.items[0], project_id)])
    assert queue.finish("one", queue.items, 1_001.0, None) == {queue.items[1]}
    assert queue.claim("two", 1_001.0, 2) == [queue.items[0]]


def test_an_attempt_whose_worker_died_counts_and_is_kept(catalog: Catalog):
    queue = Reads(catalog, 1)
    for at, worker in enumerate(("one", "two", "three"), 1):
        assert queue.claim(worker, 1_000.0 * at, 1) == queue.items
    with catalog.write() as connection:
        [read] = claim_reads(connection, None, None, worker="four", now=9_000.0, until=9_010.0, limit=9)
        kept = connection.execute(
            select(read_attempts.c.attempt, read_attempts.c.worker, read_attempts.c.outcome).order_by(
                read_attempts.c.id
            )
        ).all()
        assert connection.scalar(select(func.count()).select_from(read_attempts)) == 3
    assert (read.attempts, read.first_failed_at) == (3, 2_000.0)
    assert kept == [(1, "one", ABANDONED), (2, "two", ABANDONED), (3, "three", ABANDONED)]
