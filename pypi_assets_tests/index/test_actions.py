import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.index.actions import NO_FILE_CHANGE, Action, FileChange, file_change
from pypi_assets.index.models import ChangelogEvent


def change_of(action: str, version: str | None = "1.0") -> FileChange:
    return file_change(ChangelogEvent("Demo.Pkg", version, 1_700_000_000, action, 1))


@pytest.mark.parametrize(
    "python", ["source", "py3", "cp311", "py2.py3", "any", "", "2.7 and 3", "Owner"], ids=lambda text: text or "empty"
)
def test_added_file_is_parsed_with_any_python_version(python: str) -> None:
    assert change_of(f"add {python} file demo_pkg-1.0.tar.gz") == FileChange(Action.ADD_FILE, "demo_pkg-1.0.tar.gz")


def test_actions_are_parsed(subtests: pytest.Subtests) -> None:
    cases = [
        ("remove file demo-1.0.zip", "1.0", FileChange(Action.REMOVE_FILE, "demo-1.0.zip")),
        ("add source file two words-1.0.zip", "1.0", FileChange(Action.ADD_FILE, "two words-1.0.zip")),
        ("add source file a file b.zip", "1.0", FileChange(Action.ADD_FILE, "b.zip")),
        ("remove", "1.0", FileChange(Action.REMOVE_RELEASE)),
        ("remove", None, FileChange(Action.REMOVE_PROJECT)),
        ("remove release", "1.0", FileChange(Action.REMOVE_RELEASE)),
        ("remove project", None, FileChange(Action.REMOVE_PROJECT)),
        ("project quarantined", None, FileChange(Action.QUARANTINE_PROJECT)),
        ("project quarantine cleared", None, FileChange(Action.UNQUARANTINE_PROJECT)),
        ("release quarantined", "1.0", FileChange(Action.QUARANTINE_RELEASE)),
        ("release quarantine cleared", "1.0", FileChange(Action.UNQUARANTINE_RELEASE)),
        ("yank release", "1.0", FileChange(Action.YANK_RELEASE)),
        ("unyank release", "1.0", FileChange(Action.UNYANK_RELEASE)),
        ("yank file a b.zip", "1.0", FileChange(Action.YANK_FILE, "a b.zip")),
        ("unyank file a.zip", None, FileChange(Action.UNYANK_FILE, "a.zip")),
        ("create", None, FileChange(Action.CREATE_PROJECT)),
        ("remove release", None, FileChange(Action.UNKNOWN)),
        ("yank release", None, FileChange(Action.UNKNOWN)),
        ("release quarantined", None, FileChange(Action.UNKNOWN)),
        ("REMOVE PROJECT", None, FileChange(Action.UNKNOWN)),
        ("remove project now", None, FileChange(Action.UNKNOWN)),
        (f"add py3 file {'a' * 513}", "1.0", FileChange(Action.UNKNOWN)),
        ("", None, FileChange(Action.UNKNOWN)),
    ]
    for action, version, meaning in cases:
        with subtests.test(action=action, version=version):
            assert change_of(action, version) == meaning


def test_actions_that_change_no_file_are_ignored(subtests: pytest.Subtests) -> None:
    cases = [
        "new release",
        "add Owner someone",
        "remove Maintainer someone",
        "change Owner someone to Maintainer",
        "invite Owner someone",
        "accepted Owner someone",
        "revoke_invite Owner someone",
        "rename from Demo",
        "update description, classifiers",
        "add url https://files.example.org/demo-1.0.zip",
        "remove url https://files.example.org/demo-1.0.zip",
        "docupdate",
        "docdestroy",
        "keyrotate",
        "nuke user",
        "add alternate repository https://index.example.org/simple/demo",
    ]
    for action in cases:
        with subtests.test(action=action):
            assert change_of(action).action is Action.IGNORED
            assert Action.IGNORED in NO_FILE_CHANGE


@given(st.text(), st.none() | st.text())
def test_any_action_is_parsed_and_only_file_actions_name_a_file(action: str, version: str | None) -> None:
    change = change_of(action, version)
    assert (change.filename is not None) == (change.action in {Action.ADD_FILE, Action.REMOVE_FILE})
