"""Claims: nothing is done by two workers at once, nothing is done twice, and what a dead worker had is taken over."""

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, func, insert, select

from pypi_assets.catalog.coordination.claims import (
    claim_scope,
    claiming_workers,
    expire_claims,
    release_claims,
    renew_claims,
    scopes_at_work,
)
from pypi_assets.catalog.coordination.worker_names import new_worker
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, Outcome
from pypi_assets.catalog.tables import (
    catalog_state,
    distribution_data,
    distributions,
    projects,
    read_attempts,
    releases,
)
from pypi_assets.catalog.work.read_queue import ABANDONED, claim_reads, count_pending_reads, finish_reads, queue_reads
from pypi_assets.catalog.work.visit_queue import (
    TaskState,
    VisitTask,
    claim_visits,
    finish_visits,
    postpone_visits,
    queue_visits,
    scope_progress,
    still_claimed,
)

LEASE_S = 10.0
WORKERS = ("one", "two", "three")
SHARD = 7

_numbers = itertools.count()


class Queue(Protocol):
    """A queue of its own with some items, known by number."""

    items: list[int]

    def claim(self, worker: str, now: float, limit: int) -> list[int]: ...

    def finish(self, worker: str, items: list[int], now: float, later: float | None) -> set[int]:
        """What could be finished of `items`, or be put off until `later`."""

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
        self.scope = f"range:{next(_numbers)}-1"
        with catalog.write() as connection:
            enter_state(connection)
            self.items = [enter_project(connection) for _ in range(count)]
            queue_visits(connection, self.scope, [(id_, SHARD, 0) for id_ in self.items])
        self.tasks: dict[tuple[str, int], VisitTask] = {}

    def claim(self, worker: str, now: float, limit: int) -> list[int]:
        with self.catalog.write() as connection:
            claimed = claim_visits(
                connection, self.scope, None, worker=worker, now=now, until=now + LEASE_S, limit=limit
            )
            begin_visits(connection, [task.project.id for task in claimed], "incremental", self.scope, now)
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
            return scope_progress(connection, self.scope).todo


class Reads:
    def __init__(self, catalog: Catalog, count: int) -> None:
        self.catalog = catalog
        self.scope = f"range:{next(_numbers)}-1"
        with catalog.write() as connection:
            enter_state(connection)
            project_id = enter_project(connection)
            release = insert(releases).values(project_id=project_id, version="1.0").returning(releases.c.id)
            release_id = connection.execute(release).scalar_one()
            file = {"project_id": project_id, "release_id": release_id, "kind": "wheel", "url": "https://example.org/"}
            entered = insert(distributions).returning(distributions.c.id)
            rows = [file | {"filename": f"file{number}"} for number in range(count)]
            self.items = sorted(connection.scalars(entered, rows))
            outcomes = [{"distribution_id": id_, "outcome": Outcome.PENDING} for id_ in self.items]
            connection.execute(insert(distribution_data), outcomes)
            queue_visits(connection, self.scope, [(project_id, SHARD, 0)])
            queue_reads(connection, [(id_, project_id) for id_ in self.items])

    def claim(self, worker: str, now: float, limit: int) -> list[int]:
        with self.catalog.write() as connection:
            claimed = claim_reads(
                connection, self.scope, [SHARD], worker=worker, now=now, until=now + LEASE_S, limit=limit
            )
        return [read.distribution_id for read in claimed]

    def finish(self, worker: str, items: list[int], now: float, later: float | None) -> set[int]:
        outcome = Outcome.UNSUPPORTED if later is None else Outcome.PENDING
        finished = [FinishedRead(item, outcome, due_at=later or 0.0, started_at=now) for item in items]
        with self.catalog.write() as connection:
            return {read.distribution_id for read in finish_reads(connection, finished, worker, now)}

    def left(self) -> int:
        with self.catalog.read() as connection:
            return count_pending_reads(connection, self.scope)

    def attempts(self) -> list[str]:
        with self.catalog.read() as connection:
            query = select(read_attempts.c.outcome).where(read_attempts.c.distribution_id.in_(self.items))
            return sorted(connection.scalars(query))


