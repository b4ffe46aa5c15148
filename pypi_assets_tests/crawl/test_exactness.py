"""Rules 2 and 3 from end to end: the catalog equals the index at each complete serial, in any order of work."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC, allocate_range, complete_serial, ledger
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.moments import InexactSerialError, answerable_serial
from pypi_assets.catalog.tables import distribution_data, distributions, live_intervals, yanked_intervals
from pypi_assets.crawl.full_crawl import crawl_full, list_index, read_shards, visit_shards
from pypi_assets.crawl.incremental_crawl import crawl_incremental, crawl_range, open_ranges
from pypi_assets.index.client import IndexClient
from pypi_assets.index.models import ChangelogRow, NotModified, ProjectPage
from pypi_assets_tests.crawl.drawn_changes import PROJECTS, changes, do
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.kept_counts import require_right_counts
from pypi_assets_tests.served_index import ServedIndex, live, served_index


def content(catalog: Catalog) -> dict[str, object]:
    """Return everything the catalog has about distributions, without row ids."""
    with catalog.read() as connection:
        names = {row.id: row.filename for row in connection.execute(select(distributions))}
        return {
            "files": {
                row.filename: (row.kind, row.url, row.sha256, row.size, row.requires_python)
                for row in connection.execute(select(distributions))
            },
            "live": {
                (names[row.distribution_id], row.start, row.end) for row in connection.execute(select(live_intervals))
            },
            "yanked": {
                (names[row.distribution_id], row.start, row.end) for row in connection.execute(select(yanked_intervals))
            },
            "outcomes": {
                names[row.distribution_id]: row.outcome for row in connection.execute(select(distribution_data))
            },
        }


@pytest.mark.nightly
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.too_slow])
@given(batches=st.lists(st.lists(changes, min_size=1, max_size=8), min_size=2, max_size=5), data=st.data())
def test_catalog_equals_the_index_at_each_complete_serial_in_any_order(batches, data):
    with tempfile.TemporaryDirectory() as folder, served_index(Path(folder)) as index:
        for change in batches[0]:
            if not change[0].startswith(
                "quarantine"
            ):  # files added during a quarantine and removed before a visit stay unknown
                do(index, *change)
        followed, later = (open_catalog(sqlite_database(Path(folder, name))) for name in ("followed", "later"))
        crawl_full(index.crawler(followed))
        crawl_full(index.crawler(later))
        shown = {index.serial: index.shown()}
        for batch in batches[1:]:
            for change in batch:
                do(index, *change)
            shown[index.serial] = index.shown()
            crawl_incremental(index.crawler(followed))
            with later.write() as connection:
                allocate_range(connection, index.serial, 0.0)
            assert live(followed) == index.shown()
        for serial, expected in shown.items():
            assert live(followed, serial) == expected

        ranges = open_ranges(index.crawler(later))
        order = data.draw(st.permutations([*ranges, *ranges]), label="order of ranges, each of them twice")
        for serials in order:
            crawl_range(index.crawler(later), serials)
        for serial, expected in shown.items():
            assert live(later, serial) == expected
        last, first = content(later), content(followed)
        assert last["live"] == first["live"]
        assert last["yanked"] == first["yanked"]
        for catalog in (followed, later):
            require_right_counts(catalog)
        followed.close()
        later.close()


@pytest.mark.nightly
@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.too_slow])
@given(batches=st.lists(st.lists(changes, min_size=1, max_size=8), min_size=2, max_size=5))
def test_catalog_equals_the_index_at_the_serial_of_each_list(batches):
    """Without the changelog, the serials between two lists have no answer."""
    with tempfile.TemporaryDirectory() as folder, served_index(Path(folder)) as index:
        catalog = open_catalog(sqlite_database(Path(folder, "listed")))
        crawler = index.crawler(catalog, lister=SIMPLE)
        index.faults = lambda request: PlainTextResponse("", 404) if request.url.path == "/pypi" else None
        shown = {}
        for number, batch in enumerate(batches):
            for change in batch:
                do(index, *change)
            shown[index.serial] = index.shown()
            crawl_incremental(crawler) if number else crawl_full(crawler)
            assert live(catalog) == index.shown()
        for serial in range(min(shown), index.serial + 1):
            if serial in shown:
                assert live(catalog, answerable_serial(catalog, serial)) == shown[serial]
            else:
                with pytest.raises(InexactSerialError):
                    answerable_serial(catalog, serial)
        require_right_counts(catalog)
        catalog.close()


@pytest.mark.nightly
@pytest.mark.parametrize("lister", [XMLRPC, SIMPLE])
def test_range_with_every_kind_of_event_is_exact(index: ServedIndex, catalog: Catalog, lister: str):
    for name in ("one", "two", "three", "four", "five", "six"):
        index.wheel(name, "1.0")
        index.sdist(name, "1.0")
        index.wheel(name, "2.0")
    crawler = index.crawler(catalog, lister=lister)
    crawl_full(crawler)
    assert live(catalog) == index.shown()
    baseline, before = index.serial, index.shown()
    history = index.history
    history.remove_file("one-1.0.tar.gz")
    history.remove_release("two", "1.0")
    history.remove_project("three")
    history.quarantine("four")
    history.quarantine_release("five", "2.0")
    history.yank("six", "1.0", "broken")
    index.wheel("seven", "0.1")
    index.sdist("one", "3.0")
    [result] = crawl_incremental(crawler)
    assert result.events.unknown == 0
    assert live(catalog) == index.shown()
    assert live(catalog, baseline) == before
    history.unquarantine("four")
    history.unquarantine_release("five", "2.0")
    history.unyank("six", "1.0")
    index.wheel("three", "9.0")
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()


def test_full_crawl_corrects_but_keeps_the_complete_serial(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    with catalog.read() as connection:
        before = complete_serial(connection)
    index.wheel("two", "1.0")
    crawl_full(crawler)
    with catalog.read() as connection:
        assert complete_serial(connection) == before
        assert [entry.serials.key for entry in ledger(connection)] == [f"0-{before}"]
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()


def test_pages_newer_than_the_pinned_serial_are_exact_later(index: ServedIndex, catalog: Catalog):
    """The index changes during a full crawl: the pages seen are exact from the first complete serial that includes
    them.
    """
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    pinned = index.serial
    moved = []

    def move(request):
        if request.url.path.startswith("/simple/two") and not moved:
            moved.append(True)
            index.wheel("two", "2.0")
            index.history.yank("two", "1.0")

    index.faults = move
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    assert moved
    with catalog.read() as connection:
        assert complete_serial(connection) == pinned
    assert live(catalog, pinned) == {("one-1.0-py3-none-any.whl", False), ("two-1.0-py3-none-any.whl", False)}
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()


class SlowChangelog:
    """An index whose pages show changes before the changelog, and before the pages' own serials."""

    def __init__(self, index: IndexClient, through: int) -> None:
        self._index, self.through = index, through

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def last_serial(self) -> int:
        return min(self.through, self._index.last_serial())

    def changelog_page(self, since: int) -> list[ChangelogRow]:
        return [row for row in self._index.changelog_page(since) if row.serial is None or row.serial <= self.through]

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogRow]]:
        for rows in self._index.changelog(since, min(until, self.through)):
            yield [row for row in rows if row.serial is None or row.serial <= self.through]

    def project_page(self, project: str) -> ProjectPage | NotModified:
        page = self._index.project_page(project)
        assert isinstance(page, ProjectPage)
        return replace(page, last_serial=min(page.last_serial, self.through))


