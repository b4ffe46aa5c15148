"""States of listers: concurrent runs do not overwrite each other's saved state."""

from collections.abc import Mapping
from threading import Barrier, Thread
from typing import Any

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.index_state import (
    ChangelogTrouble,
    Content,
    ListerState,
    OvertakenError,
    changelog_trouble,
    count_broken_rows,
    count_kept_aside,
    first_file_urls,
    forget_rows,
    keep_rows,
    kept_aside,
    kept_rows,
    known_file_origin,
    last_listed,
    read_lister_state,
    replace_list,
    replace_pages,
    save_lister_state,
    store_file_origin,
)
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.tables import distributions, projects, releases, visits
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.index.models import BrokenEntry
from pypi_assets_tests.catalog.ended_visits import enter

INDEX = "https://index.example.org/simple/"


def greatest(stored: Content, new: Content) -> Content:
    return stored if stored["serial"] > new["serial"] else new


def refuse(_stored: Content, _new: Content) -> Content:
    raise OvertakenError("another run went on")


def save(catalog: Catalog, known: ListerState, content: Mapping[str, Any], reconcile=refuse) -> ListerState:
    with catalog.write() as connection:
        return save_lister_state(connection, known, content, 5.0, reconcile)


def read(catalog: Catalog, instance: str = INDEX) -> ListerState:
    with catalog.read() as connection:
        return read_lister_state(connection, SIMPLE, instance)


def test_state_round_trips_and_is_separate_per_index(catalog: Catalog):
    assert read(catalog) == ListerState(SIMPLE, INDEX, {})
    first = save(catalog, read(catalog), {"serial": 7, "seen": ["a", None, 1.5]})
    assert read(catalog) == first
    assert (first.revision, first.updated_at) == (1, 5.0)
    assert save(catalog, first, {"serial": 8}).revision == 2
    assert read(catalog, "https://other.example.org/") == ListerState(SIMPLE, "https://other.example.org/", {})
    with catalog.read() as connection:
        assert last_listed(connection, INDEX) == (8, None)


def test_different_states_of_two_runs_are_reconciled(catalog: Catalog):
    before = save(catalog, read(catalog), {"serial": 1})
    save(catalog, before, {"serial": 9})
    with pytest.raises(OvertakenError):
        save(catalog, before, {"serial": 5})
    assert read(catalog).content == {"serial": 9}
    assert save(catalog, before, {"serial": 5}, greatest).content == {"serial": 9}
    assert save(catalog, before, {"serial": 12}, greatest).content == {"serial": 12}
    assert read(catalog).revision == 4


def test_saving_an_unchanged_state_causes_no_conflict(catalog: Catalog):
    before = save(catalog, read(catalog), {"serial": 1})
    save(catalog, before, {"serial": 1})
    assert save(catalog, before, {"serial": 2}).content == {"serial": 2}


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        ({}, None),
        ({"failing_since": 5.0, "error": "503"}, ChangelogTrouble(5.0, False, "503")),
        ({"failing_since": 5.0, "off_since": 9.0, "error": "gone"}, ChangelogTrouble(5.0, True, "gone")),
    ],
)
def test_changelog_failure_counts_from_the_first_one(
    catalog: Catalog, content: Content, trouble: ChangelogTrouble | None
):
    with catalog.write() as connection:
        save_lister_state(connection, ListerState(XMLRPC, INDEX, {}), content, 10.0, refuse)
        assert changelog_trouble(connection, INDEX) == trouble


def opened(catalog: Catalog) -> None:
    open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())


def test_file_origin_is_unknown_before_the_first_crawl(catalog: Catalog) -> None:
    with catalog.write() as connection:
        assert not store_file_origin(connection, "https://files.example.org")
        assert known_file_origin(connection) is None
        assert first_file_urls(connection, 20) == []