@dataclass
class Model:
    """Who holds what until when, and what each worker believes to hold."""

    queue: Queue
    now: float = 1_000.0
    claims: dict[int, tuple[str, float]] = field(default_factory=dict)
    due_at: dict[int, float] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    believed: dict[str, list[int]] = field(default_factory=lambda: {worker: [] for worker in WORKERS})
    finished = postponed = abandoned = 0

    def free(self) -> list[int]:
        """What can be claimed, in the order in which it is."""
        items = [
            item
            for item in self.queue.items
            if item not in self.done
            and self.due_at.get(item, 0.0) <= self.now
            and self.claims.get(item, ("", 0.0))[1] <= self.now
        ]
        return sorted(items, key=lambda item: (self.due_at.get(item, 0.0), item))

    def claim(self, worker: str, count: int) -> None:
        expected = self.free()[:count]
        assert self.queue.claim(worker, self.now, count) == expected
        self.abandoned += sum(item in self.claims for item in expected)
        self.claims |= dict.fromkeys(expected, (worker, self.now + LEASE_S))
        self.believed[worker] += [item for item in expected if item not in self.believed[worker]]

    def finish(self, worker: str, count: int, later: float | None = None) -> None:
        items, self.believed[worker] = self.believed[worker][:count], self.believed[worker][count:]
        if not items:
            return
        held = {item for item in items if self.claims.get(item, ("", 0))[0] == worker}
        assert self.queue.finish(worker, items, self.now, later) == held
        for item in held:
            del self.claims[item]
        if later is None:
            assert not held & self.done
            self.done |= held
            self.finished += len(held)
        else:
            self.due_at |= dict.fromkeys(held, later)
            self.postponed += len(held)

    def renew(self, worker: str) -> None:
        until = self.now + LEASE_S
        with self.queue.catalog.write() as connection:
            renew_claims(connection, worker, until)
        self.claims |= {item: (worker, until) for item, (holder, _) in self.claims.items() if holder == worker}

    def release(self, worker: str) -> None:
        with self.queue.catalog.write() as connection:
            release_claims(connection, worker)
        self.claims = {item: claim for item, claim in self.claims.items() if claim[0] != worker}


steps = st.lists(
    st.tuples(
        st.sampled_from(["claim", "claim", "claim", "finish", "finish", "postpone", "renew", "release", "wait"]),
        st.sampled_from(WORKERS),
        st.integers(1, 5),
    ),
    max_size=40,
)


@pytest.mark.parametrize("kind", [Visits, Reads])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=steps)
def test_interleaved_workers_do_everything_once(catalog: Catalog, kind: type[Visits | Reads], steps):
    model = Model(kind(catalog, 8))
    for step, worker, count in steps:
        match step:
            case "claim":
                model.claim(worker, count)
            case "finish":
                model.finish(worker, count)
            case "postpone":
                model.finish(worker, count, model.now + 3.0 * count)
            case "renew":
                model.renew(worker)
            case "release":
                model.release(worker)
            case "wait":
                model.now += 2.5 * count
    model.now += 1_000
    model.claim("one", 100)
    assert model.queue.left() == 8 - len(model.done)
    model.finish("one", 100)
    assert model.done == set(model.queue.items)
    assert model.queue.left() == 0
    if isinstance(model.queue, Reads):
        attempts = model.queue.attempts()
        counts = [attempts.count(outcome) for outcome in (Outcome.UNSUPPORTED, Outcome.PENDING, ABANDONED)]
        assert counts == [8, model.postponed, model.abandoned]


@pytest.mark.parametrize("kind", [Visits, Reads])
def test_workers_at_once_share_what_there_is(catalog: Catalog, kind: type[Visits | Reads]):
    queue = kind(catalog, 200)

    def work(worker: str) -> list[int]:
        found: list[int] = []
        while got := queue.claim(worker, 1_000.0, 7):
            found += got
            assert queue.finish(worker, got, 1_000.0, None) == set(got)
        return found

    with ThreadPoolExecutor(4) as pool:
        shares = list(pool.map(work, "abcd"))
    assert sorted(item for share in shares for item in share) == queue.items
    assert queue.left() == 0


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
    for worker in ("one", "two", "three"):
        assert queue.claim(worker, 1_000.0 * (1 + WORKERS.index(worker)), 1) == queue.items
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


def test_a_scope_is_at_work_while_any_of_its_workers_is_known_to_live(catalog: Catalog):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    machine, _, _ = new_worker().rsplit(":", 2)
    here, dead, elsewhere = new_worker(), f"{machine}:{process.pid}:0", "another/1:1:0"
    with catalog.write() as connection:
        for worker, scope in ((here, "one"), (dead, "two"), (elsewhere, "one"), (elsewhere + "1", "three")):
            claim_scope(connection, scope, worker, 100.0, 110.0)
        assert scopes_at_work(connection, 109.0) == {"one", "three"}
        release_claims(connection, here)
        assert scopes_at_work(connection, 109.0) == {"one", "three"}
        expire_claims(connection, elsewhere)
        assert scopes_at_work(connection, 109.0) == {"three"}
        claim_scope(connection, "one", elsewhere, 105.0, 115.0)
        assert scopes_at_work(connection, 110.0) == {"one"}
        assert claiming_workers(connection) == {dead, elsewhere, elsewhere + "1"}
        claim_scope(connection, "one", elsewhere, 111.0, 121.0)
        assert claiming_workers(connection) == {elsewhere}
