"""Rules exclude files from reading: excluded files are recorded as skipped, add no edges, and are read once the rule is
gone.
"""

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import project_ids
from pypi_assets.catalog.reports.catalog_status import count_differences
from pypi_assets.catalog.scopes.reading_rules import apply_rules, projects_to_rule, reading_rules
from pypi_assets.catalog.tables import distribution_data, read_attempts, visits
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.scoped_index import SDIST, ScopedFollower, scoped

NO_SDISTS = '[[rule]]\nkinds = ["sdist"]\nskip = true'


def require_right_counts(follower: ScopedFollower) -> None:
    with follower.catalog.read() as connection:
        assert not count_differences(connection)


def skipped(follower: ScopedFollower) -> set[str]:
    return {name for name, outcome in follower.outcomes().items() if outcome == "skipped"}


def test_skipped_files_add_no_edges_and_are_read_without_the_rule(catalog: Catalog) -> None:
    follower = scoped(catalog)
    wheel = follower.index.upload("app", "1.0", "one")
    sdist = follower.index.upload("app", "1.0", "two", ending=SDIST)
    follower.start("app", rules=NO_SDISTS)
    assert follower.outcomes() == {wheel: "data", sdist: "skipped"}
    with catalog.read() as connection:
        reason = connection.scalar(
            select(distribution_data.c.error_text).where(distribution_data.c.outcome == "skipped")
        )
    assert mentions(reason, "rule 1")
    assert not any(url.endswith(sdist) for url in follower.index.fetched)
    assert sdist in follower.names()
    require_right_counts(follower)
    follower.set_rules("")
    assert follower.run().reads.data == 1
    assert (skipped(follower), set(follower.depths())) == (set(), {"app", "one", "two"})
    require_right_counts(follower)


def test_file_of_a_range_is_skipped_too(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.start("app", rules=NO_SDISTS)
    sdist = follower.index.upload("app", "2.0", "two", ending=SDIST)
    follower.crawl()
    assert (skipped(follower), set(follower.depths())) == ({sdist}, {"app"})
    require_right_counts(follower)


def test_only_newest_files_are_read_until_the_rule_is_gone(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    files = [follower.index.upload("app", f"{number}.0") for number in range(1, 6)]
    follower.start("app", rules="[[rule]]\nmax_files = 2")
    assert len(skipped(follower)) == 3
    follower.set_rules("[[rule]]\nmax_files = 4")
    follower.run()
    assert len(skipped(follower)) == 1
    follower.set_rules("")
    follower.run()
    assert set(follower.outcomes().items()) == {(name, "data") for name in files}


def test_new_rule_skips_pending_files(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    sdist = follower.index.upload("app", "1.0", "two", ending=SDIST)
    follower.index.unreadable.add(sdist)
    follower.index.upload("app", "1.0", "one")
    follower.start("app")
    assert follower.outcomes()[sdist] == "gave up"
    follower.set_rules(NO_SDISTS)
    follower.run()
    assert set(follower.depths()) == {"app", "one"}
    with sqlite_catalog.write() as connection:
        app = project_ids(connection, ["app"])["app"]
        assert projects_to_rule(connection, 1) == []
        apply_rules(connection, [app, 999])
    assert follower.outcomes()[sdist] == "gave up"


def test_file_is_skipped_only_if_all_scopes_skip_it(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "shared")
    sdist = follower.index.upload("shared", "1.0", "needed", ending=SDIST)
    follower.start("app", name="strict", rules=NO_SDISTS)
    assert skipped(follower) == {sdist}
    follower.start("shared", name="lax")
    assert skipped(follower) == set()
    assert follower.depths("lax") == {"shared": 0, "needed": 1}
    require_right_counts(follower)


def test_visits_and_reads_record_the_rulesets_in_force(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.start("app")
    follower.set_rules(NO_SDISTS)
    follower.run()
    follower.create("app", name="second")
    follower.index.upload("app", "2.0")
    follower.crawl()
    for table in (visits, read_attempts):
        with sqlite_catalog.read() as connection:
            recorded = list(connection.scalars(select(table.c.rulesets).order_by(table.c.id)))
        assert recorded == ["1:1", "1:2,2:1"], table.name


def test_scope_with_lowest_nice_value_decides_the_order(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0")
    follower.start("app", name="late", nice=50)
    follower.start("app", name="early", nice=-7, rules='[[rule]]\nprojects = ["a*"]\nnice = 3')
    with sqlite_catalog.read() as connection:
        [rules] = reading_rules(connection, project_ids(connection, ["app"]).values()).values()
    assert rules.nice == -4
    assert rules.skips
