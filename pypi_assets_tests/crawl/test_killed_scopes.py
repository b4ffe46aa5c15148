"""Rule 7 with scopes: killed and repeated work, and concurrent processes, end in the same state."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.reports.catalog_status import count_differences
from pypi_assets.catalog.scopes.stored_scopes import require_scope
from pypi_assets.catalog.tables import followed_intervals, projects, scope_projects, visit_queue
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental
from pypi_assets.crawl.scope_crawl import run_ready_scopes, run_scope, start_scope
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.root_files import named_roots
from pypi_assets_tests.crawl.test_exactness import content
from pypi_assets_tests.crawl.test_kill import kill_at
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex


def start(index: ServedIndex, catalog: Catalog, *roots: str, name: str = "mine") -> None:
    start_scope(index.crawler(catalog), ScopePlan(name, named_roots(roots).extras))


def state(catalog: Catalog) -> dict[str, object]:
    """Return the distributions and the scopes of the catalog, without ids and times."""
    member = scope_projects.c
    columns = (
        member.scope_id,
        projects.c.normalized,
        member.depth,
        member.is_beyond,
        member.first_serial,
        member.entered_serial,
    )
    members = select(*columns).join(projects, projects.c.id == member.project_id)
    followed = select(
        projects.c.normalized, followed_intervals.c.start, followed_intervals.c.end, followed_intervals.c.exact_from
    ).join(projects, projects.c.id == followed_intervals.c.project_id)
    with catalog.read() as connection:
        assert connection.execute(select(visit_queue).where(visit_queue.c.state != "done")).all() == []
        assert not count_differences(connection)
        return content(catalog) | {
            "members": sorted(map(tuple, connection.execute(members))),
            "followed": sorted(map(tuple, connection.execute(followed))),
        }


def upload_tree(index: ServedIndex, names: Sequence[str]) -> None:
    """Upload projects as a binary tree, in which each project requires the two below it."""
    for number, name in enumerate(names):
        index.wheel(name, "1.0", requires_dist=names[2 * number + 1 : 2 * number + 3])
        index.sdist(name, "1.0")


@pytest.mark.nightly
@pytest.mark.parametrize(("path", "request_number"), [("/simple/", 4), ("/packages/", 9)])
def test_killed_scope_ends_in_the_same_state(
    index: ServedIndex, sqlite_catalog: Catalog, tmp_path: Path, path: str, request_number: int
) -> None:
    upload_tree(index, [f"project{number}" for number in range(10)])
    undisturbed = open_catalog(sqlite_database(tmp_path / "undisturbed.sqlite"))
    for each in (sqlite_catalog, undisturbed):
        start(index, each, "project0")
    kill_at(index, sqlite_catalog, "scopes", path, request_number)
    for each in (sqlite_catalog, undisturbed):
        assert run_scope(index.crawler(each), "mine").is_complete
    assert state(sqlite_catalog) == state(undisturbed)
    undisturbed.close()


@pytest.mark.nightly
def test_range_killed_while_projects_enter_ends_in_the_same_state(
    index: ServedIndex, sqlite_catalog: Catalog, tmp_path: Path
) -> None:
    names = [f"project{number}" for number in range(8)]
    index.wheel("app", "1.0")
    undisturbed = open_catalog(sqlite_database(tmp_path / "undisturbed.sqlite"))
    for each in (sqlite_catalog, undisturbed):
        start(index, each, "app")
        run_scope(index.crawler(each), "mine")
    upload_tree(index, names)
    index.wheel("app", "2.0", requires_dist=["project0"])
    kill_at(index, sqlite_catalog, "incremental", "/simple/project", 5)
    for each in (sqlite_catalog, undisturbed):
        crawl_incremental(index.crawler(each))
    assert state(sqlite_catalog) == state(undisturbed)
    undisturbed.close()


@pytest.mark.nightly
def test_concurrent_workers_on_one_scope_end_in_the_same_state(
    index: ServedIndex, catalog: Catalog, tmp_path: Path
) -> None:
    upload_tree(index, [f"project{number}" for number in range(12)])
    alone = open_catalog(sqlite_database(tmp_path / "alone.sqlite"))
    for each in (catalog, alone):
        start(index, each, "project0")
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: run_scope(index.crawler(catalog), "mine"), range(2)))
    assert any(result.is_complete for result in results)
    run_scope(index.crawler(alone), "mine")
    assert state(catalog) == state(alone)
    with catalog.read() as connection:
        assert require_scope(connection, "mine").completed_at is not None
    alone.close()


@pytest.mark.nightly
def test_parallel_ranges_and_scope_run_follow_the_same_projects(index: ServedIndex, catalog: Catalog) -> None:
    """The serial at which each project enters depends on the order. The followed projects and their depths do not."""
    upload_tree(index, [f"project{number}" for number in range(10)])
    for name in ("app", "other"):
        index.wheel(name, "1.0")
    start(index, catalog, "app")
    run_scope(index.crawler(catalog), "mine")
    for number in range(4):
        index.wheel("app", f"2.{number}", requires_dist=[f"project{number}"])
        allocate_next_ranges(index.crawler(catalog))
    start(index, catalog, "other", "project0", name="second")

    def work(number: int) -> None:
        if number == 0:
            run_scope(index.crawler(catalog), "second")
        else:
            ranges = allocate_next_ranges(index.crawler(catalog))
            assert ranges == []
            crawl_incremental(index.crawler(catalog))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    run_ready_scopes(index.crawler(catalog))
    found = state(catalog)
    depths = {(scope, name): depth for scope, name, depth, *_ in found["members"]}  # type: ignore[attr-defined]
    expected = {name: depth for depth, names in enumerate([[0], [1, 2], [3, 4, 5, 6], [7, 8, 9]]) for name in names}
    second = {(2, f"project{number}"): depth for number, depth in expected.items()} | {(2, "other"): 0}
    first = {(1, f"project{number}"): 1 for number in range(4)} | {(1, f"project{number}"): 2 for number in range(4, 9)}
    assert depths == second | first | {(1, "app"): 0, (1, "project9"): 3}
    assert all(row[3] is not None for row in found["followed"])  # type: ignore[attr-defined]
