"""A project has entered a scope at the serial from which it is completely known, and dumps publish entered projects."""

from functools import partial

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import project_ids
from pypi_assets.catalog.reports.catalog_status import count_differences
from pypi_assets.catalog.scopes.members import entering_in, prune_scope, remove_scope
from pypi_assets.catalog.tables import (
    followed_intervals,
    live_intervals,
    read_queue,
    scope_edges,
    scope_projects,
    scopes,
    visit_queue,
)
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.crawl.scope_crawl import follow_workload, settle_workload
from pypi_assets_tests.crawl.followers import empty_catalog
from pypi_assets_tests.crawl.model_dumps import DumpReader
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.measured_work import measure
from pypi_assets_tests.scoped_index import SDIST, ScopedFollower, scoped
from pypi_assets_tests.served_index import logged_changes


def exact_from(follower: ScopedFollower, project: str) -> int | None:
    interval = followed_intervals.c
    with follower.catalog.read() as connection:
        is_of_project = interval.project_id == project_ids(connection, [project])[project]
        return connection.scalar(
            select(interval.exact_from).where(is_of_project).order_by(interval.start.desc()).limit(1)
        )


def enter_late(follower: ScopedFollower) -> None:
    """Upload a release that requires `library`, and crawl it."""
    follower.index.upload("app", f"{follower.index.serial}.0", "library")
    follower.crawl()


@pytest.mark.nightly
def test_late_entrant_is_known_since_the_first_stored_event(catalog: Catalog) -> None:
    follower = scoped(catalog)
    index = follower.index
    index.upload("app", "1.0")
    old = index.upload("library", "1.0")
    created = follower.start("app").scope.created_serial
    new = index.upload("library", "2.0")
    uploaded = index.serial
    enter_late(follower)
    assert exact_from(follower, "library") == created
    assert {old, new} <= follower.names()
    assert old in follower.names(created)
    assert new not in follower.names(created)
    assert new in follower.names(uploaded)


@pytest.mark.nightly
def test_serials_before_a_removal_preceding_the_first_page_are_rejected(catalog: Catalog) -> None:
    follower = scoped(catalog)
    index = follower.index
    index.upload("app", "1.0")
    gone = index.upload("library", "1.0")
    kept = index.upload("library", "2.0", ending=SDIST)
    follower.start("app")
    index.do("remove-file", "library", "1.0", gone)
    removed = index.serial
    enter_late(follower)
    assert exact_from(follower, "library") == removed
    assert follower.names(removed - 1) == {"app-1.0-py3-none-any.whl"}
    assert follower.names(removed) == {"app-1.0-py3-none-any.whl", kept}


def test_unknown_file_quarantined_before_first_page_is_not_reported_missing(
    sqlite_catalog: Catalog,
) -> None:
    follower = scoped(sqlite_catalog)
    index = follower.index
    index.upload("app", "1.0")
    index.upload("library", "1.0")
    follower.start("app")
    index.do("quarantine", "library")
    index.do("unquarantine", "library")
    shown_again = index.serial
    enter_late(follower)
    assert (exact_from(follower, "library") or 0) in {shown_again - 1, shown_again}
    assert "library-1.0-py3-none-any.whl" in follower.names()


