"""How scopes stand, and why a project is in one or not."""

import re
from functools import partial

import pytest
from sqlalchemy import Connection, insert, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import enter_projects, project_ids
from pypi_assets.catalog.scopes.status import (
    Following,
    Reason,
    ScopeState,
    ScopeStatus,
    following_at,
    require_answered,
    scope_status,
    unpublished_sentence,
    why,
)
from pypi_assets.catalog.scopes.stored_scopes import change_scope, create_scope, set_aborted
from pypi_assets.catalog.tables import catalog_state, followed_intervals, visit_queue
from pypi_assets.errors import NotAnsweredError
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.scoped_index import SDIST, ScopedFollower, scoped

Intervals = list[tuple[int, int | None, int | None]]


def follow(catalog: Catalog, intervals: Intervals) -> None:
    """The catalog is complete up to serial 100, and follows the project `demo` in these (start, exact from, end)."""

    plan = ScopePlan("mine", {"demo": frozenset()})
    catalog.transact(partial(create_scope, plan=plan, serial=100, index_url="http://index/", now=0.0))
    catalog.transact(partial(complete_range, serials=SerialRange(0, 100), now=0.0))
    catalog.transact(partial(enter_projects, names=[("Demo", 0)]))

    def enter(connection: Connection) -> None:
        [project_id] = project_ids(connection, ["demo"]).values()
        for start, exact_from, end in intervals:
            row = {"project_id": project_id, "start": start, "exact_from": exact_from, "end": end}
            connection.execute(insert(followed_intervals).values(row))

    catalog.transact(enter)


@pytest.mark.parametrize(
    ("intervals", "serial", "state", "values"),
    [
        ([], 90, Following.NEVER, ("demo", "pypi-assets scope create")),
        ([(50, None, None)], 90, Following.ENTERING, ("demo",)),
        ([(50, 40, None)], 40, Following.ANSWERED, None),
        ([(50, 40, None)], 39, Following.EARLIER, ("demo", 39, 40)),
        ([(50, 40, 60)], 59, Following.ANSWERED, None),
        ([(50, 40, 60)], 60, Following.ENDED, ("demo", 60)),
        ([(50, 40, 60), (70, 65, None)], 62, Following.EARLIER, ("demo", 62, 65)),
        ([(50, 40, 60), (70, 65, None)], 70, Following.ANSWERED, None),
        ([(50, 40, 60), (70, None, None)], 70, Following.ENTERING, ("demo",)),
        ([(50, 40, 60), (70, None, None)], 50, Following.ANSWERED, None),
    ],
)
def test_what_is_known_follows_from_the_intervals(
    catalog: Catalog, intervals: Intervals, serial: int, state: Following, values: tuple[object, ...] | None
) -> None:
    follow(catalog, intervals)
    with catalog.read() as connection:
        found = following_at(connection, "DEMO", serial)
        assert found is not None
        assert (found.name, found.state, found.projects) == ("demo", state, int(state == Following.ANSWERED))
        sentence = found.sentence()
        assert (sentence is None) == (values is None)
        assert sentence is None or re.search(naming(*(values or ())), sentence)
        if state == Following.EARLIER:
            with pytest.raises(NotAnsweredError, match=naming("demo", serial)):
                require_answered(connection, "demo", serial)
        else:
            assert require_answered(connection, "demo", serial) == found


def test_a_version_lacks_what_has_entered_since(catalog: Catalog) -> None:
    follow(catalog, [(50, 95, None)])
    with catalog.read() as connection:
        assert "demo" in str(unpublished_sentence(connection, "demo", 90))
        assert unpublished_sentence(connection, "demo", 96) is None
        assert "other" in str(unpublished_sentence(connection, "other", 90))


