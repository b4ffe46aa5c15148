"""The state of a project: releases by exact version text, quarantines, and events whose cost depends on the affected
files.
"""

import pytest

from pypi_assets.catalog.derived.project_state import Interval, IntervalChange, ProjectState
from pypi_assets.index.actions import file_change
from pypi_assets.index.models import ChangelogEvent
from pypi_assets_tests.simulated_index import version_of

WHEEL, SDIST, LONG = "demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz", "demo-1.0.0.tar.gz"


def after(*rows: tuple[str, str | None]) -> ProjectState:
    state = ProjectState(version_of)
    for serial, (action, version) in enumerate(rows, 1):
        event = ChangelogEvent("Demo", version, 0, action, serial)
        state.apply(event, file_change(event))
    return state


def test_two_spellings_with_files_are_two_releases():
    added = (f"add source file {SDIST}", "1.0"), (f"add source file {LONG}", "1.0.0")
    assert after(*added, ("remove release", "1.0")).visible == {LONG: False}
    assert after(*added, ("yank release", "1.0.0")).visible == {SDIST: False, LONG: True}
    assert after(*added, ("release quarantined", "1.0")).visible == {LONG: False}


def test_announced_spelling_is_a_separate_release():
    added = (f"add source file {LONG}", "1.0.0"), ("new release", "1.0")
    assert after(*added, ("remove release", "1.0")).visible == {LONG: False}


@pytest.mark.parametrize("text", ["1", "1.0.0", "01.0"])
def test_spelling_without_files_means_the_same_version(text: str):
    added = (f"add source file {SDIST}", "1.0"), (f"add py3 file {WHEEL}", "1.0")
    assert after(*added, ("remove release", text)).visible == {}
    assert after(*added, ("yank release", text)).visible == {SDIST: True, WHEEL: True}


def test_yank_of_empty_release_applies_to_its_first_file():
    assert after(("yank release", "1"), (f"add source file {SDIST}", "1.0")).visible == {SDIST: True}
    assert after(("release quarantined", "1"), (f"add source file {SDIST}", "1.0")).visible == {}
    state = after(("yank release", "1"), (f"add source file {SDIST}", "1.0"), (f"add source file {LONG}", "1.0.0"))
    assert state.visible == {SDIST: True, LONG: False}


def test_file_added_again_to_another_release_moves():
    state = after((f"add source file {SDIST}", "1.0"), (f"add source file {SDIST}", "2.0"), ("remove release", "1.0"))
    assert state.visible == {SDIST: False}
    assert state.files[SDIST].release.text == "2.0"


def test_file_added_during_quarantine_shows_once_cleared():
    rows = ("project quarantined", None), (f"add source file {SDIST}", "1.0")
    assert after(*rows).visible == {}
    state = after(*rows, ("project quarantine cleared", None))
    assert state.visible == {SDIST: False}
    assert state.traces[SDIST].changes == [IntervalChange(3, "unquarantine project")]


def test_change_undone_at_the_same_serial_leaves_no_trace():
    state = after((f"add source file {SDIST}", "1.0"))
    state.correct({}, 5, "unexplained")
    state.correct({SDIST: False}, 5, "unexplained")
    assert state.files[SDIST].live_since == 1
    state.correct({}, 7, "unexplained")
    assert state.traces[SDIST].live == [Interval(1, 7)]


def test_page_showing_a_file_ends_its_quarantines():
    rows = (f"add source file {SDIST}", "1.0"), (f"add py3 file {WHEEL}", "1.0"), ("project quarantined", None)
    state = after(*rows)
    assert state.correct({SDIST: False}, 9, "unexplained") == {SDIST, WHEEL}
    assert state.visible == {SDIST: False}
    assert not state.is_quarantined


def test_event_cost_depends_on_affected_files(monkeypatch: pytest.MonkeyPatch):
    """With 5,000 versions, each yank, removal and page inspects only one."""
    state = after(*((f"add source file demo-{n}.0.tar.gz", f"{n}.0") for n in range(5_000)))
    looked_at: list[str] = []
    monkeypatch.setattr(state, "is_live", lambda file: looked_at.append(file.release.text) or file.is_present)
    for serial, (action, version) in enumerate(
        [("yank release", "7.0"), ("remove file demo-8.0.tar.gz", "8.0")], 6_000
    ):
        event = ChangelogEvent("Demo", version, 0, action, serial)
        state.apply(event, file_change(event))
    state.correct(state.visible | {"demo-9.0.tar.gz": True}, 6_002, "unexplained")
    assert set(looked_at) == {"7.0", "8.0", "9.0"}
    assert len(looked_at) < 10


def test_trying_events_does_not_change_the_state():
    state = after((f"add source file {SDIST}", "1.0"))
    events = [ChangelogEvent("Demo", "1.0", 0, action, n) for n, action in enumerate(["yank release", "remove"], 5)]
    tried = [dict(one.visible) for one in state.tried((event, file_change(event)) for event in events)]
    assert tried == [{SDIST: True}, {}]
    assert state.visible == {SDIST: False}
    assert not state.releases["1.0"].is_yanked


def test_yank_of_one_file_leaves_other_files_unyanked():
    state = ProjectState(lambda _: "1.0")
    for serial, action in enumerate(("add source file a.zip", "add source file b.zip", "yank file a.zip"), 1):
        event = ChangelogEvent("demo", "1.0", 0, action, serial)
        state.apply(event, file_change(event))
    assert state.visible == {"a.zip": True, "b.zip": False}
    for serial, action in ((4, "unyank file a.zip"), (5, "yank file unknown.zip"), (6, "add source file c.zip")):
        event = ChangelogEvent("demo", "1.0", 0, action, serial)
        state.apply(event, file_change(event))
    assert state.visible == {"a.zip": False, "b.zip": False, "c.zip": False}
