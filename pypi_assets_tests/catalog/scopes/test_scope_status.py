"""The status of scopes, and why a project is in a scope or not."""

from sqlalchemy import update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.scopes.scope_status import ScopeReason, ScopeState, ScopeStatus, scope_status, why
from pypi_assets.catalog.scopes.stored_scopes import change_scope, set_aborted
from pypi_assets.catalog.tables import visit_queue
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.scoped_index import SDIST, ScopedFollower, scoped


def status(follower: ScopedFollower, name: str = "mine") -> ScopeStatus:
    with follower.catalog.read() as connection:
        return scope_status(connection, follower.scope(name), follower.now)


def reason(follower: ScopedFollower, project: str) -> ScopeReason:
    with follower.catalog.read() as connection:
        return why(connection, follower.scope(), project)


def test_scope_goes_from_active_to_finished(catalog: Catalog) -> None:
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


def test_explanation_of_a_member_project(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "Big.Library")
    follower.index.upload("Big.Library", "1.0", "base")
    created = follower.start("app").scope.created_serial
    found = reason(follower, "App")
    assert found == ScopeReason("app", True, ["app"], found.sentences)
    assert mentions(found.sentences[-1], created)
    found = reason(follower, "base")
    assert list(found.path) == ["app", "big-library", "base"]
    assert mentions(found.sentences[0], "app -> big-library -> base")
    follower.index.upload("app", "2.0")
    follower.crawl()
    found = reason(follower, "base")
    assert (found.is_in, list(found.path)) == (True, [])
    assert found.sentences


def test_explanation_of_a_non_member_project(sqlite_catalog: Catalog) -> None:
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


def test_entering_project_has_no_answer_yet(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.create("app")
    found = reason(follower, "app")
    assert found.is_in
    assert not mentions(found.sentences[-1], "serial")
