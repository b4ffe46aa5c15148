"""Rules 2 and 3: the files that are live at a serial follow from events and pages alone."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st

from pypi_assets.catalog.derived.checkpoint import Checkpoint
from pypi_assets.catalog.derived.file_history import UNEXPLAINED, FileHistory, Fold, fold
from pypi_assets.catalog.derived.project_state import Interval, IntervalChange
from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.index.actions import file_change
from pypi_assets.index.models import ChangelogEvent
from pypi_assets_tests.examples import examples
from pypi_assets_tests.simulated_index import SimulatedIndex, operation_names, version_of

WHEEL, SDIST = "demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"


def event(serial: int, action: str, version: str | None = "1.0", at: int = 0) -> ChangelogEvent:
    return ChangelogEvent("Demo", version, at, action, serial)


def page(serial: int, shown: dict[str, bool], through: int | None = None, seen_at: float | None = None) -> Sighting:
    return Sighting(serial, through or serial, shown, is_page=True, seen_at=seen_at)


def histories(
    events: list[ChangelogEvent], *pages: Sighting, known_since: int = 0, events_through: int = 1_000_000
) -> dict[str, FileHistory]:
    folded = fold(events, pages, known_since=known_since, events_through=events_through, version_of=version_of)
    assert folded is not None
    return folded.histories


def live(history: FileHistory) -> list[tuple[int, int | None]]:
    return [(interval.start, interval.end) for interval in history.live]


def yanked_without_files(index: SimulatedIndex, at: int) -> set[str]:
    """Return the releases that were yanked at serial `at` without a file on the page: no later source shows these
    yanks.
    """
    last = {one.version: one.action for one in index.events if one.serial <= at and "yank" in one.action}
    return {
        version or ""
        for version, action in last.items()
        if action == "yank release" and version not in {version_of(name) for name in index.shown[at]}
    }


def yanked_at(found: dict[str, FileHistory], serial: int) -> set[str]:
    return {name for name, history in found.items() if any(serial in interval for interval in history.yanked)}


@given(
    operations=st.lists(operation_names, max_size=25),
    data=st.data(),
)
def test_live_set_equals_the_index_at_every_serial(operations, data):
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
    # A file that a quarantine hid at first, and that no page shows later, leaves no trace.
    added = {file_change(event).filename for event in index.events if event.serial <= since}
    unknowable = added - set(index.shown[exact_from]) - set(found)
    unknown_yanks = yanked_without_files(index, exact_from) if since else set()
    for serial in range(exact_from, last + 1):
        shown = {name: yanked for name, yanked in index.shown[serial].items() if name not in unknowable}
        assert {name for name, history in found.items() if history.is_live(serial)} == set(shown)
        yanked = {name for name, is_yanked in shown.items() if is_yanked}
        assert not {name for name in yanked_at(found, serial) ^ yanked if version_of(name) not in unknown_yanks}
    assert unknown_yanks or not [
        change for history in found.values() for change in history.changes if change.cause == UNEXPLAINED
    ]


@given(operations=st.lists(operation_names, min_size=5, max_size=25), is_known=st.booleans(), data=st.data())
def test_live_set_is_exact_with_pages_newer_than_their_serial(operations, is_known, data):
    """The pages have the content of one of the next events, and all events up to the last are stored."""
    index = SimulatedIndex()
    for operation in operations:
        index.do(*operation)
    last = max(index.shown)
    since = 0 if is_known else data.draw(st.integers(0, last), label="known since")
    pages = [] if since == 0 else [index.page(since)]
    drawn = data.draw(st.lists(st.tuples(st.integers(since, last), st.integers(0, 3), st.integers(0, 3)), max_size=4))
    for serial, newer, more in drawn:
        content = min(last, serial + newer)
        pages.append(page(serial, index.shown[content], through=min(last, content + more)))
    found = histories(index.events, *pages, known_since=since, events_through=last)
    hidden = {name for shown in index.shown.values() for name in shown} - set(found)
    unknown_yanks = yanked_without_files(index, since) if since else set()
    for serial in range(since, last + 1):
        shown = {name: yanked for name, yanked in index.shown[serial].items() if name not in hidden}
        assert {name for name, history in found.items() if history.is_live(serial)} == set(shown)
        yanked = {name for name, is_yanked in shown.items() if is_yanked}
        assert not {name for name in yanked_at(found, serial) ^ yanked if version_of(name) not in unknown_yanks}


@given(operations=st.lists(operation_names, min_size=1, max_size=20), data=st.data())
def test_page_overrides_events_at_its_serial(operations, data):
    """Even if events are lost or wrong, the page decides the state at its serial."""
    index = SimulatedIndex()
    for operation in operations:
        index.do(*operation)
    last = max(index.shown)
    kept = data.draw(st.sets(st.sampled_from(index.events)) if index.events else st.just(set()), label="events kept")
    serials = data.draw(st.sets(st.integers(0, last), max_size=4), label="serials of pages")
    found = histories(sorted(kept, key=lambda one: one.serial), *[index.page(serial) for serial in serials])
    for serial in serials:
        assert {name for name, history in found.items() if history.is_live(serial)} == set(index.shown[serial])


def test_intervals_are_disjoint_and_not_empty():
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


def test_file_without_event_is_live_from_the_first_known_serial():
    found = histories([event(60, "yank release")], page(40, {WHEEL: False}), known_since=50)
    assert live(found[WHEEL]) == [(50, None)]
    assert found[WHEEL].yanked == (Interval(60, None),)


def test_project_quarantined_before_first_event_returns_when_cleared():
    found = histories(
        [event(60, "project quarantine cleared", None)], page(40, {}), page(60, {WHEEL: False}), known_since=50
    )
    assert live(found[WHEEL]) == [(60, None)]
    assert [change.cause for change in found[WHEEL].changes] == ["unquarantine project"]


def test_release_quarantined_before_first_event_returns_when_cleared():
    pages = page(40, {"demo-2.0.zip": False}), page(61, {WHEEL: True, "demo-2.0.zip": False})
    found = histories([event(60, "release quarantine cleared"), event(61, "yank release")], *pages, known_since=50)
    assert live(found[WHEEL]) == [(60, None)]
    assert found[WHEEL].yanked == (Interval(61, None),)
    assert live(found["demo-2.0.zip"]) == [(50, None)]


@pytest.mark.parametrize(("what", "version"), [("project", None), ("release", "1.0")])
def test_files_quarantined_before_first_page_return_when_cleared(what: str, version: str | None):
    """The quarantine may be an event itself, and the next page may come long after the clearing."""
    begun, cleared = f"{what} quarantined", f"{what} quarantine cleared"
    events = [event(51, begun, version), event(60, cleared, version), event(70, "docupdate", None)]
    found = histories(events, page(51, {}), page(70, {WHEEL: False}), known_since=50)
    assert live(found[WHEEL]) == [(50, 51), (60, None)]
    events = [event(51, cleared, version), event(52, begun, version), *events[1:]]
    found = histories(events, page(52, {}), page(70, {WHEEL: False}), known_since=50)
    assert live(found[WHEEL]) == [(51, 52), (60, None)]
    found = histories(events, page(51, {}), page(70, {WHEEL: False}), known_since=50)
    assert live(found[WHEEL]) == [(70, None)]  # no quarantine hid it from the first page
    for through, expected in (51, [(50, 51), (60, None)]), (50, [(70, None)]):  # the page is newer than its serial
        events = [event(51, begun, version), event(60, cleared, version), event(70, "docupdate", None)]
        found = histories(events, page(50, {}, through), page(70, {WHEEL: False}), known_since=50)
        assert live(found[WHEEL]) == expected
    shown = {SDIST: False}  # so no quarantine hid the wheel of the same release
    found = histories(events, page(50, shown, 51), page(70, {WHEEL: False} | shown), known_since=50)
    assert live(found[WHEEL]) == [(70, None)]


def test_quarantine_applies_to_the_release_text_of_later_files():
    egg = "demo-1.0-py3.8.egg"
    begun = [event(51, "release quarantined"), event(52, f"remove file {WHEEL}")]
    events = [*begun, event(55, f"add source file {egg}"), event(60, "release quarantine cleared")]
    found = histories(events, page(50, {}, through=52), known_since=50)
    assert (live(found[WHEEL]), live(found[egg])) == ([(50, 51)], [(60, None)])


def unexplained(events: list[ChangelogEvent], *pages: Sighting) -> frozenset[str]:
    through = max(seen.seen_through for seen in pages)
    folded = fold(events, pages, known_since=50, events_through=through, version_of=version_of)
    assert folded is not None
    return folded.unexplained


def test_page_after_quarantine_may_show_more_than_stored_events():
    cleared = [event(60, "release quarantine cleared")]
    shown = {SDIST: False, WHEEL: True}
    assert unexplained(cleared, page(50, {SDIST: False}), page(60, shown, 65)) == {WHEEL}
    assert unexplained(cleared, page(50, {SDIST: False}), page(60, shown, 65), page(70, shown)) == set()


def test_first_page_may_show_more_than_stored_events():
    added = [event(60, f"add py3 file {WHEEL}")]
    assert unexplained(added, page(60, {SDIST: False, WHEEL: False})) == {SDIST}
    assert unexplained(added, page(60, {WHEEL: True})) == {WHEEL}
    assert unexplained(added, page(60, {WHEEL: False})) == set()
    assert unexplained(added, page(50, {SDIST: True})) == set()  # the only evidence of the earlier time


def test_unexplained_change_follows_the_page_and_is_marked():
    found = histories([event(5, "add source file demo-1.0.tar.gz")], page(5, {SDIST: False}), page(9, {WHEEL: True}))
    assert live(found[SDIST]) == [(5, 9)]
    assert live(found[WHEEL]) == [(9, None)]
    assert found[WHEEL].yanked == (Interval(9, None),)
    assert found[SDIST].changes[-1] == IntervalChange(9, UNEXPLAINED)


def test_file_added_to_release_yanked_before_first_event_is_yanked():
    added = event(60, f"add py3 file {WHEEL}")
    found = histories([added], page(62, {WHEEL: True}), known_since=50)[WHEEL]
    assert (found.yanked, [change.cause for change in found.changes]) == ((Interval(60, None),), ["add file"])
    ahead = [added, event(65, f"remove file {SDIST}")]
    assert histories(ahead, page(60, {WHEEL: True}, through=65), known_since=50)[WHEEL].yanked == (Interval(60, None),)
    assert histories([added, event(70, "unyank release")], known_since=50)[WHEEL].yanked == (Interval(60, 70),)


@pytest.mark.parametrize("action", ["remove release", "new release", "yank release", "create", "remove project"])
def test_release_created_or_removed_by_event_was_not_yanked_before(action: str):
    events = [event(55, action), event(60, f"add py3 file {WHEEL}")]
    found = histories(events, page(62, {WHEEL: True}), known_since=50)[WHEEL]
    since = 60 if action == "yank release" else 62
    assert found.yanked == (Interval(since, None),)


def test_file_added_to_yanked_release_is_yanked():
    found = histories(
        [
            event(1, "add source file demo-1.0.tar.gz"),
            event(2, "yank release"),
            event(3, "add py3 file demo-1.0-py3-none-any.whl"),
        ]
    )
    assert found[WHEEL].yanked == (Interval(3, None),)


def test_release_comes_from_the_add_event_and_is_compared_canonically():
    found = histories([event(1, "add source file demo-1.0.tar.gz", "1.0.0"), event(2, "remove release", "1")])
    assert found[SDIST].version == "1.0.0"
    assert live(found[SDIST]) == [(1, 2)]


def test_file_added_and_removed_before_any_page_is_recorded():
    found = histories(
        [event(1, "add source file demo-1.0.tar.gz"), event(2, "remove file demo-1.0.tar.gz")], page(2, {})
    )
    assert live(found[SDIST]) == [(1, 2)]


@pytest.mark.parametrize("action", ["remove", "remove project"])
def test_removed_project_loses_all_files_and_can_return(action):
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


def test_page_newer_than_its_serial_counts_from_the_explaining_event():
    added, more = event(1, "add source file demo-1.0.tar.gz"), event(5, f"add py3 file {WHEEL}")
    for shown, last in (({SDIST: False, WHEEL: False}, more), ({SDIST: True}, event(5, "yank release"))):
        found = histories([added, last], page(1, shown, through=7))
        assert not [change for history in found.values() for change in history.changes if change.cause == UNEXPLAINED]
        assert live(found[SDIST]) == [(1, None)]
    assert live(histories([added, more], page(1, {SDIST: False, WHEEL: False}, through=7))[WHEEL]) == [(5, None)]
    assert live(histories([added, event(5, "remove release")], page(1, {}, through=7))[SDIST]) == [(1, 5)]


def test_first_page_newer_than_its_serial_proves_nothing_earlier():
    more = event(55, f"add py3 file {WHEEL}")
    found = histories([more], page(40, {SDIST: False, WHEEL: False}, through=60), known_since=50)
    assert live(found[WHEEL]) == [(55, None)]
    assert live(found[SDIST]) == [(50, None)]


def test_file_live_before_a_second_add_event_stays_live():
    events = [event(55, f"remove file {WHEEL}"), event(57, f"add py3 file {WHEEL}")]
    assert live(histories(events, page(40, {WHEEL: False}, through=60), known_since=50)[WHEEL]) == [
        (50, 55),
        (57, None),
    ]


def test_page_is_not_explained_by_events_after_it():
    added, removed = event(1, f"add py3 file {WHEEL}"), event(300, "remove release")
    assert live(histories([added, removed], page(1, {}, through=200))[WHEEL]) == []
    found = histories(
        [added, event(2, "add source file demo-1.0.tar.gz"), removed], page(2, {SDIST: False}, through=200)
    )
    assert live(found[WHEEL]) == [(1, 2)]


SEEN_AT = 1_780_000_000.0
BEFORE, LONG_AFTER = 1_779_999_999, 1_780_001_000


def test_event_stored_after_its_page_replaces_the_unexplained_change():
    """An index can answer a page before its changelog has the event: its last serial was 54, but the page shows event
    55.
    """
    first = page(2, {SDIST: False}, seen_at=SEEN_AT - 7200)
    began = [event(1, "create", None), event(2, "add source file demo-1.0.tar.gz")]
    both, yanked, gone = {SDIST: False, WHEEL: False}, {SDIST: True}, {}
    for shown, late in (
        (both, f"add py3 file {WHEEL}"),
        (yanked, "yank release"),
        (gone, "remove file demo-1.0.tar.gz"),
        (gone, "remove release"),
    ):
        seen = page(50, shown, through=54, seen_at=SEEN_AT)
        before = histories(began, first, seen, events_through=54)
        assert {change.cause for each in before.values() for change in each.changes if change.serial > 2} == {
            UNEXPLAINED
        }
        found = histories([*began, event(55, late, at=BEFORE)], first, seen, events_through=60)
        assert {change.serial for each in found.values() for change in each.changes} == {2, 55}
        assert not [change for each in found.values() for change in each.changes if change.cause == UNEXPLAINED]
        contradicted = histories([*began, event(55, late, at=LONG_AFTER)], first, seen, events_through=60)
        assert {change.serial for each in contradicted.values() for change in each.changes} >= {2, 50}


def test_contradicted_event_explains_nothing():
    first = page(2, {SDIST: False}, seen_at=SEEN_AT - 7200)
    began = [event(1, "create", None), event(2, "add source file demo-1.0.tar.gz")]
    seen = page(50, {SDIST: False, WHEEL: False}, through=50, seen_at=SEEN_AT)
    long_before = page(48, {SDIST: False, WHEEL: False}, through=48, seen_at=SEEN_AT - 3600)
    late = event(55, f"add py3 file {WHEEL}", at=BEFORE)
    assert live(histories([*began, late], first, long_before, seen, events_through=60)[WHEEL]) == [(48, None)]
    without = page(48, {SDIST: False}, through=48, seen_at=SEEN_AT - 3600)
    assert live(histories([*began, late], first, without, seen, events_through=60)[WHEEL]) == [(55, None)]
    removed = event(53, f"remove file {WHEEL}", at=BEFORE)
    assert live(histories([*began, removed, late], first, seen, events_through=60)[WHEEL]) == [(50, 53), (55, None)]
    other = event(53, "add source file demo-2.0.tar.gz", "2.0", at=BEFORE)  # this event does not concern the file
    both = replace(seen, shown={**seen.shown, "demo-2.0.tar.gz": False})
    found = histories([*began, other, late], first, both, events_through=60)
    assert live(found[WHEEL]) == [(55, None)]
    unyanked, yanked = event(53, "unyank release", at=BEFORE), event(55, "yank release", at=BEFORE)
    seen = page(50, {SDIST: True}, through=50, seen_at=SEEN_AT)
    [first, second] = histories([*began, unyanked, yanked], first, seen, events_through=60)[SDIST].yanked
    assert (first, second) == (Interval(50, 53), Interval(55, None))


def test_page_with_unexplained_change_counts_where_it_differs_least():
    events = [event(n, f"add py3 file demo-1.0-py{n}-none-any.whl") for n in range(1, 6)]
    shown = {
        f"demo-1.0-py{n}-none-any.whl": False for n in (1, 3, 4)
    }  # 2 is removed; 3 and 4 are newer than the serial
    found = histories(events, page(2, shown, through=9))
    assert live(found["demo-1.0-py2-none-any.whl"]) == [(2, 4)]
    assert live(found["demo-1.0-py4-none-any.whl"]) == [(4, None)]
    assert live(found["demo-1.0-py5-none-any.whl"]) == [(5, None)]


steps = st.one_of(
    operation_names,
    st.sampled_from(
        [
            ("add", "1.0.0", "demo-1.0.0.tar.gz"),
            *((kind, "1.0.0", None) for kind in ("yank", "unyank", "remove-release", "quarantine-release")),
        ]
    ),
    st.sampled_from([("drift", 0, None), ("drift", 1, None), ("drift", 2, None), ("role", None, None)]),
    st.tuples(st.just("visit"), st.just(0), st.just(0)),
    st.tuples(st.just("visit"), st.integers(0, 3), st.integers(0, 3)),
)
"""What happens on an index, and visits of its page: how many serials old it is, and how much newer than its serial."""


LATEST = 4e9
"""A time of a visit that is later than all events, so that any of them can be on the page."""


class Follower:
    """Follows one project from checkpoint to checkpoint, and keeps its rows as the catalog does."""

    def __init__(self, known_since: int) -> None:
        self.known_since = known_since
        self.sightings: list[Sighting] = []
        self.checkpoint: Checkpoint | None = None
        self.rows: dict[str, FileHistory] = {}
        self.continued = 0

    def visit(self, events: list[ChangelogEvent], through: int, seen: Sighting) -> None:
        known = [one for one in events if one.serial <= through]
        start = self.checkpoint if self._may_continue(known, seen) else None
        self.sightings.append(seen)
        whole = self._folded(known, self.sightings, through, None)
        assert whole is not None
        found = whole
        if start is not None:
            start = Checkpoint.decode(start.encode())
            later = [one for one in known if one.serial > start.serial]
            beyond = [sighting for sighting in self.sightings if sighting.seen_through >= start.serial]
            continued = self._folded(later, beyond, through, start)
            found = whole if continued is None else continued
        if found is whole:
            self.rows = {name: self._nothing(name) for name in self.rows} | whole.histories
        else:
            assert start is not None
            self.continued += 1
            for name, one in found.histories.items():
                self.rows[name] = self._appended(name, one, start.serial)
        assert {name: (one.live, one.yanked) for name, one in self.rows.items() if one.live} == {
            name: (one.live, one.yanked) for name, one in whole.histories.items() if one.live
        }
        assert {name: self.rows[name].version for name in whole.histories} == {
            name: one.version for name, one in whole.histories.items()
        }
        assert found.newest_page == whole.newest_page
        assert found.unexplained <= whole.unexplained
        self.checkpoint = found.checkpoint

    def _may_continue(self, known: list[ChangelogEvent], seen: Sighting) -> bool:
        serial, start = seen.page_serial, self.checkpoint
        if start is None or serial is None or serial > start.serial:
            return True
        if any(sighting.page_serial == serial for sighting in self.sightings):
            return True
        agrees = {
            name: any(serial in one for one in row.yanked) for name, row in self.rows.items() if row.is_live(serial)
        } == seen.shown
        return agrees and start.allows(serial) and any(one.serial == serial for one in known)

    def _folded(
        self, known: list[ChangelogEvent], sightings: list[Sighting], through: int, start: Checkpoint | None
    ) -> Fold | None:
        return fold(
            known,
            sightings,
            known_since=self.known_since,
            events_through=through,
            version_of=version_of,
            checkpoint=start,
        )

    @staticmethod
    def _nothing(name: str) -> FileHistory:
        return FileHistory(name, version_of(name), (), (), ())

    def _appended(self, name: str, new: FileHistory, after: int) -> FileHistory:
        old = self.rows.get(name, self._nothing(name))
        ended = [
            tuple(one for one in kept if one.end is not None and one.end <= after) for kept in (old.live, old.yanked)
        ]
        return FileHistory(name, new.version, ended[0] + new.live, ended[1] + new.yanked, ())


@settings(max_examples=examples(100), deadline=None)
@given(done=st.lists(steps, min_size=10, max_size=50), is_known_since_0=st.booleans(), data=st.data())
def test_fold_from_checkpoint_equals_fold_from_scratch(done, is_known_since_0, data):
    """Rule 10 holds for pages of any content and age, and for any number of stored events."""
    index = SimulatedIndex()
    follower: Follower | None = None
    drifted: dict[str, bool] = {}
    through = 0
    for kind, one, other in done:
        last = max(index.shown)
        if kind == "drift":
            name = [WHEEL, SDIST, "demo-2.0.zip"][one]
            drifted = drifted | {name: one == 1} if name not in drifted else {}
        elif kind == "role":
            index.record_event("add Owner somebody")
        elif kind == "visit":
            if follower is None:
                follower, through = Follower(0 if is_known_since_0 else last), last
            serials = sorted(index.shown)
            at = max(0, len(serials) - 1 - one)
            shown = dict(index.shown[serials[min(len(serials) - 1, at + other)]])
            for name, is_shown in drifted.items():
                shown.pop(name, None)
                if is_shown:
                    shown[name] = False
            if data.draw(st.booleans()):
                through = last
            seen_at = data.draw(st.sampled_from([None, 0.0, LATEST]))
            seen = page(serials[at], shown, through=max(through, serials[at]), seen_at=seen_at)
            follower.visit(index.events, through, seen)
        else:
            index.do(kind, one, other)
    event_count = 0 if follower is None else follower.continued
    target(float(event_count), label="folds from a checkpoint")


def test_add_event_after_an_early_page_changes_the_past():
    """Holds from a checkpoint and from scratch if the page was judged before the event was stored."""
    seen = page(40, {SDIST: False, WHEEL: False}, through=52)
    first = fold([], [seen], known_since=50, events_through=52, version_of=version_of)
    assert first is not None
    assert live(first.histories[WHEEL]) == [(50, None)]
    added = [event(53, f"add py3 file {WHEEL}")]
    later = {"known_since": 50, "events_through": 60, "version_of": version_of}
    assert fold(added, [], checkpoint=first.checkpoint, **later) is None
    whole = fold(added, [replace(seen, shows_through=55)], **later)
    assert whole is not None
    assert live(whole.histories[WHEEL]) == [(53, None)]
    assert live(whole.histories[SDIST]) == [(50, None)]
    after = fold(
        [event(61, f"add py3 file {WHEEL}")], [], checkpoint=whole.checkpoint, **later | {"events_through": 61}
    )
    assert after is not None


def test_event_with_earlier_time_extends_what_the_first_page_can_show():
    """Events are in order of serial, and their times can be out of order: the fold then begins from scratch."""
    seen = page(50, {SDIST: False, WHEEL: False}, seen_at=1_000.0)
    late = event(51, f"add py3 file {WHEEL}", at=9_000)
    first = fold([late], [seen], known_since=50, events_through=51, version_of=version_of)
    assert first is not None
    assert live(first.histories[WHEEL]) == [(50, None)]
    early = event(52, "add Owner someone", at=1_200)
    later = {"known_since": 50, "events_through": 52, "version_of": version_of}
    assert fold([early], [], checkpoint=first.checkpoint, **later) is None
    whole = fold([late, early], [seen], **later)
    assert whole is not None
    assert live(whole.histories[WHEEL]) == [(51, None)]


def test_file_removed_by_event_was_live_before():
    """A page at the event's serial no longer shows the file, and neither does a page newer than its own serial."""
    removed = event(55, f"remove file {WHEEL}")
    for seen in (page(50, {SDIST: False}, through=57), page(57, {SDIST: False})):
        found = histories([removed], seen, known_since=50)
        assert live(found[WHEEL]) == [(50, 55)]
        assert not [change for change in found[WHEEL].changes if change.cause == UNEXPLAINED]
    assert WHEEL not in histories([event(51, "create", None), removed], known_since=50)
    assert WHEEL not in histories([removed], known_since=0)
    assert WHEEL not in histories([removed], page(50, {SDIST: False}, through=54), known_since=50)
    again = [event(52, f"add py3 file {WHEEL}"), removed, event(60, f"remove file {WHEEL}")]
    assert live(histories(again, known_since=50)[WHEEL]) == [(52, 55)]


