"""Claims: two workers never hold the same item, no item is done twice, and items of a dead worker are taken over."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.coordination import claims
from pypi_assets.catalog.coordination.claims import (
    claim_workload,
    claiming_workers,
    expire_claims,
    is_dead,
    machine_hash,
    new_worker,
    process_of,
    release_claims,
    renew_claims,
    workloads_at_work,
)
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.tables import visit_queue
from pypi_assets.catalog.work.read_queue import ABANDONED
from pypi_assets_tests.catalog.claimed_queues import LEASE_S, Queue, Reads, Visits
from pypi_assets_tests.examples import examples

NAMED = "from pypi_assets.catalog.coordination.claims import new_worker; print(new_worker(), flush=True); input()"


@pytest.fixture(autouse=True)
def _machine_is_identified_again() -> Iterator[None]:
    machine_hash.cache_clear()
    yield
    machine_hash.cache_clear()


def test_worker_names_are_unique_and_fit_the_column(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claims.platform, "node", lambda: "a-host-name-of-63-characters".ljust(63, "x"))
    monkeypatch.setattr(claims.os, "getpid", lambda: 2**22)  # the highest process id on Linux
    names = [new_worker() for _ in range(1_000)]
    assert len(set(names)) == len(names)
    assert max(len(name) for name in names) <= visit_queue.c.claimed_by.type.length
    assert names[0].startswith("a-host-name-")


def test_worker_is_dead_once_its_local_process_has_ended():
    with subprocess.Popen([sys.executable, "-c", NAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        worker = process.stdout.readline().decode().strip()
        assert not is_dead(worker)
        process.communicate(b"\n")
    assert is_dead(worker)
    assert not is_dead("no name of a worker")


def test_reused_process_id_is_another_process():
    place, _, unique = new_worker().rpartition(":")
    machine = place.rpartition(":")[0]
    assert is_dead(f"{machine}:{os.getpid()}-0123456789abcdef:{unique}")
    assert not is_dead(f"{machine}:{os.getpid()}-:{unique}")


@pytest.mark.parametrize("differing", ["_BOOT_ID", "_MACHINE_ID", "node", "_NAMESPACES"])
def test_worker_on_another_machine_is_not_considered_dead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, differing: str
):
    """Hosts outside containers share a namespace, and their names can have the same prefix."""
    host = "runner-of-the-continuous-integration-1"
    monkeypatch.setattr(claims.platform, "node", lambda: host + "0")
    ended = new_worker().replace(f":{os.getpid()}-", ":4194304-")
    assert is_dead(ended)
    machine_hash.cache_clear()
    (tmp_path / "id").write_text("another\n")
    if differing == "node":
        monkeypatch.setattr(claims.platform, "node", lambda: host + "1")
    else:
        monkeypatch.setattr(claims, differing, () if differing == "_NAMESPACES" else tmp_path / "id")
    assert not is_dead(ended)


def test_worker_name_without_process_start_is_not_considered_dead():
    assert not is_dead(f"{claims.platform.node()}/{machine_hash()}:4194304-:01234567")


def test_no_worker_is_considered_dead_without_boot_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(claims, "_BOOT_ID", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    worker = new_worker()
    assert "/:" in worker
    assert not is_dead(worker.replace(f":{os.getpid()}-", ":4194304-"))


def test_other_systems_provide_boot_id_and_process_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    answers = {"sysctl": "BOOT-1", "ps": "Mon Nov 23 01:45:00 2026"}
    for name, answer in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{answer}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(claims, "_BOOT_ID", tmp_path / "none")
    monkeypatch.setattr(claims, "_text", lambda path: "")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    worker = new_worker()
    assert not is_dead(worker)
    (tmp_path / "ps").write_text("#!/bin/sh\necho 'Tue Nov 24 01:45:00 2026'\n")
    assert is_dead(worker)
    machine_hash.cache_clear()
    (tmp_path / "sysctl").write_text("#!/bin/sh\necho BOOT-2\n")
    assert not is_dead(worker)


def test_workers_of_one_process_share_the_process_part():
    assert process_of(new_worker()) == process_of(new_worker())
    assert process_of("machine/1:17:abc") == "machine/1:17"


WORKERS = ("one", "two", "three")


@dataclass
class Model:
    """A model of the claims: who holds each item until when, and what each worker believes it holds."""

    queue: Queue
    now: float = 1_000.0
    claims: dict[int, tuple[str, float]] = field(default_factory=dict)
    due_at: dict[int, float] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    believed: dict[str, list[int]] = field(default_factory=lambda: {worker: [] for worker in WORKERS})
    finished = postponed = abandoned = 0

    def free(self, worker: str) -> list[int]:
        """Return the items that `worker` can claim, in the order of claiming. It never claims an item a second time."""
        items = [
            item
            for item in self.queue.items
            if item not in self.done
            and self.due_at.get(item, 0.0) <= self.now
            and self.claims.get(item, ("", 0.0))[1] <= self.now
            and self.claims.get(item, ("", 0.0))[0] != worker
        ]
        return sorted(items, key=lambda item: (self.due_at.get(item, 0.0), item))

    def claim(self, worker: str, count: int) -> None:
        expected = self.free(worker)[:count]
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


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [Visits, Reads])
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=steps)
def test_interleaved_workers_do_each_item_once(catalog: Catalog, kind: type[Visits | Reads], steps):
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
        counts = [attempts.count(outcome) for outcome in (ReadOutcome.UNSUPPORTED, ReadOutcome.PENDING, ABANDONED)]
        assert counts == [8, model.postponed, model.abandoned]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [Visits, Reads])
def test_concurrent_workers_share_the_items(catalog: Catalog, kind: type[Visits | Reads]):
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


def test_workload_is_active_while_one_worker_is_alive(catalog: Catalog):
    name = "from pypi_assets.catalog.coordination.claims import new_worker; print(new_worker())"
    ended = subprocess.run([sys.executable, "-c", name], capture_output=True, text=True, check=True)
    here, dead, elsewhere = new_worker(), ended.stdout.strip(), "another/1:1:0"
    with catalog.write() as connection:
        for worker, workload in ((here, "one"), (dead, "two"), (elsewhere, "one"), (elsewhere + "1", "three")):
            claim_workload(connection, workload, worker, 100.0, 110.0)
        assert workloads_at_work(connection, 109.0) == {"one", "three"}
        release_claims(connection, here)
        assert workloads_at_work(connection, 109.0) == {"one", "three"}
        expire_claims(connection, elsewhere)
        assert workloads_at_work(connection, 109.0) == {"three"}
        claim_workload(connection, "one", elsewhere, 105.0, 115.0)
        assert workloads_at_work(connection, 110.0) == {"one"}
        assert claiming_workers(connection) == {dead, elsewhere, elsewhere + "1"}
        claim_workload(connection, "one", elsewhere, 111.0, 121.0)
        assert claiming_workers(connection) == {elsewhere}