def test_project_is_not_settled_while_a_read_is_pending(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    file = follower.index.upload("app", "1.0")
    scope = follower.create("app")
    with sqlite_catalog.read() as connection:
        assert entering_in(connection, scope.workload) == [], "it was not visited"
    assert exact_from(follower, "app") is None
    assert follower.run().is_complete
    assert file in follower.names()
    assert exact_from(follower, "app") == scope.created_serial


@pytest.mark.nightly
def test_late_entrants_appear_from_the_next_dump_on(catalog: Catalog) -> None:
    follower = scoped(catalog)
    follower.index.upload("app", "1.0")
    library = follower.index.upload("library", "1.0")
    follower.start("app")
    reader = DumpReader()
    assert reader.go_on(follower.crawler.catalog)
    assert set(reader.rows) == {"app-1.0-py3-none-any.whl"}
    enter_late(follower)
    assert reader.go_on(follower.crawler.catalog)
    assert set(reader.rows) == follower.names()
    causes = [cause for name, _, cause in logged_changes(catalog, "library") if name == library]
    assert causes == ["baseline", "followed"]


def test_events_during_entry_are_taken_into_account(sqlite_catalog: Catalog) -> None:
    """The index changes while the entering project is visited, so its page is newer than its known events."""
    follower = scoped(sqlite_catalog)
    index = follower.index
    index.upload("app", "1.0")
    first = index.upload("library", "1.0")
    follower.start("app")
    index.upload("app", "2.0", "library")
    through = index.serial
    moves = [lambda: index.upload("library", "2.0"), lambda: index.do("remove-file", "library", "1.0", first)]

    def move() -> None:
        if index.visited and index.visited[-1] == "library" and moves:
            moves.pop(0)()

    reader = DumpReader()
    assert reader.go_on(follower.crawler.catalog)
    index.visited.clear()
    index.before_answer = move
    crawl_incremental(follower.crawler)
    index.before_answer = lambda: None
    assert not moves
    assert follower.complete == through
    assert reader.go_on(follower.crawler.catalog)
    assert set(reader.rows) == follower.names() >= {first}
    for _ in range(2):
        follower.crawl()
        assert follower.names(through) >= {first}
        for serial in range(through, follower.complete + 1):
            assert follower.live(serial) == index.shown[serial], f"at {serial}"


def test_statements_of_settling_do_not_grow_with_projects(sqlite_catalog: Catalog) -> None:
    statements = []
    for count in (3, 30):
        empty_catalog(sqlite_catalog)
        follower = scoped(sqlite_catalog)
        libraries = [f"library{number}" for number in range(count)]
        for library in libraries:
            follower.index.upload(library, "1.0")
        follower.index.upload("app", "1.0", *libraries)
        crawler, workload = follower.crawler, follower.create("app").workload
        with draining_in_place():
            follow_workload(crawler, workload)
        with sqlite_catalog.read() as connection:
            assert len(entering_in(connection, workload)) == count + 1
        statements.append(measure(sqlite_catalog, partial(settle_workload, crawler, workload)).statements)
        assert {exact_from(follower, library) for library in libraries} == {follower.scope().created_serial}
    assert statements[1] == statements[0]


def prune(follower: ScopedFollower, name: str = "mine") -> list[str]:
    scope = follower.scope(name)
    with follower.crawler.catalog.write() as connection:
        return prune_scope(connection, scope, follower.now)


def remove(follower: ScopedFollower, name: str = "mine") -> list[str]:
    scope = follower.scope(name)
    with follower.crawler.catalog.write() as connection:
        return remove_scope(connection, scope)


def without_library(follower: ScopedFollower) -> None:
    """Set up a scope whose root required `library` and no longer does."""
    follower.index.upload("app", "1.0", "library")
    follower.index.upload("library", "1.0", "base")
    follower.index.upload("base", "1.0")
    follower.start("app")
    follower.index.upload("app", "2.0", "other")
    follower.index.upload("other", "1.0")
    follower.crawl()


@pytest.mark.nightly
def test_unreachable_project_stays_until_the_scope_is_pruned(catalog: Catalog) -> None:
    follower = scoped(catalog)
    without_library(follower)
    assert follower.depths() == {"app": 0, "library": 1, "base": 2, "other": 1}
    before, at = follower.names(), follower.complete
    intervals = select(live_intervals).order_by(live_intervals.c.distribution_id)
    with catalog.read() as connection:
        live = connection.execute(intervals).all()
    assert prune(follower) == ["base", "library"]
    assert follower.depths() == {"app": 0, "other": 1}
    with catalog.read() as connection:
        assert connection.execute(intervals).all() == live
        assert not count_differences(connection)
    assert follower.names(at) == before
    follower.index.upload("app", "3.0", "other")
    follower.crawl()
    assert follower.names() == {
        *(f"app-{version}-py3-none-any.whl" for version in ("1.0", "2.0", "3.0")),
        "other-1.0-py3-none-any.whl",
    }
    assert follower.names(at) == before
    assert prune(follower) == []


def test_pruned_project_does_not_return_through_past_requirements(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    without_library(follower)
    prune(follower)
    follower.index.upload("app", "3.0", "another")
    follower.crawl()
    follower.run()
    assert follower.depths() == {"app": 0, "other": 1, "another": 1}
    follower.set_rules("[[rule]]\nmax_files = 100")
    follower.run()
    assert follower.depths() == {"app": 0, "other": 1, "another": 1}


def test_pruning_recomputes_depths_for_later_discovery(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "library", "near")
    follower.index.upload("near", "1.0", "library")
    follower.index.upload("library", "1.0", "base")
    follower.start("app")
    first = follower.members()["library"][2]
    assert follower.depths() == {"app": 0, "near": 1, "library": 1, "base": 2}
    follower.index.upload("app", "2.0", "near")
    follower.crawl()
    assert follower.depths()["library"] == 1
    assert prune(follower) == []
    assert follower.depths() == {"app": 0, "near": 1, "library": 2, "base": 3}
    follower.index.upload("near", "2.0", "library", "more")
    follower.crawl()
    assert follower.depths() == {"app": 0, "near": 1, "library": 2, "base": 3, "more": 2}
    assert follower.members()["library"][2] == first


@pytest.mark.nightly
def test_dumps_have_tombstones_of_leavers_and_rows_of_returners(catalog: Catalog) -> None:
    follower = scoped(catalog)
    without_library(follower)
    reader = DumpReader()
    assert reader.go_on(follower.crawler.catalog)
    assert "library-1.0-py3-none-any.whl" in reader.rows
    prune(follower)
    follower.index.upload("app", "3.0")
    follower.crawl()
    assert reader.go_on(follower.crawler.catalog)
    assert set(reader.rows) == follower.names()
    assert "library-1.0-py3-none-any.whl" not in reader.rows
    follower.index.upload("library", "2.0")
    follower.index.upload("app", "4.0", "library")
    follower.crawl()
    assert reader.go_on(follower.crawler.catalog)
    assert set(reader.rows) == follower.names()
    assert {"library-1.0-py3-none-any.whl", "library-2.0-py3-none-any.whl"} <= follower.names()
    causes = [cause for name, _, cause in logged_changes(catalog, "library") if "-1.0-" in name]
    assert causes[-2:] == ["unfollowed", "followed"]


@pytest.mark.nightly
def test_first_dump_before_a_prune_is_followed_by_tombstones(catalog: Catalog) -> None:
    follower = scoped(catalog)
    without_library(follower)
    prune(follower)
    reader = DumpReader()
    assert reader.go_on(follower.crawler.catalog)
    assert set(reader.rows) == follower.names(follower.complete) > {"library-1.0-py3-none-any.whl"}
    follower.index.upload("app", "3.0")
    follower.crawl()
    assert reader.go_on(follower.crawler.catalog)
    assert set(reader.rows) == follower.names()
    assert "library-1.0-py3-none-any.whl" not in reader.rows


@pytest.mark.nightly
def test_removed_scope_unfollows_only_its_own_projects(catalog: Catalog) -> None:
    follower = scoped(catalog)
    follower.index.upload("one", "1.0", "shared", "own")
    follower.index.upload("two", "1.0", "shared")
    follower.index.upload("shared", "1.0")
    follower.index.upload("own", "1.0")
    follower.start("one", name="first")
    follower.start("two", name="second")
    at, before = follower.complete, follower.names()
    assert remove(follower, "first") == ["one", "own"]
    follower.index.upload("two", "2.0")
    follower.crawl()
    assert {name.partition("-")[0] for name in follower.names()} == {"two", "shared"}
    assert follower.names(at) == before
    assert remove(follower, "second") == ["shared", "two"]
    follower.index.upload("two", "3.0")
    follower.crawl()
    assert follower.names() == set()
    with catalog.read() as connection:
        for table in (scopes, scope_projects, scope_edges, read_queue):
            assert connection.execute(select(table)).first() is None, table.name
        assert not count_differences(connection)


def test_scope_removed_before_its_first_run_leaves_no_work(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.create("app")
    assert remove(follower) == ["app"]
    with sqlite_catalog.read() as connection:
        assert connection.execute(select(visit_queue)).first() is None
    assert follower.start("app").is_complete
    assert follower.names() == {"app-1.0-py3-none-any.whl"}


def test_pending_visits_of_removed_scope_are_done_for_other_scopes(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.create("app", name="first")
    follower.start("app", name="second")
    assert follower.names() == set(), "the first scope must visit it"
    assert remove(follower, "first") == []
    assert follower.run("second").is_complete
    assert follower.names() == {"app-1.0-py3-none-any.whl"}


def test_entering_project_that_is_pruned_leaves_no_trace(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    file = follower.index.upload("app", "1.0", "library")
    library = follower.index.upload("library", "1.0")
    follower.index.unreadable.add(library)
    follower.start("app")
    follower.index.do("remove-file", "app", "1.0", file)
    follower.crawl()
    assert prune(follower) == ["library"]
    assert follower.depths() == {"app": 0}
    follower.index.unreadable.clear()
    with draining_in_place():
        retry(follower.crawler)
    assert follower.outcomes()[library] == "gave up", "it is no longer followed"


def test_project_admitted_by_rules_before_a_prune_enters_after_it(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "library")
    follower.index.upload("library", "1.0", "base")
    follower.index.upload("base", "1.0")
    follower.start("app", "tool", rules='[[rule]]\nprojects = ["library", "tool"]\naccept = false')
    assert set(follower.depths()) == {"app"}
    follower.index.upload("tool", "1.0")
    follower.set_rules("")
    assert prune(follower) == []
    follower.run()
    assert follower.depths() == {"app": 0, "tool": 0, "library": 1, "base": 2}
    assert {name.split("-")[0] for name in follower.outcomes()} == {"app", "library", "base", "tool"}
