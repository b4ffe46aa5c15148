"""The logs go by their age, and what is counted, listed or worked on by them stays."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from pypi_assets.catalog import pruning
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.observed.projects import Project, find_project
from pypi_assets.catalog.pruning import old_attempts, old_visits, sweep
from pypi_assets.catalog.reports.catalog_status import work_done
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.reports.past_visits import compare_visits, deleted_visits, past_visits
from pypi_assets.catalog.tables import (
    audits,
    distribution_data,
    full_crawls,
    read_attempts,
    visit_statuses,
)
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

DAY = 86_400.0


@pytest.fixture(autouse=True)
def no_first_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "FIRST_VISITS_KEPT", 0)


@pytest.fixture
def small(database_url: str, tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path, database_url)
    for number, project in enumerate(("often", "once", "crawled"), start=1):
        small.add(number, project, "1", f"{project}-1.tar.gz")
    yield small
    small.catalog.close()


def visit(catalog: Catalog, project: Project, *days: int, workload: str = "range:1-2") -> None:
    for day in days:
        with catalog.write() as connection:
            [visit_id] = begin_visits(connection, [project.id], "range", workload, day * DAY).values()
            row = {"visit_id": visit_id, "at": day * DAY, "status": "failed", "text": "no"}
            connection.execute(insert(visit_statuses), [row])


def project(catalog: Catalog, name: str) -> Project:
    with catalog.read() as connection:
        found = find_project(connection, name)
    assert found is not None
    return found


def numbers(catalog: Catalog, name: str) -> list[int]:
    with catalog.read() as connection:
        return [one.visit for one in past_visits(connection, project(catalog, name))]


def test_old_visits_go_with_their_statuses_but_for_the_newest_of_each_project(small: SmallCatalog) -> None:
    catalog = small.catalog
    visit(catalog, project(catalog, "often"), *range(1, 11))
    visit(catalog, project(catalog, "once"), 1)
    assert sweep(catalog, old_visits(8 * DAY), dry_run=True) == 7
    assert sweep(catalog, old_visits(8 * DAY)) == 7
    assert (numbers(catalog, "often"), numbers(catalog, "once")) == ([8, 9, 10], [1])
    with catalog.read() as connection:
        assert len(connection.scalars(select(visit_statuses.c.id)).all()) == 2 * 4
        assert work_done(connection)[0] == 11  # a counter of metrics never falls
    assert deleted_visits(numbers(catalog, "often")) == 7
    assert sweep(catalog, old_visits(100 * DAY)) == 2
    assert numbers(catalog, "often") == [10]
    visit(catalog, project(catalog, "often"), 200)
    assert numbers(catalog, "often") == [10, 11]  # they are counted on


def test_a_visit_that_was_deleted_is_named_as_such(small: SmallCatalog) -> None:
    catalog = small.catalog
    often = project(catalog, "often")
    visit(catalog, often, 1, 2, 3)
    sweep(catalog, old_visits(3 * DAY))
    with catalog.read() as connection:
        with pytest.raises(CatalogError, match=naming("often", 1)):
            compare_visits(connection, often, 1, 3)
        with pytest.raises(CatalogError, match=naming("often", 4)):
            compare_visits(connection, often, 4, 3)


def test_visits_that_an_open_crawl_or_audit_is_completed_by_stay(small: SmallCatalog) -> None:
    catalog = small.catalog
    with catalog.write() as connection:
        crawl = insert(full_crawls).values(id=7, serial=1, selection="[]", opened_at=0.0, open=1)
        connection.execute(crawl)
        connection.execute(insert(audits).values(id=8, share_percent=1.0, opened_at=0.0, open=1))
    often = project(catalog, "often")
    for day, workload in enumerate(("crawl:7", "audit:8", "crawl:77", "range:1-2")):
        visit(catalog, often, day, workload=workload)
    assert sweep(catalog, old_visits(100 * DAY)) == 1
    assert numbers(catalog, "often") == [1, 2, 4]
    with catalog.write() as connection:
        connection.execute(update(full_crawls).values(open=None, completed_at=1.0))
        connection.execute(update(audits).values(open=None, completed_at=1.0))
    assert sweep(catalog, old_visits(100 * DAY)) == 2


def test_the_first_visits_stay(small: SmallCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "FIRST_VISITS_KEPT", 2)
    visit(small.catalog, project(small.catalog, "often"), *range(5))
    assert sweep(small.catalog, old_visits(100 * DAY)) == 2
    assert numbers(small.catalog, "often") == [1, 2, 5]


def attempt(catalog: Catalog, filename_id: int, days: Sequence[float | None]) -> None:
    rows = [
        {
            "distribution_id": filename_id,
            "attempt": number,
            "worker": "w",
            "started_at": None if day is None else day * DAY,
            "seconds": 1.0,
            "outcome": "pending",
            "bytes_fetched": 0,
            "requests": 1,
        }
        for number, day in enumerate(days, start=1)
    ]
    with catalog.write() as connection:
        connection.execute(insert(read_attempts), rows)


def test_old_attempts_go_but_for_those_of_files_that_are_not_read(small: SmallCatalog) -> None:
    catalog = small.catalog
    with catalog.write() as connection:
        read, failed, *_ = connection.scalars(
            select(distribution_data.c.distribution_id).order_by(distribution_data.c.distribution_id)
        )
        connection.execute(
            update(distribution_data)
            .where(distribution_data.c.distribution_id == failed)
            .values(outcome="gave up", error_kind="transient")
        )
    attempt(catalog, read, [1, None, 2, 50, None])
    attempt(catalog, failed, [1, 2, 50])
    with catalog.read() as connection:
        before = list(list_failures(connection, 5))
    assert [one.attempts for one in before] == [3]
    assert sweep(catalog, old_attempts(40 * DAY)) == 3
    with catalog.read() as connection:
        left = connection.execute(select(read_attempts.c.distribution_id, read_attempts.c.started_at)).all()
        assert [row.started_at for row in left if row.distribution_id == read] == [50 * DAY, None]
        assert list(list_failures(connection, 5)) == before
        assert work_done(connection)[1] == 8


def test_the_newest_attempt_stays(small: SmallCatalog) -> None:
    with small.catalog.read() as connection:
        read = connection.scalars(select(distribution_data.c.distribution_id)).first()
    attempt(small.catalog, read or 0, [1, 2])
    assert sweep(small.catalog, old_attempts(40 * DAY)) == 1
    with small.catalog.read() as connection:
        assert work_done(connection)[1] == 2
