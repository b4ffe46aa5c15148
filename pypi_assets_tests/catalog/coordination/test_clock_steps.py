"""Stored times follow a step of the machine's clock: they are shifted once, by the size of the step."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

from pypi_assets.catalog.coordination import clock_steps
from pypi_assets.catalog.coordination.clock_steps import LEAST_STEP_S, ClockSteps
from pypi_assets.catalog.coordination.rates import SharedRate
from pypi_assets.catalog.database import Catalog, MachineClock, open_catalog
from pypi_assets.catalog.tables import clock_offsets, journal_letters, leases, projects, rates, visit_queue

HOUR_S = 3600.0


@dataclass
class Clocks:
    """The machine's clock, and the time since its boot."""

    now: float = 1_800_000_000.0
    steady: float = 5_000.0

    def pass_s(self, seconds: float) -> None:
        self.now += seconds
        self.steady += seconds

    def of(self, catalog: Catalog) -> Catalog:
        return replace(catalog, clock=MachineClock(lambda: self.now, lambda: self.steady))


def times(catalog: Catalog) -> list[float]:
    with catalog.read() as connection:
        found = connection.execute(select(leases.c.taken_at, leases.c.expires_at)).one()
        due = connection.scalars(select(journal_letters.c.due_at).order_by(journal_letters.c.id)).all()
    return [*found, *due]


@pytest.mark.parametrize("hours", [-7.0, 7.0])
def test_clock_step_shifts_stored_times_once(hours: float, sqlite_catalog: Catalog) -> None:
    clocks = Clocks()
    catalog = clocks.of(sqlite_catalog)
    start = clocks.now
    letter = {"consumer": "webhook x", "project": "demo", "cursor": "1", "content": b""}
    with catalog.write() as connection:
        connection.execute(insert(leases).values(name="x", holder="y", taken_at=start, expires_at=start + 300))
        connection.execute(insert(journal_letters), [letter | {"due_at": due} for due in (0.0, start + 60)])
    first, second = ClockSteps(), ClockSteps()
    assert [first.follow(catalog), second.follow(catalog)] == [0, 0]
    clocks.pass_s(100)
    clocks.now += LEAST_STEP_S / 2
    assert (first.follow(catalog), times(catalog)) == (0, [start, start + 300, 0, start + 60])
    step_s = hours * HOUR_S
    clocks.now += step_s
    moved = step_s + LEAST_STEP_S / 2
    for steps in (first, second, ClockSteps(), first):
        assert steps.follow(catalog) == pytest.approx(0 if steps not in (first, second) else max(moved, 0))
        assert times(catalog) == pytest.approx([start + moved, start + 300 + moved, 0, start + 60 + moved])
    clocks.pass_s(HOUR_S)
    assert first.follow(catalog) == 0
    clocks.now -= moved
    assert ClockSteps().follow(catalog) == 0
    assert times(catalog) == pytest.approx([start, start + 300, 0, start + 60])


def test_failure_between_two_backward_steps_keeps_its_age(sqlite_catalog: Catalog) -> None:
    clocks = Clocks()
    catalog = clocks.of(sqlite_catalog)
    steps = ClockSteps()
    steps.follow(catalog)
    clocks.now -= 30 * HOUR_S
    project = {"id": 1, "normalized": "demo", "name": "demo", "bucket": 0, "shard": 0, "known_since": 0}
    visit = {"workload": "crawl:1", "project_id": 1, "shard": 0, "min_serial": 0, "state": "todo"}
    with catalog.write() as connection:
        connection.execute(insert(projects).values(project))
        connection.execute(insert(visit_queue).values(visit | {"first_failed_at": clocks.now}))
    clocks.now -= 5 * HOUR_S
    steps.follow(catalog)
    with catalog.read() as connection:
        assert connection.scalar(select(visit_queue.c.first_failed_at)) == clocks.now


def test_new_boot_shifts_no_times(sqlite_catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks()
    catalog = clocks.of(sqlite_catalog)
    SharedRate(catalog, "requests", 1.0)
    ClockSteps().follow(catalog)
    clocks.steady = 10.0
    monkeypatch.setattr(clock_steps, "machine_hash", lambda: "another boot")
    ClockSteps().follow(catalog)
    with catalog.read() as connection:
        assert connection.execute(select(clock_offsets)).all() == [("another boot", clocks.now - 10.0)]
        assert connection.scalar(select(rates.c.due_at)) == clocks.now


def test_rate_is_not_delayed_by_backward_step(sqlite_catalog: Catalog) -> None:
    clocks, slept = Clocks(), []
    catalog = clocks.of(sqlite_catalog)
    rate = SharedRate(catalog, "requests", 10.0, clock=lambda: clocks.steady, sleep=slept.append)
    for _ in range(20):
        rate.wait()
    clocks.now -= 5 * HOUR_S
    clocks.pass_s(2)
    for _ in range(20):
        rate.wait()
    assert max(slept) < 10


def test_rate_is_not_delayed_by_backward_step_while_taking_slots(
    sqlite_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks, slept, transact = Clocks(), [], Catalog.transact
    catalog = clocks.of(sqlite_catalog)
    ClockSteps().follow(catalog)
    rate = SharedRate(catalog, "requests", 10.0, clock=lambda: clocks.steady, sleep=slept.append)

    def set_back_before(catalog: Catalog, work: Callable[[Connection], Any]) -> Any:
        monkeypatch.setattr(Catalog, "transact", transact)
        clocks.now -= 5 * HOUR_S
        ClockSteps().follow(catalog)
        return catalog.transact(work)

    rate.wait()
    clocks.pass_s(60)
    monkeypatch.setattr(Catalog, "transact", set_back_before)
    for _ in range(20):
        rate.wait()
    assert Catalog.transact is transact
    assert max(slept) < 10


def test_server_times_do_not_follow_the_local_clock(
    postgres_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_catalog(postgres_database_url)
    assert catalog.clock() == pytest.approx(time.time(), abs=5)
    true_time = time.time
    monkeypatch.setattr(time, "time", lambda: true_time() - 5 * HOUR_S)
    assert catalog.clock() == pytest.approx(true_time(), abs=5)
    assert not isinstance(catalog.clock, MachineClock)
    assert ClockSteps().follow(catalog) == 0
    catalog.close()


def test_local_catalog_follows_the_local_clock(sqlite_catalog: Catalog) -> None:
    clock = sqlite_catalog.clock
    assert isinstance(clock, MachineClock)
    assert 0 < clock.steady() < clock() == pytest.approx(time.time(), abs=5)
    assert clock.offset_s == pytest.approx(clock() - clock.steady(), abs=5)
