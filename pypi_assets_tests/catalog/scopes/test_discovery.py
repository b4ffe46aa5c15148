"""Projects that the roots of a scope lead to enter the scope: at which depth, from which serial, and whose work they
are.
"""

from functools import partial

import pytest
from sqlalchemy import func, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.followed import mark_projects
from pypi_assets.catalog.observed.projects import project_ids
from pypi_assets.catalog.scopes import discovery
from pypi_assets.catalog.scopes.discovery import discover
from pypi_assets.catalog.tables import followed_intervals, scope_edges, scope_marks
from pypi_assets.crawl import incremental_crawl
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.crawl.scope_crawl import discover_all
from pypi_assets_tests.crawl.followers import empty_catalog
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.measured_work import measure
from pypi_assets_tests.scoped_index import ScopedFollower, scoped


def chain(follower: ScopedFollower, *names: str) -> None:
    """Upload a chain of projects in which each requires the next."""
    for name, required in zip(names, [*names[1:], ""], strict=True):
        follower.index.upload(name, "1.0", *([required] if required else []))


def test_cycle_terminates_and_depth_is_minimal(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "a", "c")
    chain(follower, "a", "b", "c", "d")
    follower.index.upload("d", "2.0", "app", "d")
    assert follower.start("app").is_complete
    assert follower.depths() == {"app": 0, "a": 1, "c": 1, "b": 2, "d": 2}


def test_root_missing_from_the_index_is_known_and_visited_once(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "missing")
    assert follower.start("app", "nowhere").is_complete
    assert follower.depths() == {"app": 0, "nowhere": 0, "missing": 1}
    assert follower.names() == {"app-1.0-py3-none-any.whl"}
    file = follower.index.upload("missing", "0.1")
    follower.crawl()
    assert file in follower.names()


@pytest.mark.nightly
def test_project_beyond_the_depth_is_visited_only_after_a_shorter_path(catalog: Catalog) -> None:
    follower = scoped(catalog)
    chain(follower, "app", "a", "b", "c", "d")
    created = follower.start("app", most_depth=2).scope.created_serial
    assert follower.members() == {
        "app": (0, False, created, False),
        "a": (1, False, created, False),
        "b": (2, False, created, False),
        "c": (3, True, created, False),
    }
    assert "c" not in follower.index.visited
    follower.index.upload("app", "2.0", "b")
    shorter = follower.index.serial
    follower.crawl()
    assert follower.members() == {
        "app": (0, False, created, False),
        "a": (1, False, created, False),
        "b": (1, False, created, False),
        "c": (2, False, shorter, False),
        "d": (3, True, shorter, False),
    }
    assert "c-1.0-py3-none-any.whl" in follower.names()
    assert "d" not in follower.index.visited


