"""Entering ends with the serial from which on all of a project is known, and dumps publish what entered."""

from functools import partial

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.settling import entering_in
from pypi_assets.catalog.observed.projects import project_ids
from pypi_assets.catalog.tables import followed_intervals
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.scope_crawl import follow_workload, settle
from pypi_assets_tests.crawl.followers import empty_catalog
from pypi_assets_tests.crawl.model_dumps import DumpReader
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.measured_work import measure
from pypi_assets_tests.scoped_index import SDIST, ScopedFollower, scoped
from pypi_assets_tests.served_index import logged_changes


def exact_from(follower: ScopedFollower, project: str) -> int | None:
    of = followed_intervals.c
    with follower.catalog.read() as connection:
        is_it = of.project_id == project_ids(connection, [project])[project]
        return connection.scalar(select(of.exact_from).where(is_it).order_by(of.start.desc()).limit(1))


def enter_late(follower: ScopedFollower) -> None:
    """`library` is required from now on."""
    follower.index.upload("app", f"{follower.index.serial}.0", "library")
    follower.crawl()


@pytest.mark.nightly
def test_what_enters_late_is_known_since_events_are(catalog: Catalog) -> None:
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
def test_what_was_taken_away_before_the_first_page_is_refused_by_serial(catalog: Catalog) -> None:
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


def test_an_unknown_file_of_a_quarantine_before_the_first_page_is_not_answered_as_missing(
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


def test_nothing_is_settled_while_a_read_is_left(sqlite_catalog: Catalog) -> None:
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
def test_dumps_show_what_entered_late_from_the_next_one_on(catalog: Catalog) -> None:
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


def test_events_that_come_while_a_project_enters_are_taken_into_account(sqlite_catalog: Catalog) -> None:
    """The index goes on while what entered is visited: its page is newer than what is known by events."""
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


def test_many_projects_settle_in_as_many_statements_as_few(sqlite_catalog: Catalog) -> None:
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
        statements.append(measure(sqlite_catalog, partial(settle, crawler, workload)).statements)
        assert {exact_from(follower, library) for library in libraries} == {follower.scope().created_serial}
    assert statements[1] == statements[0]
