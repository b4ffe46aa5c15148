"""Broken entries of the changelog, the list and pages: each affects only itself, is shown, and is re-read later."""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.events import events_through, last_event
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.failures import BROKEN, RecordedFailure, count_failures, list_failures
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.retry_failures import retry, store_readable_rows
from pypi_assets.index.actions import Action, FileChange
from pypi_assets.index.models import BrokenEntry
from pypi_assets_tests.crawl.followers import Follower, add, wheel
from pypi_assets_tests.crawl.odd_changelog import OddIndex
from pypi_assets_tests.naming import mentions

UNKNOWN = FileChange(Action.UNKNOWN)


@pytest.fixture
def odd(catalog: Catalog) -> Follower:
    follower = Follower(OddIndex(), catalog)
    add(follower.index, "one")
    crawl_full(follower.crawler)
    return follower


def failures(follower: Follower, kind: str | None = BROKEN) -> list[RecordedFailure]:
    with follower.catalog.read() as connection:
        return list(list_failures(connection, 50, kind))


@pytest.mark.nightly
@pytest.mark.parametrize("row", [["one", None, None, "docupdate", 7], None, ["one", "2.0", 0, "docupdate", "x"]])
def test_broken_row_affects_no_other_and_the_range_continues(odd: Follower, row: object):
    index = odd.index
    index.record_event("one", None, "docupdate")
    index.rows[index.serial] = [*row[:4], index.serial] if isinstance(row, list) and row[4] == 7 else row
    add(index, "two")
    [result] = crawl_incremental(odd.crawler)
    assert (odd.complete, result.broken_rows) == (index.serial, 1)
    assert odd.live() == index.shown[index.serial]
    [failure] = failures(odd)
    assert (failure.outcome, failure.kind) == ("error", "broken entry")
    assert catalog_status(odd.catalog).broken_entries == {"changelog": 1, "project list": 0, "project page": 0}
    with odd.catalog.read() as connection:
        assert count_failures(connection)[BROKEN] == 1
    add(index, "two", "2.0")
    [result] = crawl_incremental(odd.crawler)
    assert (result.broken_rows, len(failures(odd))) == (0, 1)


def test_broken_rows_at_the_end_are_passed_once_newer_events_exist(odd: Follower):
    index = odd.index
    index.record_event("one", None, "docupdate")
    index.rows[index.serial] = None
    crawl_incremental(odd.crawler)
    assert odd.complete == index.serial
    assert len(failures(odd)) == 1
    add(index, "two")
    crawl_incremental(odd.crawler)
    assert odd.live() == index.shown[index.serial]
    assert len(failures(odd)) == 1


def test_row_readable_later_counts_from_its_serial(odd: Follower, monkeypatch: pytest.MonkeyPatch):
    index = odd.index
    late = add(index, "one", "2.0")
    at = index.serial
    with monkeypatch.context() as patch:  # a version that cannot read a file event
        patch.setattr("pypi_assets.index.changelog.read_event", _read_all_but(at))
        add(index, "two")
        crawl_incremental(odd.crawler)
        assert (wheel("one", "2.0"), False) not in odd.live(at)
    assert [failure.project for failure in failures(odd)] == ["one"]
    result = retry(odd.crawler)
    assert (result.understood_rows, result.retried_visits) == (1, 1)
    assert failures(odd) == []
    assert (late, False) in odd.live(at)
    odd.require_exact()


def _read_all_but(serial: int):
    from pypi_assets.index.changelog import read_event

    def read(row):
        return None if row[4] == serial else read_event(row)

    return read


def test_row_with_misplaced_serial_is_never_an_event(odd: Follower):
    index = odd.index
    for number in range(3):
        index.record_event("one", None, f"update {number}")
    known = index.serial
    index.rows[known - 1] = ["one", None, 0, "docupdate", 10**15]
    crawl_incremental(odd.crawler)
    assert store_readable_rows(odd.crawler) == 0
    with odd.catalog.read() as connection:
        last = last_event(connection)
    assert last is not None
    assert (last.serial, len(failures(odd))) == (known, 1)


def test_last_row_with_far_too_high_serial_is_ignored(odd: Follower):
    index = odd.index
    index.record_event("one", None, "docupdate")
    index.rows[index.serial] = ["one", None, 0, "docupdate", 10**12]
    crawl_incremental(odd.crawler)
    [failure] = failures(odd)
    assert (failure.outcome, failure.kind) == ("error", "broken entry")
    with odd.catalog.read() as connection:
        assert events_through(connection) == index.serial == odd.complete
    add(index, "two")
    crawl_incremental(odd.crawler)
    assert odd.live() == index.shown[index.serial]
    assert (store_readable_rows(odd.crawler), len(failures(odd))) == (0, 1)


@pytest.mark.nightly
def test_action_known_later_counts_from_its_serial(odd: Follower, monkeypatch: pytest.MonkeyPatch):
    index = odd.index
    add(index, "one", "2.0")
    crawl_incremental(odd.crawler)
    before = index.serial
    with monkeypatch.context() as patch:  # a version that does not know file removals
        for module in ("catalog.observed.events", "catalog.derived.file_history"):
            patch.setattr(f"pypi_assets.{module}.file_change", _change_of_all_but("remove file"))
        assert index.do("remove-file", "one", "2.0", wheel("one", "2.0"))
        add(index, "two")
        crawl_incremental(odd.crawler)
        assert (wheel("one", "2.0"), False) in odd.live()
    assert (wheel("one", "2.0"), False) in odd.live(before)
    assert retry(odd.crawler).understood_rows == 1
    odd.require_exact()
    assert retry(odd.crawler).understood_rows == 0


def _change_of_all_but(action: str):
    from pypi_assets.index.actions import file_change

    def change(event):
        return UNKNOWN if event.action.startswith(action) else file_change(event)

    return change


@pytest.mark.nightly
def test_file_with_broken_entry_is_live_and_read_once_repaired(odd: Follower):
    index = odd.index
    file = wheel("one", "2.0")
    index.broken_files = {file}
    add(index, "one", "2.0")
    crawl_incremental(odd.crawler)
    assert odd.live() == index.shown[index.serial]
    [failure] = failures(odd)
    assert (failure.project, failure.filename) == ("one", file)
    [unread] = failures(odd, "no page")
    assert unread.filename == file
    assert mentions(unread.text, "size")
    index.broken_files = {wheel("one", "1.0")}  # a file that is known already
    add(index, "one", "3.0")
    crawl_incremental(odd.crawler)
    assert [failure.filename for failure in failures(odd)] == [wheel("one", "1.0")]
    index.broken_files = set()
    add(index, "one", "4.0")
    crawl_incremental(odd.crawler)
    assert failures(odd, None) == []
    files = {wheel("one", f"{number}.0") for number in (1, 2, 3, 4)}
    assert {(fact[2], fact[6]) for fact in odd.data()} == {(file, "data") for file in files}


@pytest.mark.nightly
@pytest.mark.parametrize("crawl", [crawl_full, lambda crawler: audit_index(crawler, 0.0)])
def test_broken_list_entry_affects_no_other(odd: Follower, crawl):
    odd.index.unlisted = [BrokenEntry("an entry without a name", "7")]
    crawl(odd.crawler)
    [failure] = failures(odd)
    assert mentions(failure.text, "project list", "an entry without a name", 7)
    assert odd.live() == odd.index.shown[odd.index.serial]
    odd.index.unlisted = []
    crawl(odd.crawler)
    assert failures(odd) == []