def test_removal_of_file_unknown_to_checkpoint_changes_the_past():
    later = {"known_since": 50, "version_of": version_of}
    first = fold([], [page(50, {SDIST: False})], events_through=52, **later)
    assert first is not None
    assert (
        fold([event(55, f"remove file {WHEEL}")], [], events_through=55, checkpoint=first.checkpoint, **later) is None
    )


def test_file_on_second_page_of_first_serial_was_not_live_before():
    found = histories([], page(4, {SDIST: False}), page(4, {SDIST: False, WHEEL: False}), known_since=0)
    assert live(found[SDIST]) == [(0, None)]
    assert live(found[WHEEL]) == [(4, None)]


def test_file_removed_by_event_belongs_to_the_named_release():
    events = [event(56, "yank release"), event(57, "remove file demo-1.0.0.zip")]
    found = histories(events, page(55, {SDIST: True}, through=57), known_since=55)["demo-1.0.0.zip"]
    assert (found.version, live(found)) == ("1.0", [(55, 57)])
    assert found.yanked == (Interval(56, 57),)


def test_file_without_event_starts_at_project_creation():
    created = event(51, "create", None)
    assert live(histories([created], page(60, {WHEEL: False}), known_since=50)[WHEEL]) == [(51, None)]
    assert live(histories([created], page(50, {WHEEL: False}), known_since=50)[WHEEL]) == [(50, None)]


def test_release_of_project_created_by_event_was_not_yanked_before():
    """Files can be yanked one at a time and unyanked with their release, so an unyank event does not prove an earlier
    yank.
    """
    actions = ["create", f"add py3 file {WHEEL}", f"add source file {SDIST}", f"yank file {WHEEL}", "unyank release"]
    events = [event(serial, action) for serial, action in enumerate(actions, 1)]
    found = histories(events, page(4, {WHEEL: True, SDIST: False}), page(5, {WHEEL: False, SDIST: False}))
    assert found[WHEEL].yanked == (Interval(4, 5),)
    assert found[SDIST].yanked == ()
    [unknown] = [history for history in histories(events[2:], known_since=2).values() if history.yanked]
    assert unknown.yanked[0].start == 3  # the first event of the project was not seen
