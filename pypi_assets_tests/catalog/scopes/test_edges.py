"""Edges between projects: which project requires which, between which serials, according to the rules of a scope."""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import project_ids
from pypi_assets.catalog.scopes.edges import load_edges, required_with
from pypi_assets.scopes.closure import OPEN_END
from pypi_assets_tests.scoped_index import SDIST, ScopedFollower, scoped


def edges(follower: ScopedFollower, project: str) -> dict[str, tuple[tuple[int, int | None], ...]]:
    """Return the stored edges of a project: required projects with spans of serials. The last span may have no end."""
    with follower.catalog.read() as connection:
        of_scope = load_edges(connection, follower.scope().id)
        found = of_scope.get(project_ids(connection, [project])[project], {})
    return {
        name: tuple((start, None if end == OPEN_END else end) for start, end in spans) for name, spans in found.items()
    }


def test_edge_holds_while_a_file_of_the_newest_release_requires_it(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    index = follower.index
    index.upload("app", "1.0", "one")
    created = follower.start("app").scope.created_serial
    index.upload("app", "2.0rc1", "three")
    index.upload("app", "2.0", "two")
    second = index.serial
    follower.crawl()
    index.do("yank", "app", "2.0")
    yanked = index.serial
    index.do("unyank", "app", "2.0")
    unyanked = index.serial
    index.do("remove-release", "app", "2.0")
    follower.crawl()
    assert edges(follower, "app") == {
        "one": ((created, second), (yanked, unyanked), (index.serial, None)),
        "two": ((second, yanked), (unyanked, index.serial)),
    }


def test_edges_of_release_files_are_merged_and_unrequested_extras_are_ignored(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "one>=2", "tool ; extra == 'dev'", "win ; sys_platform == 'win32'")
    follower.index.upload("app", "1.0", "One [extra]", "two", "not a requirement !", ending=SDIST)
    follower.start("app")
    assert set(edges(follower, "app")) == {"one", "two", "win"}


@pytest.mark.nightly
def test_rules_widen_the_followed_edges(catalog: Catalog) -> None:
    follower = scoped(catalog)
    follower.index.upload("app", "1.0", "old")
    follower.index.upload("app", "2.0", "new", "tool ; extra == 'dev'")
    follower.index.upload("app", "2.0", "build", ending=SDIST)
    follower.start("app", rules='requirements = { kinds = ["wheel"] }')
    assert set(follower.depths()) == {"app", "new"}
    before = follower.complete
    follower.set_rules('requirements = { releases = "all", extras = true }')
    follower.run()
    assert set(follower.depths()) == {"app", "new", "old", "tool", "build"}
    assert edges(follower, "app")["old"] == ((before + 1, None),)
    assert edges(follower, "app")["new"] == ((follower.scope().created_serial, None),)


def test_only_extras_of_roots_are_followed(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload(
        "app", "1.0", "one ; extra == 'first'", "app[second] ; extra == 'all'", "two ; extra == 'second'"
    )
    follower.index.upload("two", "1.0", "three ; extra == 'second'")
    follower.start("app[all]")
    assert set(follower.depths()) == {"app", "two"}


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        (["one"], {"a"}),
        (["ONE"], {"a"}),
        (["both"], {"a", "b", "app"}),
        (["loop"], {"app"}),
        (["spelled_oddly"], {"c"}),
        (["none"], set()),
    ],
)
def test_root_extras_lead_to_their_requirements(extras: list[str], expected: set[str]) -> None:
    requirements = [
        "a ; extra == 'one'",
        'b ; python_version < "4" and extra == "two"',
        "app[one,two] ; extra == 'both'",
        "app[loop] ; extra == 'loop'",
        "c ; 'Spelled.Oddly' == extra",
        "always",
    ]
    assert required_with(requirements, extras) == expected


def test_extra_requirements_count_from_the_rules_that_follow_extras(sqlite_catalog: Catalog) -> None:
    follower = scoped(sqlite_catalog)
    follower.index.upload("app", "1.0", "one", "tool ; extra == 'dev'")
    created = follower.start("app").scope.created_serial
    follower.set_rules("requirements = { extras = true }")
    follower.run()
    assert edges(follower, "app") == {"one": ((created, None),), "tool": ((created + 1, None),)}
    assert follower.members()["tool"][2] == created + 1
