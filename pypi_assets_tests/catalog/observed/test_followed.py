"""Followed projects: the serials between which each is followed, and the projects that have answers."""

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.followed import (
    answered_at,
    count_answered,
    end_entering,
    follow,
    followed_of,
    follows_all,
    is_followed,
    mark_projects,
    mark_projects_of,
    unfollow,
    versions_in_force,
)
from pypi_assets.catalog.observed.projects import enter_projects, project_ids
from pypi_assets.catalog.tables import distributions, followed_intervals, projects, scope_marks
from pypi_assets_tests.scoped_index import scoped
from pypi_assets_tests.small_catalog import small_catalog


def intervals(catalog: Catalog) -> list[tuple[int, int, int | None, int | None]]:
    interval = followed_intervals.c
    query = select(interval.project_id, interval.start, interval.end, interval.exact_from).order_by(
        interval.project_id, interval.start
    )
    with catalog.read() as connection:
        return [tuple(row) for row in connection.execute(query)]  # type: ignore[misc]


def answered(catalog: Catalog, serial: int) -> set[str]:
    with catalog.read() as connection:
        query = select(projects.c.normalized).where(answered_at(connection, projects.c.id, serial))
        return set(connection.scalars(query))


def test_all_projects_are_followed_without_scopes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    small = small_catalog(tmp_path)
    small.add(1, "app", "1.0", "app-1.0-py3-none-any.whl")
    with small.catalog.write() as connection:
        assert follows_all(connection)
        ids = list(project_ids(connection, ["app"]).values())
        assert followed_of(connection, [*ids, 999]) == {*ids, 999}
        assert count_answered(connection, 1) is None
        mark_projects(connection, ids)
        mark_projects_of(connection, [1, 2])
        assert connection.scalar(select(scope_marks.c.id)) is None, "no scope searches"
    assert answered(small.catalog, 0) == {"app"}
    small.catalog.close()


def test_project_enters_until_settled_and_leaves_after_the_complete_serial(catalog: Catalog) -> None:
    follower = scoped(catalog)
    follower.index.upload("app", "1.0")
    follower.start("app")
    first = follower.complete
    with catalog.write() as connection:
        enter_projects(connection, [("library", first)])
        app, library = (project_ids(connection, ["app", "library"])[name] for name in ("app", "library"))
        follow(connection, [library])
        follow(connection, [library])
        assert followed_of(connection, [app, library]) == {app, library}
        assert count_answered(connection, first + 9) == 1
        names = select(projects.c.normalized).where(is_followed(connection, projects.c.id))
        assert set(connection.scalars(names)) == {"app", "library"}
    assert answered(catalog, first + 9) == {"app"}
    with catalog.write() as connection:
        end_entering(connection, {library: first + 3, app: 0})
    assert answered(catalog, first + 2) == {"app"}
    assert answered(catalog, first + 3) == {"app", "library"}
    follower.index.upload("app", "2.0")
    follower.index.upload("app", "3.0")
    follower.crawl()
    with catalog.write() as connection:
        unfollow(connection, [app, library])
    ended = follower.complete + 1
    assert answered(catalog, ended) == set()
    assert answered(catalog, ended - 1) == {"app", "library"}
    assert [end for _, _, end, _ in intervals(catalog)] == [ended, ended]


def test_project_that_enters_and_leaves_leaves_no_trace(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.start("app")
    before = intervals(sqlite_catalog)
    with sqlite_catalog.write() as connection:
        enter_projects(connection, [("library", 0)])
        library = project_ids(connection, ["library"])["library"]
        follow(connection, [library])
        unfollow(connection, [library])
    assert intervals(sqlite_catalog) == before
    with sqlite_catalog.write() as connection:
        follow(connection, [library])
        end_entering(connection, {library: follower.complete + 5})
        unfollow(connection, [library])
    assert intervals(sqlite_catalog) == before, "there was never an answer"


def test_marks_name_each_project_once(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.start("app")
    with sqlite_catalog.write() as connection:
        app = project_ids(connection, ["app"])["app"]
        files = list(connection.scalars(select(distributions.c.id)))
        mark_projects(connection, [app, app])
        mark_projects_of(connection, [*files, 999])
        assert list(connection.scalars(select(scope_marks.c.project_id))) == [app, app]


def test_versions_in_force_come_from_all_scopes_of_a_project(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "library")
    first = follower.start("app", most_depth=0).scope
    second = follower.start("app", name="second").scope
    follower.set_rules("[[rule]]\nmax_files = 7", name="second")
    with sqlite_catalog.read() as connection:
        ids = project_ids(connection, ["app", "library"])
        found = versions_in_force(connection, ids.values())
    assert found == {ids["app"]: f"{first.id}:1,{second.id}:2", ids["library"]: f"{second.id}:2"}
