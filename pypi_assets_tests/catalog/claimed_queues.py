"""The visit queue and the read queue behind one interface, for tests of claims."""

import itertools
from typing import Protocol

from sqlalchemy import Connection, insert, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, ReadOutcome
from pypi_assets.catalog.tables import (
    catalog_state,
    distribution_data,
    distributions,
    projects,
    read_attempts,
    releases,
)
from pypi_assets.catalog.work.read_queue import claim_reads, count_pending_reads, finish_reads, queue_reads
from pypi_assets.catalog.work.visit_queue import (
    TaskState,
    VisitTask,
    claim_visits,
    finish_visits,
    postpone_visits,
    queue_visits,
    still_claimed,
    workload_progress,
)

LEASE_S = 10.0


SHARD = 7


_numbers = itertools.count()


class Queue(Protocol):
    """A separate queue whose items are identified by number."""

    items: list[int]

    def claim(self, worker: str, now: float, limit: int) -> list[int]: ...

    def finish(self, worker: str, items: list[int], now: float, later: float | None) -> set[int]:
        """Finish `items`, or postpone them until `later`. Return the items that `worker` still held."""

    def left(self) -> int: ...


def enter_project(connection: Connection) -> int:
    name = f"project-{next(_numbers)}"
    row = insert(projects).values(normalized=name, name=name, bucket=0, shard=SHARD, known_since=0)
    return connection.execute(row.returning(projects.c.id)).scalar_one()


def enter_state(connection: Connection) -> None:
    if connection.scalar(select(catalog_state.c.id)) is None:
        zero = dict.fromkeys(("events_since", "events_through", "exact_from"), 0)
        connection.execute(insert(catalog_state).values(id=1, index_url="", next_dump_sequence=1, **zero))


class Visits:
    def __init__(self, catalog: Catalog, count: int) -> None:
        self.catalog = catalog
        self.workload = f"range:{next(_numbers)}-1"
        with catalog.write() as connection:
            enter_state(connection)
            self.items = [enter_project(connection) for _ in range(count)]
            queue_visits(connection, self.workload, [(id_, SHARD, 0) for id_ in self.items])
        self.tasks: dict[tuple[str, int], VisitTask] = {}

    def claim(self, worker: str, now: float, limit: int) -> list[int]:
        with self.catalog.write() as connection:
            claimed = claim_visits(
                connection, self.workload, None, worker=worker, now=now, until=now + LEASE_S, limit=limit
            )
            begin_visits(connection, [task.project.id for task in claimed], "incremental", self.workload, now)
        self.tasks |= {(worker, task.project.id): task for task in claimed}
        return [task.project.id for task in claimed]

    def finish(self, worker: str, items: list[int], now: float, later: float | None) -> set[int]:
        tasks = [self.tasks[worker, item] for item in items]
        with self.catalog.write() as connection:
            held = still_claimed(connection, tasks)
            mine = [task for task in tasks if task.project.id in held]
            if later is None:
                finish_visits(connection, [(task, TaskState.DONE, None) for task in mine])
            else:
                postpone_visits(connection, now, [(task, later, "not yet", False) for task in mine])
        return held

    def left(self) -> int:
        with self.catalog.read() as connection:
            return workload_progress(connection, self.workload).todo


class Reads:
    def __init__(self, catalog: Catalog, count: int) -> None:
        self.catalog = catalog
        self.workload = f"range:{next(_numbers)}-1"
        with catalog.write() as connection:
            enter_state(connection)
            project_id = enter_project(connection)
            release = insert(releases).values(project_id=project_id, version="1.0").returning(releases.c.id)
            release_id = connection.execute(release).scalar_one()
            file = {"project_id": project_id, "release_id": release_id, "kind": "wheel", "url": "https://example.org/"}
            entered = insert(distributions).returning(distributions.c.id)
            rows = [file | {"filename": f"file{number}"} for number in range(count)]
            self.items = sorted(connection.scalars(entered, rows))
            outcomes = [{"distribution_id": id_, "outcome": ReadOutcome.PENDING} for id_ in self.items]
            connection.execute(insert(distribution_data), outcomes)
            queue_visits(connection, self.workload, [(project_id, SHARD, 0)])
            queue_reads(connection, [(id_, project_id) for id_ in self.items])

    def claim(self, worker: str, now: float, limit: int) -> list[int]:
        with self.catalog.write() as connection:
            claimed = claim_reads(
                connection, self.workload, [SHARD], worker=worker, now=now, until=now + LEASE_S, limit=limit
            )
        return [read.distribution_id for read in claimed]

    def finish(self, worker: str, items: list[int], now: float, later: float | None) -> set[int]:
        outcome = ReadOutcome.UNSUPPORTED if later is None else ReadOutcome.PENDING
        finished = [FinishedRead(item, outcome, due_at=later or 0.0, started_at=now) for item in items]
        with self.catalog.write() as connection:
            return {read.distribution_id for read in finish_reads(connection, finished, worker, now)}

    def left(self) -> int:
        with self.catalog.read() as connection:
            return count_pending_reads(connection, self.workload)

    def attempts(self) -> list[str]:
        with self.catalog.read() as connection:
            query = select(read_attempts.c.outcome).where(read_attempts.c.distribution_id.in_(self.items))
            return sorted(connection.scalars(query))
