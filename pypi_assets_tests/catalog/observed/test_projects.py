"""Projects are found by their names."""

from pathlib import Path

import pytest
from sqlalchemy import select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.observed.events import store_earlier_events, store_events
from pypi_assets.catalog.observed.projects import (
    QUARANTINED,
    Selection,
    ShownName,
    enter_projects,
    project_ids,
    rename_projects,
)
from pypi_assets.catalog.publications.dump_rows import project_rows_at
from pypi_assets.catalog.reports.past_pages import page_at
from pypi_assets.catalog.tables import catalog_state, projects
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.index.models import ChangelogEvent, ListedProject
from pypi_assets_tests.crawl.followers import Follower, SilentIndex, add
from pypi_assets_tests.crawl.test_second_crawl import dumped, dumped_next
from pypi_assets_tests.served_index import ServedIndex, logged_changes, served_index


def test_ids_are_found_for_many_names_in_any_spelling(catalog: Catalog):
    odd = ["ü-\U0001f40d", 'quoted-"-and-\\', "[1]", "null", "1", "a\nb", "{}", "'"]
    many = [f"project{number}" for number in range(3_000)]
    with catalog.write() as connection:
        enter_projects(connection, [(name, 0) for name in odd + many])
        found = project_ids(connection, [*many, *odd, "unknown"])
        named = {name: id_ for name, id_ in connection.execute(select(projects.c.normalized, projects.c.id))}
    assert found == named
    assert len(found) == len(odd) + len(many)


def event(serial: int, name: str) -> ChangelogEvent:
    return ChangelogEvent(name, None, 0, "docupdate", serial)


def name_of(catalog: Catalog) -> str | None:
    with catalog.read() as connection:
        return connection.scalar(select(projects.c.name).where(projects.c.normalized == "demo-x"))


def test_name_comes_from_the_newest_event_in_any_storage_order(opened: Catalog):
    with opened.write() as connection:
        store_events(connection, [event(11, "demo.x"), event(13, "Demo.X")], 10, 14)
    assert name_of(opened) == "Demo.X"
    with opened.write() as connection:
        store_events(connection, [event(11, "demo.x")], 10, 12)  # stored by another process
    assert name_of(opened) == "Demo.X"
    with opened.write() as connection:
        store_events(connection, [event(15, "DEMO_x"), event(16, "demo-x")], 14, 16)
    assert name_of(opened) == "demo-x"
    store_earlier_events(opened, [event(3, "old_X")], 0, 10, Selection())
    assert name_of(opened) == "demo-x"
    with opened.write() as connection:
        assert rename_projects(connection, [ShownName("Demo_X", 15)]) == {}
        assert list(rename_projects(connection, [ShownName("Demo_X", 16), ShownName("demo_X", 15)]).values()) == [16]
        connection.execute(update(catalog_state).values(events_through=30))
        assert list(rename_projects(connection, [ShownName("demo.x", 20), ShownName("unknown", 20)]).values()) == [20]
        assert rename_projects(connection, [ShownName("Demo.x", 19)]) == {}
    assert name_of(opened) == "demo.x"


def test_live_files_are_dumped_again_after_a_rename(catalog: Catalog, tmp_path: Path):
    with served_index(tmp_path / "served") as index:
        old = index.wheel("demo.x", "1.0")
        gone = index.wheel("demo.x", "1.1")
        index.wheel("two", "1.0")
        index.history.remove_file(gone)
        crawl_full(index.crawler(catalog))
        assert dumped(catalog)[old]["project"] == "demo.x"
        new = index.wheel("Demo-X", "2.0")
        rows = dumped_next(index, catalog)
    assert {name: row["project"] for name, row in rows.items() if name in {old, new, gone}} == {
        old: "Demo-X",
        new: "Demo-X",
    }
    assert name_of(catalog) == "Demo-X"


@pytest.mark.nightly
@pytest.mark.parametrize("crawl", [crawl_full, lambda crawler: audit_index(crawler, 0.0)])
def test_list_names_a_project_without_newer_event(catalog: Catalog, crawl):
    follower = Follower(SilentIndex(), catalog)
    add(follower.index, "demo-x")
    crawl_full(follower.crawler)
    serial = follower.index.serial
    for listed, expected in ((serial - 1, "demo-x"), (serial, "Demo.X")):
        follower.index.listing = (serial, [ListedProject("Demo.X", listed)])
        crawl(follower.crawler)
        assert name_of(catalog) == expected
    follower.index.listing = None
    add(follower.index, "demo-x", "2.0")
    crawl_incremental(follower.crawler)
    assert name_of(catalog) == "demo-x"


def statuses(catalog: Catalog, serial: int, project: str) -> set[object]:
    return {row["project_status"] for row in project_rows_at(catalog, serial, project)}


def epoch(catalog: Catalog, serial: int) -> int:
    with catalog.read() as connection:
        return epoch_of(connection, serial)


@pytest.mark.nightly
def test_status_without_event_is_published_with_all_files(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("demo", "1.0")
    index.wheel("demo", "2.0")
    index.wheel("other", "1.0")
    crawl_full(index.crawler(catalog))
    first = index.serial
    assert statuses(catalog, first, "demo") == {"active"}
    index.history.archive("demo")
    index.history.yank("demo", "1.0")
    crawl_incremental(index.crawler(catalog))
    second = index.serial
    assert statuses(catalog, second, "demo") == {"archived"}
    assert statuses(catalog, second, "other") == {"active"}
    corrected = [change for change in logged_changes(catalog, "demo") if change[2] == "corrected"]
    assert sorted(name for name, *_ in corrected) == ["demo-1.0-py3-none-any.whl", "demo-2.0-py3-none-any.whl"]
    assert {serial for _, serial, _ in corrected} == {second}
    assert epoch(catalog, first) == first

    index.history.unarchive("demo")
    crawl_full(index.crawler(catalog))
    assert statuses(catalog, second, "demo") == {"active"}
    assert epoch(catalog, second) > second
    assert epoch(catalog, first) == first
    before = logged_changes(catalog, "demo")
    crawl_full(index.crawler(catalog))
    assert logged_changes(catalog, "demo") == before


def test_files_live_before_quarantine_have_no_past_status(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("demo", "1.0")
    crawl_full(index.crawler(catalog))
    first = index.serial
    index.history.quarantine("demo")
    crawl_incremental(index.crawler(catalog))
    assert statuses(catalog, first, "demo") == {None}
    assert statuses(catalog, index.serial, "demo") == set()
    page = page_at(catalog, index.serial, "demo")
    assert page is not None
    assert (page.status, page.files) == (QUARANTINED, ())