def test_where_all_is_followed_each_project_has_answers(catalog: Catalog) -> None:
    follow(catalog, [])
    catalog.transact(lambda connection: connection.execute(update(catalog_state).values(follows_all=True)))
    with catalog.read() as connection:
        assert following_at(connection, "demo", 90) is None
        assert require_answered(connection, "nothing", 1) is None
        assert unpublished_sentence(connection, "demo", 90) is None


def status(follower: ScopedFollower, name: str = "mine") -> ScopeStatus:
    with follower.catalog.read() as connection:
        return scope_status(connection, follower.scope(name), follower.now)


def reason(follower: ScopedFollower, project: str) -> Reason:
    with follower.catalog.read() as connection:
        return why(connection, follower.scope(), project)


def test_a_scope_goes_from_active_to_finished(catalog: Catalog) -> None:
    follower = scoped(catalog)
    follower.index.upload("app", "1.0", "library")
    follower.index.upload("app", "1.0", "library", ending=SDIST)
    follower.index.upload("library", "1.0", "base")
    scope = follower.create("app", most_depth=1, rules='[[rule]]\nkinds = ["sdist"]\nskip = true')
    found = status(follower)
    assert (found.state, found.projects, found.entering, found.visits.todo) == (ScopeState.ACTIVE, 1, 1, 1)
    with catalog.write() as connection:
        connection.execute(update(visit_queue).values(claimed_by="a worker", claimed_until=follower.now + 60))
    assert status(follower).state == ScopeState.DRAINING
    with catalog.write() as connection:
        connection.execute(update(visit_queue).values(claimed_by=None, claimed_until=0))
        change_scope(connection, scope, {"concurrency": 0})
    assert status(follower).state == ScopeState.PAUSED
    with catalog.write() as connection:
        change_scope(connection, scope, {"concurrency": None})
        set_aborted(connection, scope, is_aborted=True)
    found = status(follower)
    assert (found.state, found.visits.todo) == (ScopeState.ABORTED, 1)
    with catalog.write() as connection:
        set_aborted(connection, scope, is_aborted=False)
    follower.run()
    found = status(follower)
    assert (found.state, found.depths, found.beyond) == (ScopeState.FINISHED, {0: 1, 1: 1}, 1)
    assert (found.projects, found.entering, found.late, found.reads_left, found.workers) == (2, 0, 0, 0, 0)
    assert (found.visits.todo, found.visits.done, found.visits.exhausted) == (0, 2, 0)
    assert {name: count for name, count in found.files.items() if count} == {"data": 2, "skipped": 1}


def test_why_a_project_is_in(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "Big.Library")
    follower.index.upload("Big.Library", "1.0", "base")
    created = follower.start("app").scope.created_serial
    found = reason(follower, "App")
    assert found == Reason("app", True, ["app"], found.sentences)
    assert mentions(found.sentences[-1], created)
    found = reason(follower, "base")
    assert list(found.path) == ["app", "big-library", "base"]
    assert mentions(found.sentences[0], "app -> big-library -> base")
    follower.index.upload("app", "2.0")
    follower.crawl()
    found = reason(follower, "base")
    assert (found.is_in, list(found.path)) == (True, [])
    assert found.sentences


def test_why_a_project_is_not_in(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "library", "tf-one")
    follower.index.upload("library", "1.0", "base")
    follower.index.upload("base", "1.0", "more")
    follower.start("app", most_depth=1, rules='[[rule]]\nprojects = ["tf-*"]\naccept = false')
    found = reason(follower, "TF_One")
    assert not found.is_in
    assert mentions(found.sentences[0], "rule 1")
    assert mentions(found.sentences[1], "app")
    found = reason(follower, "base")
    assert not found.is_in
    assert mentions(" ".join(found.sentences), 2, 1)
    for name in ("more", "never-heard-of"):
        found = reason(follower, name)
        assert (found.is_in, list(found.path), len(found.sentences)) == (False, [], 1)


def test_what_is_entering_has_no_answer_yet(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.create("app")
    found = reason(follower, "app")
    assert found.is_in
    assert not mentions(found.sentences[-1], "serial")
