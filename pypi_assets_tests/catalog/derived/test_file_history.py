"""Rules 2 and 3: what is live at a serial follows from events and pages, and from them alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.derived.file_history import (
    UNEXPLAINED,
    Change,
    FileHistory,
    Interval,
    SeenPage,
    file_histories,
)
from pypi_assets.index.actions import file_change
from pypi_assets.index.models import ChangelogEvent
from pypi_assets_tests.simulated_index import SimulatedIndex, operation_names, version_of

WHEEL, SDIST = "demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"


def event(serial: int, action: str, version: str | None = "1.0") -> ChangelogEvent:
    return ChangelogEvent("Demo", version, 0, action, serial)


def histories(
    events: list[ChangelogEvent], *pages: SeenPage, known_since: int = 0, events_through: int = 1_000_000
) -> dict[str, FileHistory]:
    return file_histories(events, pages, known_since=known_since, events_through=events_through, version_of=version_of)


def live(history: FileHistory) -> list[tuple[int, int | None]]:
    return [(interval.start, interval.end) for interval in history.live]


@given(
    operations=st.lists(operation_names, max_size=25),
    data=st.data(),
)
def test_the_live_set_equals_what_the_index_showed_at_every_serial(operations, data):
    index = SimulatedIndex()
    for operation in operations:
        index.do(*operation)
    last = max(index.shown)
    since = data.draw(st.integers(0, last), label="known since")
    pages = data.draw(st.lists(st.sampled_from(sorted(index.shown)), max_size=4), label="serials of pages")
    if since > 0:  # a full crawl sees each project at least once, at its serial or later
        pages = [*pages, data.draw(st.integers(since, last), label="first page")]
    pages = [serial for serial in pages if serial >= since]
    found = histories(
        index.events, *[index.page(serial) for serial in data.draw(st.permutations(pages))], known_since=since
    )
    exact_from = min(pages, default=0) if since else 0
    # What a quarantine hid at first, and no page shows later, leaves no trace.
    added = {file_change(event).filename for event in index.events if event.serial <= since}
    unknowable = added - set(index.shown[exact_from]) - set(found)
    for serial in range(exact_from, last + 1):
        shown = {name: yanked for name, yanked in index.shown[serial].items() if name not in unknowable}
        assert {name for name, history in found.items() if history.is_live(serial)} == set(shown)
        assert {name for name, history in found.items() if any(serial in i for i in history.yanked)} == {
            name for name, yanked in shown.items() if yanked
        }
    assert not [change for history in found.values() for change in history.changes if change.cause == UNEXPLAINED]


@given(operations=st.lists(operation_names, min_size=1, max_size=20), data=st.data())
def test_pages_win_over_events_at_their_serial(operations, data):
    """Whatever events were lost or wrong: at a page's serial, the state is what the page showed."""
    index = SimulatedIndex()
    for operation in operations:
        index.do(*operation)
    last = max(index.shown)
    kept = data.draw(st.sets(st.sampled_from(index.events)) if index.events else st.just(set()), label="events kept")
    serials = data.draw(st.sets(st.integers(0, last), max_size=4), label="serials of pages")
    found = histories(sorted(kept, key=lambda one: one.serial), *[index.page(serial) for serial in serials])
    for serial in serials:
        assert {name for name, history in found.items() if history.is_live(serial)} == set(index.shown[serial])


def test_intervals_are_apart_and_not_empty():
    found = histories(
        [
            event(1, "add py3 file demo-1.0-py3-none-any.whl"),
            event(2, "project quarantined", None),
            event(3, "project quarantine cleared", None),
            event(4, "yank release"),
            event(5, "unyank release"),
            event(6, "remove release"),
        ]
    )[WHEEL]
    assert live(found) == [(1, 2), (3, 6)]
    assert found.yanked == (Interval(4, 5),)
    assert [change.serial for change in found.changes] == [1, 2, 3, 4, 5, 6]


def test_files_without_an_event_count_from_the_serial_since_which_events_are_known():
    found = histories([event(60, "yank release")], SeenPage(40, {WHEEL: False}), known_since=50)
    assert live(found[WHEEL]) == [(50, None)]
    assert found[WHEEL].yanked == (Interval(60, None),)


