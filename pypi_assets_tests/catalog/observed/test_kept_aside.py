"""Broken entries: kept once, replaced by the next list or page, counted by source."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.index_state import (
    count_broken_rows,
    count_kept_aside,
    forget_rows,
    keep_rows,
    kept_aside,
    kept_rows,
    replace_list,
    replace_pages,
)
from pypi_assets.index.models import BrokenEntry
from pypi_assets_tests.catalog.ended_visits import enter


def entry(text: str, after: int | None = None, serial: int | None = None) -> BrokenEntry:
    return BrokenEntry("it is odd", text, "demo", serial, after)


def test_a_row_of_the_changelog_is_kept_once_and_until_it_can_be_read(catalog: Catalog):
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


def test_what_a_list_or_a_page_broke_is_gone_with_the_next_one(catalog: Catalog):
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