@pytest.mark.parametrize("change", ["add", "yank", "remove"])
def test_event_replaces_the_change_that_a_page_showed_early(index: ServedIndex, catalog: Catalog, change: str):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    index.wheel("one", "2.0")
    slow = SlowChangelog(index.client(), index.serial)
    crawler = index.crawler(catalog, index=slow)
    before = index.shown()
    if change == "add":
        index.sdist("one", "2.0")
    elif change == "yank":
        index.history.yank("one", "1.0")
    else:
        index.history.remove_release("one", "1.0")
    crawl_incremental(crawler)
    assert live(catalog, slow.through) == live(catalog) == index.shown()
    assert catalog_status(catalog).unexplained_changes == 1
    early, slow.through = slow.through, index.serial
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()
    for serial in range(early, index.serial):
        assert live(catalog, serial) == before
    assert catalog_status(catalog).unexplained_changes == 0


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_reregistered_name_keeps_its_earlier_history(index: ServedIndex, catalog: Catalog, kind: str):
    getattr(index, kind)("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    first = index.serial
    index.history.remove_project("one")
    crawl_incremental(crawler)
    assert live(catalog) == set()
    getattr(index, kind)("ONE", "2.0")
    crawl_incremental(crawler)
    assert live(catalog) == index.shown() != live(catalog, first)


@pytest.mark.nightly
def test_parallel_ranges_of_the_same_projects_are_exact(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    for name in PROJECTS:
        index.wheel(name, "1.0")
    alone = open_catalog(sqlite_database(tmp_path / "alone.sqlite"))
    for each in (catalog, alone):
        crawl_full(index.crawler(each))
    shown = {}
    for version in ("2.0", "3.0", "4.0", "5.0"):
        for name in PROJECTS:
            index.wheel(name, version)
            index.sdist(name, version)
        index.history.remove_release("Alpha", version)
        index.history.yank("beta.pkg", version)
        shown[index.serial] = index.shown()
        for each in (catalog, alone):
            with each.write() as connection:
                allocate_range(connection, index.serial, 0.0)
    ranges = open_ranges(index.crawler(catalog))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda serials: crawl_range(index.crawler(catalog), serials), [*ranges, *reversed(ranges)]))
    crawl_incremental(index.crawler(alone))
    assert content(catalog) == content(alone)
    for serial, expected in shown.items():
        assert live(catalog, serial) == expected
    alone.close()


def test_parallel_shards_of_one_full_crawl_are_exact(index: ServedIndex, catalog: Catalog):
    for number in range(20):
        index.wheel(f"project{number}", "1.0")
        index.sdist(f"project{number}", "1.0")
    crawl, _ = list_index(index.crawler(catalog))

    def work(shards: range) -> None:
        crawler = index.crawler(catalog)
        visit_shards(crawler, crawl, shards)
        read_shards(crawler, crawl, shards)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, [range(300), range(300, 700), range(700, 1_000)]))
    status = catalog_status(catalog)
    assert (status.complete_serial, status.outcomes["data"]) == (index.serial, 40)
    assert live(catalog) == index.shown()