def test_a_project_quarantined_before_the_first_event_comes_back_when_it_is_cleared():
    found = histories(
        [event(60, "project quarantine cleared", None)], SeenPage(40, {}), SeenPage(60, {WHEEL: False}), known_since=50
    )
    assert live(found[WHEEL]) == [(60, None)]
    assert [change.cause for change in found[WHEEL].changes] == ["unquarantine project"]


def test_a_release_quarantined_before_the_first_event_comes_back_when_it_is_cleared():
    pages = SeenPage(40, {"demo-2.0.zip": False}), SeenPage(61, {WHEEL: True, "demo-2.0.zip": False})
    found = histories([event(60, "release quarantine cleared"), event(61, "yank release")], *pages, known_since=50)
    assert live(found[WHEEL]) == [(60, None)]
    assert found[WHEEL].yanked == (Interval(61, None),)
    assert live(found["demo-2.0.zip"]) == [(50, None)]


@pytest.mark.parametrize(("what", "version"), [("project", None), ("release", "1.0")])
def test_what_was_quarantined_before_the_first_page_comes_back_when_it_is_cleared(what: str, version: str | None):
    """Also where the quarantine is no older than the first event, and the next page comes long after the clearing."""
    begun, cleared = f"{what} quarantined", f"{what} quarantine cleared"
    events = [event(51, begun, version), event(60, cleared, version), event(70, "docupdate", None)]
    found = histories(events, SeenPage(51, {}), SeenPage(70, {WHEEL: False}), known_since=50)
    assert live(found[WHEEL]) == [(50, 51), (60, None)]
    events = [event(51, cleared, version), event(52, begun, version), *events[1:]]
    found = histories(events, SeenPage(52, {}), SeenPage(70, {WHEEL: False}), known_since=50)
    assert live(found[WHEEL]) == [(51, 52), (60, None)]
    found = histories(events, SeenPage(51, {}), SeenPage(70, {WHEEL: False}), known_since=50)
    assert live(found[WHEEL]) == [(70, None)]  # nothing hid it from the first page


def test_what_no_event_explains_follows_the_page_and_is_marked():
    found = histories(
        [event(5, "add source file demo-1.0.tar.gz")], SeenPage(5, {SDIST: False}), SeenPage(9, {WHEEL: True})
    )
    assert live(found[SDIST]) == [(5, 9)]
    assert live(found[WHEEL]) == [(9, None)]
    assert found[WHEEL].yanked == (Interval(9, None),)
    assert found[SDIST].changes[-1] == Change(9, UNEXPLAINED)


def test_a_file_added_to_a_yanked_release_is_yanked():
    found = histories(
        [
            event(1, "add source file demo-1.0.tar.gz"),
            event(2, "yank release"),
            event(3, "add py3 file demo-1.0-py3-none-any.whl"),
        ]
    )
    assert found[WHEEL].yanked == (Interval(3, None),)


def test_the_release_is_that_of_the_add_event_and_compared_canonically():
    found = histories([event(1, "add source file demo-1.0.tar.gz", "1.0.0"), event(2, "remove release", "1")])
    assert found[SDIST].version == "1.0.0"
    assert live(found[SDIST]) == [(1, 2)]


def test_a_file_added_and_removed_before_any_page_is_recorded():
    found = histories(
        [event(1, "add source file demo-1.0.tar.gz"), event(2, "remove file demo-1.0.tar.gz")], SeenPage(2, {})
    )
    assert live(found[SDIST]) == [(1, 2)]


@pytest.mark.parametrize("action", ["remove", "remove project"])
def test_a_removed_project_loses_all_files_and_can_come_back(action):
    found = histories(
        [
            event(1, "add source file demo-1.0.tar.gz"),
            event(2, "yank release"),
            event(3, action, None),
            event(4, "create", None),
            event(5, "add py3 file demo-1.0-py3-none-any.whl"),
        ]
    )
    assert live(found[SDIST]) == [(1, 3)]
    assert live(found[WHEEL]) == [(5, None)]
    assert found[WHEEL].yanked == ()
