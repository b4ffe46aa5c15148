"""What changed in a range is what its dump shows: changes logged in it, wherever they happened."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select

from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.range_states import (
    RangeChange,
    count_causes,
    count_unexplained,
    first_changes,
    unexplained_projects,
)
from pypi_assets.catalog.tables import changes, distributions, projects
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    made = small_catalog(tmp_path, database_url)
    made.add(2, "Demo", "1.0", "demo-1.0.tar.gz")
    made.add(5, "Demo", "2.0", "demo-2.0.tar.gz")
    made.yank(6, "demo-2.0.tar.gz")
    with made.catalog.write() as connection:
        first = connection.scalar(select(distributions.c.id).where(distributions.c.filename == "demo-1.0.tar.gz"))
        row = {"distribution_id": first, "serial": 3, "cause": UNEXPLAINED, "logged_serial": 6}
        connection.execute(insert(changes).values(row))
        add_counts(connection, {UNEXPLAINED_CHANGES: 1})
    yield made
    made.catalog.close()


def test_changes_count_where_they_are_logged(small: SmallCatalog):
    with small.catalog.read() as connection:
        assert count_causes(connection, SerialRange(0, 4)) == {"add file": 1}
        assert count_causes(connection, SerialRange(4, 6)) == {"add file": 1, UNEXPLAINED: 1, "yank release": 1}
        assert count_causes(connection, SerialRange(6, 9)) == {}
        counts = [count_unexplained(connection, serials) for serials in (None, SerialRange(0, 5), SerialRange(5, 6))]
    assert counts == [1, 0, 1]


def test_projects_with_an_unexplained_change_are_found(small: SmallCatalog):
    small.add(7, "Other", "1.0", "other-1.0.tar.gz")
    with small.catalog.write() as connection:
        demo = connection.scalar(select(projects.c.id).where(projects.c.normalized == "demo"))
        assert unexplained_projects(connection) == [demo]
        connection.execute(delete(changes).where(changes.c.cause == UNEXPLAINED))
        assert unexplained_projects(connection) == []


def test_the_first_changes_are_in_order_of_serial(small: SmallCatalog):
    with small.catalog.read() as connection:
        found = first_changes(connection, SerialRange(4, 6), 2)
    assert found == [
        RangeChange(5, "add file", "Demo", "2.0", "demo-2.0.tar.gz"),
        RangeChange(3, UNEXPLAINED, "Demo", "1.0", "demo-1.0.tar.gz"),
    ]
