"""The lines of requirements files, through what they include."""

from pathlib import Path

import pytest

from pypi_assets.locks import requirement_lines as module
from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.requirement_lines import LineKind, requirement_lines
from pypi_assets_tests.naming import naming


def test_what_a_constraint_includes_constrains(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n-c b.txt\n")
    (tmp_path / "b.txt").write_text("two==2\n-r c.txt\n")
    (tmp_path / "c.txt").write_text("three==3\n")
    found = {line.required.name: line.kind for line in requirement_lines(tmp_path / "a.txt")}
    assert found == {"one": LineKind.REQUIREMENT, "two": LineKind.CONSTRAINT, "three": LineKind.CONSTRAINT}


def test_too_many_lines_are_refused_before_they_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 1)
    (tmp_path / "a.txt").write_text("a\n" * 11)
    with pytest.raises(LockError, match=naming("a.txt", 10)):
        list(requirement_lines(tmp_path / "a.txt"))


@pytest.mark.parametrize(("line", "is_elsewhere"), [("six", False), ("-e .", True), ("a @ https://x.org/a.zip", True)])
def test_what_is_of_no_index_is_known(tmp_path: Path, line: str, is_elsewhere: bool) -> None:
    (tmp_path / "a.txt").write_text(line)
    [found] = requirement_lines(tmp_path / "a.txt")
    assert found.is_elsewhere is is_elsewhere
