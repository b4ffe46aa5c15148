"""A count is the sum of all appended changes, no matter who folds them and when."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, select

from pypi_assets.catalog import counters as module
from pypi_assets.catalog.counters import add_counts, read_counts
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import counters
from pypi_assets_tests.examples import examples

changes = st.dictionaries(st.sampled_from(["one", "two", "three"]), st.integers(-3, 3), max_size=3)


def stored_rows(catalog: Catalog) -> int:
    with catalog.read() as connection:
        return connection.scalar(select(func.count()).select_from(counters)) or 0


@pytest.fixture
def often_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FOLDED_EVERY", 8)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(added=st.lists(changes, max_size=40))
def test_count_is_the_sum_of_all_changes_in_few_rows(
    catalog: Catalog, often_folded: None, added: list[dict[str, int]]
) -> None:
    with catalog.write() as connection:
        connection.execute(delete(counters))
    expected: Counter[str] = Counter()
    for one in added:
        expected.update(one)
        catalog.transact(lambda connection, one=one: add_counts(connection, one))
    with catalog.read() as connection:
        assert read_counts(connection) == {name: count for name, count in expected.items() if count}
    assert stored_rows(catalog) <= 8 + 3 + 3  # since the last fold, one row per name, and the change that folds next


def test_folding_writer_keeps_other_changes_and_waits_for_none(catalog: Catalog, often_folded: None) -> None:
    if catalog.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    with catalog.write() as connection:
        add_counts(connection, {"one": 1})
    with catalog.write() as slow, catalog.write() as quick:
        add_counts(slow, {"one": 10, "two": 5})
        for _ in range(20):
            add_counts(quick, {"one": 1})
    with catalog.read() as connection:
        assert read_counts(connection) == {"one": 31, "two": 5}
    assert stored_rows(catalog) < 20
