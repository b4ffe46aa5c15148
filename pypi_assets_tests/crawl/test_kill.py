"""Rule 7: kill -9 at any moment loses no committed data, and a new run ends in the same state."""

import signal

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.crawl.crawl_processes import crawl_process
from pypi_assets_tests.crawl.test_exactness import content
from pypi_assets_tests.crawl.test_trial import visited
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex, live


def kill_at(index: ServedIndex, catalog: Catalog, work: str, path: str, request_number: int) -> None:
    """Run the crawl in a separate process, and kill it at its `request_number`-th request for `path`."""
    process = crawl_process(index, catalog.engine.url.render_as_string(hide_password=False), work)
    with index.holding(path, request_number) as held:
        process.start()
        held.wait()
        process.kill()
        process.join(120)
        assert process.exitcode == -signal.SIGKILL


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("path", "request_number"), [("/simple/project", 3), ("/simple/project", 12), ("/packages/", 9)]
)
def test_killed_full_crawl_ends_in_the_same_state(
    index: ServedIndex, catalog: Catalog, tmp_path, path: str, request_number: int
):
    for number in range(12):
        index.wheel(f"project{number}", "1.0")
        index.sdist(f"project{number}", "1.0")
    kill_at(index, catalog, "full", path, request_number)
    undisturbed = open_catalog(sqlite_database(tmp_path / "undisturbed.sqlite"))
    for each in (catalog, undisturbed):
        crawl_full(index.crawler(each))
    assert content(catalog) == content(undisturbed)
    undisturbed.close()
    assert live(catalog) == index.shown()


@pytest.mark.nightly
@pytest.mark.parametrize(("path", "request_number"), [("/simple/", 1), ("/simple/project", 3), ("/packages/", 4)])
def test_killed_trial_has_the_same_projects_and_the_whole_is_exact(
    index: ServedIndex, catalog: Catalog, path: str, request_number: int
):
    for number in range(8):
        index.wheel(f"project{number}", "1.0")
    kill_at(index, catalog, "trial", path, request_number)
    if path != "/simple/":  # once the projects are chosen, later changes do not matter
        index.wheel("project0", "2.0")
    result = crawl_full(index.crawler(catalog), limit=5)
    assert (result.listing.projects, result.visits.done) == (5, 5)
    assert visited(catalog) == [f"project{number}" for number in range(3, 8)]
    crawl_full(index.crawler(catalog))
    crawl_incremental(index.crawler(catalog))
    assert live(catalog) == index.shown()


@pytest.mark.parametrize(("path", "request_number"), [("/pypi", 2), ("/simple/project", 3), ("/packages/", 4)])
def test_killed_range_ends_in_the_same_state(
    index: ServedIndex, catalog: Catalog, tmp_path, path: str, request_number: int
):
    for number in range(8):
        index.wheel(f"project{number}", "1.0")
    undisturbed = open_catalog(sqlite_database(tmp_path / "undisturbed.sqlite"))
    for each in (catalog, undisturbed):
        crawl_full(index.crawler(each))
    for number in range(8):
        index.sdist(f"project{number}", "1.0")
    index.history.remove_project("project3")
    index.history.yank("project4", "1.0")
    kill_at(index, catalog, "incremental", path, request_number)
    for each in (catalog, undisturbed):
        crawl_incremental(index.crawler(each))
    assert content(catalog) == content(undisturbed)
    undisturbed.close()
    assert live(catalog) == index.shown()
