"""Changes without an event: a later full crawl or visit finds them, and the next dumps publish them."""

import json

import pytest
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_registry import (
    full_dump_rows,
    open_full_dump,
    open_range_dump,
    range_dump_rows,
)
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.range_states import count_unexplained
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.served_index import ServedIndex, live, logged_changes


def change_page(index: ServedIndex, project: str, **changes: object) -> None:
    """Change the page of `project` at its current serial: `changes` apply to its files, and None hides a file."""
    page = json.loads(index.page(project))
    changed = [(file, changes.get(file["filename"], {})) for file in page["files"]]
    page["files"] = [file | change for file, change in changed if change is not None]
    index.serve_page(project, json.dumps(page).encode())


def dumped(catalog: Catalog) -> dict[str, dict[str, object]]:
    """Return the rows of a new full dump, by filename."""
    dump = open_full_dump(catalog, 1)
    return {str(row["filename"]): row for row in map(as_dumped, full_dump_rows(catalog, dump, 0))}


def dumped_next(index: ServedIndex, catalog: Catalog) -> dict[str, dict[str, object]]:
    """Follow the index over one more event, and return the rows of the dump of that range, by filename."""
    index.wheel("unrelated", f"1.{index.serial}")
    [result] = crawl_incremental(index.crawler(catalog))
    return {
        str(row["filename"]): row
        for row in map(as_dumped, range_dump_rows(catalog, open_range_dump(catalog, result.serials)))
    }


def test_file_that_vanishes_without_event_is_removed_in_the_next_dump(index: ServedIndex, catalog: Catalog):
    kept, gone = index.wheel("one", "1.0"), index.wheel("one", "2.0")
    index.wheel("two", "1.0")
    crawl_full(index.crawler(catalog))
    assert gone in dumped(catalog)
    change_page(index, "one", **{gone: None})
    crawl_full(index.crawler(catalog))
    assert {name for name, _ in live(catalog)} == {kept, "two-1.0-py3-none-any.whl"}
    assert dumped_next(index, catalog)[gone]["tombstone"]


def test_page_older_than_a_seen_one_does_not_change_the_present(index: ServedIndex, catalog: Catalog):
    """This holds even if no event between the two is stored and no newer page comes before the deadline."""
    index.wheel("one", "1.0")
    index.wheel("one", "2.0")
    old = index.page("one")
    index.history.yank("one", "2.0")
    index.wheel("one", "3.0")
    crawl_full(index.crawler(catalog))
    before = live(catalog)
    index.serve_page("one", old)
    result = crawl_full(index.crawler(catalog))
    assert result.visits.exhausted == 1
    assert live(catalog) == before == index.shown()
    with catalog.read() as connection:
        assert count_unexplained(connection) == 0


@pytest.mark.nightly
def test_only_the_newest_page_counts_before_the_events(index: ServedIndex, catalog: Catalog):
    """An old page shows a yanked release that was removed since. A later file of the same version is not yanked."""
    index.wheel("one", "1.0")
    index.wheel("one", "2.0")
    index.history.yank("one", "2.0")
    old = index.page("one")
    index.history.remove_release("one", "2.0")
    crawl_full(index.crawler(catalog))
    index.serve_page("one", old)
    assert crawl_full(index.crawler(catalog)).visits.exhausted == 1
    index.faults = None
    index.sdist("one", "2.0")
    crawl_incremental(index.crawler(catalog))
    assert live(catalog) == index.shown()
    with catalog.read() as connection:
        assert count_unexplained(connection) == 0


@pytest.mark.nightly
def test_change_without_event_counts_from_where_it_was_seen(index: ServedIndex, catalog: Catalog):
    """The files that an earlier crawl saw at the project's same serial stay true of earlier serials."""
    gone = index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    index.wheel("two", "1.0")
    crawl_incremental(index.crawler(catalog))
    seen_live = index.serial
    index.wheel("two", "2.0")
    change_page(index, "one", **{gone: None})
    crawl_full(index.crawler(catalog))
    crawl_incremental(index.crawler(catalog))
    assert (gone, False) in live(catalog, seen_live)
    assert (gone, False) not in live(catalog)
    assert logged_changes(catalog, "one")[-1] == (gone, index.serial, UNEXPLAINED)
    assert catalog_status(catalog).unexplained_changes == 1
    with catalog.read() as connection:
        assert count_unexplained(connection, SerialRange(seen_live, index.serial)) == 1
        assert count_unexplained(connection, SerialRange(0, seen_live)) == 0
    index.faults = None
    index.wheel("two", "3.0")
    crawl_full(index.crawler(catalog))
    crawl_incremental(index.crawler(catalog))
    assert live(catalog) == index.shown()


