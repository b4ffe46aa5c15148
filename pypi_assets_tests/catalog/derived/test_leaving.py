"""What leaves scopes: past serials keep it, later ones and dumps do not, and it can come back."""

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.settling import prune_scope, remove_scope
from pypi_assets.catalog.reports.catalog_status import count_differences
from pypi_assets.catalog.tables import live_intervals, read_queue, scope_edges, scope_projects, scopes, visit_queue
from pypi_assets.crawl.retry_failures import retry
from pypi_assets_tests.crawl.model_dumps import DumpReader
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.scoped_index import ScopedFollower, scoped
from pypi_assets_tests.served_index import logged_changes


def prune(follower: ScopedFollower, name: str = "mine") -> list[str]:
    scope = follower.scope(name)
    with follower.crawler.catalog.write() as connection:
        return prune_scope(connection, scope, follower.now)


def remove(follower: ScopedFollower, name: str = "mine") -> list[str]:
    scope = follower.scope(name)
    with follower.crawler.catalog.write() as connection:
        return remove_scope(connection, scope)


def without_library(follower: ScopedFollower) -> None:
    """A scope whose root required `library`, and no longer does."""
    follower.index.upload("app", "1.0", "library")
    follower.index.upload("library", "1.0", "base")
    follower.index.upload("base", "1.0")
    follower.start("app")
    follower.index.upload("app", "2.0", "other")
    follower.index.upload("other", "1.0")
    follower.crawl()


@pytest.mark.nightly
def test_what_the_roots_no_longer_lead_to_stays_until_the_scope_is_pruned(catalog: Catalog) -> None:
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


def test_what_was_pruned_does_not_come_back_by_what_was_required_before(sqlite_catalog: Catalog) -> None:
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


def test_pruning_counts_depths_again_and_what_leads_on_later_counts_from_there(sqlite_catalog: Catalog) -> None:
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
def test_dumps_have_tombstones_of_what_left_and_what_comes_back_is_in_them_again(catalog: Catalog) -> None:
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
def test_a_first_dump_of_serials_before_a_prune_is_followed_by_tombstones(catalog: Catalog) -> None:
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
def test_a_removed_scope_leaves_what_no_other_scope_leads_to(catalog: Catalog) -> None:
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


def test_a_scope_that_is_removed_before_it_ran_leaves_no_work(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.create("app")
    assert remove(follower) == ["app"]
    with sqlite_catalog.read() as connection:
        assert connection.execute(select(visit_queue)).first() is None
    assert follower.start("app").is_complete
    assert follower.names() == {"app-1.0-py3-none-any.whl"}


def test_what_a_removed_scope_was_to_visit_is_visited_for_the_others(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.create("app", name="first")
    follower.start("app", name="second")
    assert follower.names() == set(), "the first scope has it to visit"
    assert remove(follower, "first") == []
    assert follower.run("second").is_complete
    assert follower.names() == {"app-1.0-py3-none-any.whl"}


def test_what_is_entering_when_it_is_pruned_leaves_no_trace(sqlite_catalog: Catalog) -> None:
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


def test_what_rules_let_in_before_a_prune_enters_after_it(sqlite_catalog: Catalog) -> None:
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
