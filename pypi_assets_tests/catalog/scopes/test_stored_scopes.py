"""The registry of scopes: which scopes can be created, when rules are in force, and which scopes are paused."""

from dataclasses import replace

import pytest

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.scopes.stored_scopes import (
    all_scopes,
    change_scope,
    has_scopes,
    require_scope,
    rulesets_of,
    set_aborted,
)
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.scopes.ruleset import RulesError
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.naming import naming
from pypi_assets_tests.scoped_index import scoped


def test_taken_name_and_unknown_scope_are_rejected(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    with pytest.raises(CatalogError, match=naming("mine")):
        follower.scope()
    follower.create("app")
    with pytest.raises(CatalogError, match=naming("mine", "scope remove mine")):
        follower.create("other")
    with pytest.raises(CatalogError, match=naming("yours", "mine")):
        follower.scope("yours")


def test_invalid_rules_create_no_scope(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    with pytest.raises(RulesError, match=naming(1, "max_files")):
        follower.create("app", rules="[[rule]]\nmax_files = 0")
    with sqlite_catalog.read() as connection:
        assert not has_scopes(connection)
    follower.start("app")
    with pytest.raises(RulesError, match=naming(1)):
        follower.set_rules("[[rule]]\nprojects = ['a']")
    with sqlite_catalog.read() as connection:
        assert len(rulesets_of(connection, follower.scope().id)) == 1


def test_first_scope_begins_at_last_serial_and_later_ones_after_allocated_ranges(
    sqlite_catalog: Catalog,
) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    first = follower.start("app").scope
    assert first.created_serial == follower.index.serial == follower.complete
    follower.index.upload("app", "2.0")
    follower.crawl()
    second = follower.create("app", name="second", nice=-5)
    assert second.created_serial == follower.index.serial + 1
    with sqlite_catalog.read() as connection:
        assert [scope.name for scope in all_scopes(connection)] == ["second", "mine"]


def test_scope_of_empty_index_begins_at_its_first_serial(catalog: Catalog) -> None:
    follower = scoped(catalog)
    assert follower.start("app").is_complete
    assert follower.scope().created_serial == 1
    follower.index.upload("app", "1.0")
    follower.crawl()
    assert follower.names() == {"app-1.0-py3-none-any.whl"}


def test_catalog_of_a_full_crawl_still_follows_all_projects(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "library")
    other = follower.index.upload("other", "1.0")
    follower.index.is_listed = True
    with draining_in_place():
        crawl_full(follower.crawler)
    follower.index.is_listed = False
    follower.start("app")
    assert follower.depths() == {"app": 0, "library": 1}
    assert other in follower.names()


def test_rule_change_is_a_version_in_force_after_the_complete_serial(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    scope = follower.start("app").scope
    follower.set_rules("# the same rules\n")
    rules = '[[rule]]\nprojects = ["x"]\naccept = false'
    follower.set_rules(rules)
    follower.set_rules(rules)
    with sqlite_catalog.read() as connection:
        versions = [(stored.version, stored.from_serial) for stored in rulesets_of(connection, scope.id)]
        assert versions == [(1, scope.created_serial), (2, complete_serial(connection) + 1)]
        assert require_scope(connection, "mine").completed_at is None


def test_work_of_aborted_scope_is_kept_but_not_claimed(catalog: Catalog) -> None:
    follower = scoped(catalog)
    follower.index.upload("app", "1.0")
    scope = follower.create("app")
    with catalog.write() as connection:
        set_aborted(connection, scope, is_aborted=True)
    assert (follower.queued(f"scope:{scope.id}"), follower.queued(f"aborted:{scope.id}")) == (set(), {"app"})
    with pytest.raises(CatalogError, match=naming("mine", "scope resume mine")):
        follower.run()
    with catalog.write() as connection:
        set_aborted(connection, scope, is_aborted=False)
    assert follower.run().is_complete
    assert follower.names() == {"app-1.0-py3-none-any.whl"}


def test_project_shared_with_an_active_scope_is_not_paused(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    for name in ("one", "two", "four"):
        follower.index.upload(name, "1.0", "shared")
    file = follower.index.upload("shared", "1.0")
    first = follower.create("one", "shared", name="first")
    follower.start("two", name="second")
    with sqlite_catalog.write() as connection:
        set_aborted(connection, first, is_aborted=True)
    assert follower.run("second").is_complete
    assert file in follower.names()
    follower.create("four", name="fourth")
    with sqlite_catalog.write() as connection:
        set_aborted(connection, follower.scope("fourth"), is_aborted=True)
    follower.start("four", name="fifth")
    assert "four-1.0-py3-none-any.whl" in follower.names()


def test_scope_with_concurrency_0_is_paused(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    scope = follower.create("app", concurrency=0)
    with pytest.raises(CatalogError, match=naming("mine")):
        follower.run()
    with sqlite_catalog.write() as connection:
        change_scope(connection, scope, {"concurrency": 1})
    assert follower.run().is_complete


@pytest.mark.parametrize(
    ("tag", "match_only", "takers"),
    [
        (None, False, {"any", "fast", "slow"}),
        ("fast", False, {"any", "fast", "fast alone"}),
        ("fast", True, {"fast", "fast alone"}),
    ],
)
def test_tags_select_the_workers_of_a_scope(
    sqlite_catalog: Catalog, tag: str | None, match_only: bool, takers: set[str]
) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.create("app")
    scope = replace(follower.scope(), tag=tag, match_only=match_only)
    workers = {"any": (None, False), "fast": ("fast", False), "slow": ("slow", False), "fast alone": ("fast", True)}
    assert {name for name, (of, alone) in workers.items() if scope.is_for(of, is_match_only=alone)} == takers