@pytest.mark.nightly
def test_wrongly_believed_404_is_corrected_by_the_next_page(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    crawl_full(index.crawler(catalog))
    dumped(catalog)
    before = live(catalog)
    index.faults = lambda request: PlainTextResponse("", 404) if "/simple/one/" in request.url.path else None
    crawl_full(index.crawler(catalog))
    assert wheel not in {name for name, _ in live(catalog, index.serial)}
    assert dumped_next(index, catalog)[wheel]["tombstone"]
    index.faults = None
    crawl_full(index.crawler(catalog))
    assert before <= live(catalog)
    row = dumped_next(index, catalog)[wheel]
    assert not row["tombstone"]


@pytest.mark.nightly
@pytest.mark.parametrize("column", ["requires-python", "url"])
def test_new_page_facts_of_a_file_are_in_the_next_dump(index: ServedIndex, catalog: Catalog, column: str):
    wheel, other = index.wheel("one", "1.0"), index.wheel("one", "2.0")
    crawl_full(index.crawler(catalog))
    assert wheel in dumped(catalog)
    value = {"requires-python": ">=3.12", "url": f"{index.url}elsewhere/{wheel}"}[column]
    change_page(index, "one", **{wheel: {column: value}})
    crawl_full(index.crawler(catalog))
    rows = dumped_next(index, catalog)
    assert rows[wheel][column.replace("-", "_")] == value
    assert other not in rows


def test_second_full_crawl_of_unchanged_index_changes_nothing(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.history.yank("one", "1.0")
    crawl_full(index.crawler(catalog))
    dumped(catalog)
    before = live(catalog)
    crawl_full(index.crawler(catalog))
    assert live(catalog) == before
    assert {name.split("-")[0] for name in dumped_next(index, catalog)} == {"unrelated"}


def test_texts_of_any_length_and_characters_are_stored(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0", metadata=f"Metadata-Version: {'2' * 100}\nName: one\nVersion: 1.0\n")
    change_page(
        index,
        "one",
        **{
            wheel: {
                "yanked": "bad\0reason",
                "requires-python": ">=3\0",
                "upload-time": f"2026-01-01T00:00:00.{'0' * 100}Z",
            }
        },
    )
    result = crawl_full(index.crawler(catalog))
    assert result.reads.data + result.reads.errors == 1
    assert live(catalog) == {(wheel, True)}


@pytest.mark.nightly
def test_index_empty_at_the_first_full_crawl_is_followed(index: ServedIndex, catalog: Catalog):
    crawl_full(index.crawler(catalog))
    with catalog.read() as connection:
        assert complete_serial(connection) == 0
    assert crawl_incremental(index.crawler(catalog)) == []
    index.wheel("one", "1.0")
    [result] = crawl_incremental(index.crawler(catalog))
    assert result.serials.start == 0
    assert live(catalog) == index.shown()
    assert set(dumped(catalog)) == {name for name, _ in index.shown()}
    index.history.remove_project("one")
    index.wheel("two", "1.0")
    crawl_full(index.crawler(catalog))
    crawl_incremental(index.crawler(catalog))
    assert live(catalog) == index.shown()


def test_projects_missing_from_the_first_list_are_found(index: ServedIndex, catalog: Catalog):
    """A quarantined project is not listed: its files come with the event that clears it."""
    index.wheel("one", "1.0")
    index.wheel("hidden", "1.0")
    index.history.yank("hidden", "1.0")
    index.wheel("hidden", "2.0")
    index.history.quarantine("hidden")
    crawl_full(index.crawler(catalog))
    assert live(catalog) == index.shown()
    assert len(dumped(catalog)) == 1
    index.history.unquarantine("hidden")
    crawl_full(index.crawler(catalog))
    crawl_incremental(index.crawler(catalog))
    assert live(catalog) == index.shown()
    with catalog.read() as connection:
        at = complete_serial(connection)
    assert len(live(catalog, at)) == 3