def test_first_file_origin_stays(catalog: Catalog) -> None:
    opened(catalog)
    with catalog.write() as connection:
        assert known_file_origin(connection) is None
        assert store_file_origin(connection, "")
        assert not store_file_origin(connection, "https://files.example.org")
        assert known_file_origin(connection) == ""


def test_one_of_concurrent_writers_stores_the_file_origin(catalog: Catalog) -> None:
    opened(catalog)
    barrier, stored = Barrier(6), list[str]()

    def store(origin: str) -> None:
        barrier.wait()
        with catalog.write() as connection:
            if store_file_origin(connection, origin):
                stored.append(origin)

    threads = [Thread(target=store, args=(f"https://f{number}.example.org",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with catalog.read() as connection:
        assert [known_file_origin(connection)] == stored


def test_first_file_urls_come_from_the_first_visited_pages(catalog: Catalog) -> None:
    with catalog.write() as connection:
        for number in (1, 2, 3, 4):
            row = {"id": number, "normalized": f"p{number}", "name": f"p{number}", "bucket": 0, "shard": 0}
            connection.execute(projects.insert().values(known_since=0, **row))
            connection.execute(releases.insert().values(id=number, project_id=number, version="1"))
        for visit_id, project_id, visit in ((1, 4, 1), (2, 3, 1), (3, 4, 2), (4, 2, 1), (5, 1, 1)):
            row = {"id": visit_id, "project_id": project_id, "visit": visit, "kind": "full", "workload": "crawl:1"}
            connection.execute(visits.insert().values(started_at=0, **row))
        for file, project_id, url in ((1, 1, "u1"), (2, 2, "u2"), (3, 3, None), (4, 4, "u4"), (5, 4, "v4")):
            row = {"id": file, "project_id": project_id, "release_id": project_id, "filename": f"f{file}", "url": url}
            connection.execute(distributions.insert().values(kind="wheel", **row))
    with catalog.read() as connection:
        assert first_file_urls(connection, 1) == ["u4", "v4"]
        assert first_file_urls(connection, 2) == ["u2", "u4", "v4"]
        assert first_file_urls(connection, 20) == ["u1", "u2", "u4", "v4"]


def entry(text: str, after: int | None = None, serial: int | None = None) -> BrokenEntry:
    return BrokenEntry("it is odd", text, "demo", serial, after)


def test_broken_changelog_row_is_kept_once_until_readable(catalog: Catalog):
    rows = [entry("[1]", 5, 6), entry("[2]", 6), entry("[2]", 9)]
    with catalog.write() as connection:
        keep_rows(connection, rows, 1.0)
        keep_rows(connection, rows, 2.0)
        found = kept_rows(connection)
        assert [(kept.source, kept.project, kept.entry, kept.seen_at) for kept in found] == [
            ("changelog", "", row, 1.0) for row in rows
        ]
        assert [count_broken_rows(connection, SerialRange(*ends)) for ends in ((0, 6), (6, 9))] == [1, 1]
        forget_rows(connection, [kept.id for kept in found[:2]])
        assert [kept.entry for kept in kept_rows(connection)] == rows[2:]


def test_broken_entries_are_replaced_by_the_next_list_or_page(catalog: Catalog):
    with catalog.write() as connection:
        one, other = enter(connection, 2)
        replace_list(connection, [entry("1"), entry("2\0")], 1.0)
        replace_pages(connection, {one.id: [entry("1"), entry("1")], other.id: [entry("1")]}, 1.0)
        assert count_kept_aside(connection) == {"changelog": 0, "project list": 2, "project page": 2}
        assert [(kept.project, kept.entry.text) for kept in kept_aside(connection)] == [
            ("", "1"),
            ("", "2\ufffd"),
            (one.name, "1"),
            (other.name, "1"),
        ]
        replace_list(connection, [], 2.0)
        replace_pages(connection, {one.id: ()}, 2.0)
        assert [kept.project for kept in kept_aside(connection)] == [other.name]