def test_late_read_enters_at_the_current_range_and_is_marked(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    file = follower.index.upload("app", "1.0", "library")
    follower.index.upload("library", "1.0")
    follower.index.unreadable.add(file)
    created = follower.start("app").scope.created_serial
    assert follower.depths() == {"app": 0}
    follower.index.unreadable.clear()
    with draining_in_place():
        retry(follower.crawler)
    follower.run()
    assert follower.members()["library"] == (1, False, created, True)
    assert follower.names() == {file, "library-1.0-py3-none-any.whl"}


def test_projects_shared_by_two_scopes_are_visited_once(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("one", "1.0", "shared")
    follower.index.upload("two", "1.0", "shared", "own")
    chain(follower, "shared", "base")
    follower.index.upload("own", "1.0")
    follower.start("one", name="first")
    before = len(follower.index.visited)
    follower.start("two", name="second")
    assert follower.depths("first") == {"one": 0, "shared": 1, "base": 2}
    assert follower.depths("second") == {"two": 0, "shared": 1, "own": 1, "base": 2}
    assert sorted(follower.index.visited[before:]) == ["own", "two"]


@pytest.mark.nightly
def test_range_visits_some_entering_projects_and_leaves_the_rest_to_the_scope(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental_crawl, "ENTERING_IN_A_RANGE", 3)
    monkeypatch.setattr(incremental_crawl, "run_ready_scopes", lambda crawler: [])
    follower = scoped(catalog)
    follower.index.upload("app", "1.0")
    scope = follower.start("app").scope
    names = [f"needed{number}" for number in range(8)]
    for name in names:
        follower.index.upload(name, "1.0")
    follower.index.upload("app", "2.0", *names)
    follower.crawl()
    assert follower.complete == follower.index.serial
    assert len(follower.names()) == 2 + 3
    assert len(follower.queued(scope.workload)) == 5
    assert follower.scope().completed_at is None
    with catalog.read() as connection:
        entering = select(func.count()).where(followed_intervals.c.exact_from.is_(None))
        assert connection.scalar(entering) == 5
    assert follower.run().is_complete
    assert len(follower.names()) == 2 + 8
    assert follower.queued(scope.workload) == set()


def test_search_needs_marks_and_takes_them_once(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.start("app")
    follower.index.upload("app", "2.0")
    follower.crawl()
    with sqlite_catalog.write() as connection:
        assert connection.scalar(select(func.count()).select_from(scope_marks)) == 0
        found = discover(connection, follower.now)
        assert (found.entered, found.is_all) == (0, True)


def test_rules_exclude_projects_from_their_serial_on(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "tf-one", "other")
    follower.index.upload("tf-one", "1.0", "base")
    follower.start("app", rules='[[rule]]\nprojects = ["tf-*"]\naccept = false')
    assert follower.depths() == {"app": 0, "other": 1}
    before = follower.complete
    follower.set_rules("")
    follower.run()
    assert follower.depths() == {"app": 0, "other": 1, "tf-one": 1, "base": 2}
    assert follower.members()["tf-one"][2] == before + 1
    follower.set_rules('[[rule]]\nprojects = ["tf-*"]\naccept = false')
    follower.run()
    assert "tf-one" in follower.depths(), "members stay until the scope is pruned"


def test_projects_followed_by_another_scope_are_traversed_at_once(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    for name, required in (("app", "library"), ("library", "base"), ("base", "deep"), ("deep", "app")):
        follower.index.upload(name, "1.0", required)
    follower.start("app")
    follower.create("library", name="other")
    discover_all(follower.crawler)
    assert follower.depths("other") == {"library": 0, "base": 1, "deep": 2, "app": 3}


@pytest.mark.nightly
@pytest.mark.parametrize("most_depth", [1, None])
def test_upload_with_very_many_requirements_blocks_nothing(
    sqlite_catalog: Catalog, monkeypatch: pytest.MonkeyPatch, most_depth: int | None
) -> None:
    """The range visits some of the required projects and the scope the others. The number of statements is constant.

    Half of the required projects do not exist. Another upload in the same range is answered after it.
    """
    monkeypatch.setattr(incremental_crawl, "ENTERING_IN_A_RANGE", 10)
    monkeypatch.setattr(incremental_crawl, "run_ready_scopes", lambda crawler: [])
    statements = []
    for count in (60, 240):
        empty_catalog(sqlite_catalog)
        follower = scoped(sqlite_catalog)
        index = follower.index
        index.upload("app", "1.0")
        index.upload("other", "1.0")
        names = [f"needed{number:03}" for number in range(count)]
        there = {index.upload(name, "1.0", "deeper") for name in names[: count // 2]}
        deeper = index.upload("deeper", "1.0")
        workload = follower.start("app", "other", most_depth=most_depth).scope.workload
        index.upload("app", "2.0", *names)
        answered = index.upload("other", "2.0")
        statements.append(measure(sqlite_catalog, follower.crawl).statements)
        assert follower.complete == index.serial
        assert answered in follower.names()
        assert len(follower.names() & there) == 10
        assert follower.queued(workload) - {"deeper"} == set(names[10:])
        assert follower.run().is_complete
        assert follower.names() >= there
        assert (deeper in follower.names()) == (most_depth is None)
        assert follower.queued(workload) == set()
    assert statements[1] == statements[0]


def test_statements_of_discovery_do_not_grow_with_projects(sqlite_catalog: Catalog) -> None:
    """The requirements of all projects are read together."""
    statements = []
    for count in (5, 50):
        empty_catalog(sqlite_catalog)
        follower = scoped(sqlite_catalog)
        names = [f"library{number}" for number in range(count)]
        for name in names:
            follower.index.upload(name, "1.0", "base")
        follower.start(*names)
        with sqlite_catalog.write() as connection:
            mark_projects(connection, project_ids(connection, names).values())
        work = measure(sqlite_catalog, partial(discover_all, follower.crawler))
        assert work.added == {"scope_marks": -count}
        statements.append(work.statements)
    assert statements[1] == statements[0]


def test_requirements_before_a_project_was_reachable_start_no_search(
    sqlite_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the roots are later found to have led to it earlier, its requirements of that time count."""
    follower = scoped(sqlite_catalog)
    index = follower.index
    index.upload("app", "1.0")
    index.upload("early", "1.0")
    index.upload("library", "1.0", "early")
    follower.start("app")
    first = index.upload("app", "2.0", "middle")
    index.unreadable = {first}
    index.upload("library", "2.0")
    index.upload("middle", "1.0", "library")
    index.upload("app", "3.0", "library")
    follower.crawl()
    assert follower.depths() == {"app": 0, "library": 1}
    searched = []
    monkeypatch.setattr(discovery, "search", lambda *given: searched.append(given) or {})
    discover_again(follower, "library")
    assert searched == []
    with follower.catalog.write() as connection:
        connection.execute(update(scope_edges).where(scope_edges.c.required == "early").values(required="others"))
    discover_again(follower, "library")
    assert searched == [], "only the time before it was reachable differs"
    monkeypatch.undo()
    index.unreadable = set()
    with draining_in_place():
        retry(follower.crawler)
    follower.run()
    assert follower.depths() == {"app": 0, "library": 1, "middle": 1}


def discover_again(follower: ScopedFollower, project: str) -> None:
    with follower.catalog.write() as connection:
        mark_projects(connection, project_ids(connection, [project]).values())
    discover_all(follower.crawler)
