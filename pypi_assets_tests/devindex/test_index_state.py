"""Operations change an index: its events, releases, files and statuses."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.history import History
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.devindex.shown import WHEEL, actions, shown
from pypi_assets_tests.naming import naming


def test_empty_index(history: History) -> None:
    state = history.state()
    assert (state.last_serial, state.changelog, state.projects) == (None, [], {})


def test_upload_registers_project_and_release_once(demo: History, tmp_path: Path) -> None:
    serial = demo.add(make_wheel(tmp_path, "demo", "1.1"))
    assert serial == demo.state().last_serial == 7
    assert actions(demo) == [
        ("Demo", None, "create"),
        ("Demo", None, "add Owner devindex"),
        ("Demo", "1.0", "new release"),
        ("Demo", "1.0", f"add py3 file {WHEEL}"),
        ("Demo", "1.0", "add source file demo-1.0.tar.gz"),
        ("demo", "1.1", "new release"),
        ("demo", "1.1", "add py3 file demo-1.1-py3-none-any.whl"),
    ]


def test_equal_versions_are_one_release(demo: History, tmp_path: Path) -> None:
    demo.add(make_wheel(tmp_path, "demo", "1.0.0"))
    assert actions(demo, 5) == [("demo", "1.0", "add py3 file demo-1.0.0-py3-none-any.whl")]


def test_upload_changes_the_display_name_of_its_project(demo: History, tmp_path: Path) -> None:
    demo.add(make_wheel(tmp_path, "DEMO", "1.0", tag="py2-none-any"))
    assert actions(demo, 5) == [("DEMO", "1.0", "add py2 file demo-1.0-py2-none-any.whl")]
    demo.yank("demo", "1.0")
    assert actions(demo, 6) == [("DEMO", "1.0", "yank release")]


def test_both_spellings_of_a_version_can_have_releases(demo: History, tmp_path: Path) -> None:
    demo.add(make_wheel(tmp_path, "Demo", "1.0.0"), own_release=True)
    demo.add(make_sdist(tmp_path, "Demo", "1.0.0"))
    assert [version for _, version, _ in actions(demo, 5)] == ["1.0.0", "1.0.0", "1.0.0"]
    demo.remove_release("demo", "1.0")
    assert actions(demo, 8) == [("Demo", "1.0", "remove release")]
    assert shown(demo) == [("demo-1.0.0-py3-none-any.whl", False), ("demo-1.0.0.tar.gz", False)]
    demo.yank("demo", "1")
    assert actions(demo, 9) == [("Demo", "1.0.0", "yank release")]


@pytest.mark.parametrize("what", ["project", "release"])
def test_file_uploaded_during_a_quarantine_is_shown_afterwards(what: str, demo: History, tmp_path: Path) -> None:
    names = ("demo",) if what == "project" else ("demo", "1.0")
    suffix = "" if what == "project" else "_release"
    getattr(demo, f"quarantine{suffix}")(*names)
    file = make_sdist(tmp_path, "Demo", "1.0", format="zip")
    with pytest.raises(OperationRefusedError, match=naming("Demo")):
        demo.add(file)
    demo.add(file, during_quarantine=True)
    assert actions(demo, 6) == [("Demo", "1.0", "add source file demo-1.0.zip")]
    assert shown(demo) == []
    getattr(demo, f"unquarantine{suffix}")(*names)
    assert ("demo-1.0.zip", False) in shown(demo)


def test_release_without_files_remains(demo: History, tmp_path: Path) -> None:
    demo.remove_file(WHEEL)
    demo.remove_file("demo-1.0.tar.gz")
    demo.add(make_sdist(tmp_path, "demo", "1.0", format="zip"))
    assert actions(demo, 7) == [("demo", "1.0", "add source file demo-1.0.zip")]


def test_removal_of_a_release_is_one_event(demo: History, tmp_path: Path) -> None:
    demo.remove_release("DEMO", "1")
    assert actions(demo, 5) == [("Demo", "1.0", "remove release")]
    assert shown(demo) == []
    with pytest.raises(OperationRefusedError, match=naming(WHEEL)):
        demo.remove_file(WHEEL)
    demo.add(make_sdist(tmp_path, "demo", "1.0", format="zip"))
    assert actions(demo, 6)[0] == ("demo", "1.0", "new release")


def test_removal_of_a_project_is_one_event_and_frees_its_name(demo: History, tmp_path: Path) -> None:
    demo.remove_project("demo")
    assert actions(demo, 5) == [("Demo", None, "remove project")]
    assert demo.state().project("demo") is None
    with pytest.raises(OperationRefusedError, match=naming(WHEEL)):
        demo.add(tmp_path / WHEEL)
    demo.add(make_wheel(tmp_path, "dEMO", "2.0"))
    assert [action for _, _, action in actions(demo, 6)][:2] == ["create", "add Owner devindex"]
    assert shown(demo) == [("demo-2.0-py3-none-any.whl", False)]


def test_yank_applies_to_the_release(demo: History, tmp_path: Path) -> None:
    demo.yank("demo", "1.0", "it is broken")
    demo.add(make_sdist(tmp_path, "demo", "1.0", format="zip"))
    assert {yanked for _, yanked in shown(demo)} == {"it is broken"}
    assert len(shown(demo)) == 3
    demo.unyank("demo", "1.0")
    assert {yanked for _, yanked in shown(demo)} == {False}
    demo.yank("demo", "1.0")
    assert {yanked for _, yanked in shown(demo)} == {True}
    assert [action for _, _, action in actions(demo, 7)] == ["unyank release", "yank release"]


def test_quarantines_hide_files_until_cleared(demo: History, tmp_path: Path) -> None:
    demo.add(make_wheel(tmp_path, "demo", "2.0"))
    demo.quarantine_release("demo", "1.0")
    assert shown(demo) == [("demo-2.0-py3-none-any.whl", False)]
    demo.quarantine("demo")
    assert shown(demo) == []
    demo.unquarantine_release("demo", "1.0")
    assert shown(demo) == []
    demo.unquarantine("demo")
    assert len(shown(demo)) == 3
    assert [action for _, _, action in actions(demo, 7)] == [
        "release quarantined",
        "project quarantined",
        "release quarantine cleared",
        "project quarantine cleared",
    ]


def test_archiving_does_not_change_serials(demo: History) -> None:
    assert demo.archive("demo") == 5
    project = demo.state().project("demo")
    assert project is not None
    assert (project.status, project.last_serial) == ("archived", 5)
    assert demo.unarchive("demo") == 5
    assert project.status == "active"


def test_serial_at_a_time(history: History, tmp_path: Path) -> None:
    start = datetime(2026, 1, 2, tzinfo=UTC)
    history.add(make_wheel(tmp_path, "demo", "1.0"), at=start)
    history.yank("demo", "1.0", at=start + timedelta(seconds=10))
    moments = (-1, 0, 9.9, 10, 1000)
    assert [history.state().serial_at(start.timestamp() + moment) for moment in moments] == [0, 4, 4, 5, 5]
