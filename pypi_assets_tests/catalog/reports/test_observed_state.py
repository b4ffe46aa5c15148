"""The state of an observed index counts due projects, and names those with something that waits to be confirmed."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.catalog.reports.catalog_status import ObservedState, observed_state
from pypi_assets.index.observing.observed_index import ObservedIndex
from pypi_assets_tests.index.observing.test_observed_index import POLICY, URL, Client, Source, Time, nothing, shown


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def source() -> Source:
    return Source({name: shown(name, f"{name}-1.0.tar.gz") for name in ("demo", "other", "third")})


@pytest.fixture
def state(catalog: Catalog, time: Time) -> Callable[[], ObservedState]:
    def now() -> ObservedState:
        with catalog.read() as connection:
            return observed_state(connection, time.now, POLICY.confirm_after_s)

    return now


def test_what_is_due_and_what_waits_is_counted(
    catalog: Catalog, source: Source, time: Time, state: Callable[[], ObservedState]
) -> None:
    assert state() == ObservedState(0, 0, None, 0, (), None)
    memory = Observations(replace(catalog, clock=lambda: time.now), URL)
    index = ObservedIndex(Client(), source, memory, POLICY)  # type: ignore[arg-type]
    index.observe(nothing)
    due_at = time.now + POLICY.shortest_s
    assert state() == ObservedState(3, 0, due_at, 0, (), None)

    time.now = due_at
    assert state() == ObservedState(3, 3, None, 0, (), None)
    for name in ("demo", "other"):
        del source.pages[name]
    index.observe(nothing)
    confirmed_from = time.now + POLICY.confirm_after_s
    assert state() == ObservedState(3, 0, confirmed_from, 2, ("demo", "other"), confirmed_from)

    time.now = confirmed_from
    assert (state().due, state().unconfirmed) == (2, 2)
    assert index.observe(nothing).events == 2
    assert (state().unconfirmed, state().confirmed_from) == (0, None)
