"""The lines of requirements files, through what they include."""

import codecs
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
    found = {line.name: line.kind for line in requirement_lines(tmp_path / "a.txt")}
    assert found == {"one": LineKind.REQUIREMENT, "two": LineKind.CONSTRAINT, "three": LineKind.CONSTRAINT}


def test_too_many_lines_are_refused_before_they_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 1)
    (tmp_path / "a.txt").write_text("a\n" * 11)
    with pytest.raises(LockError, match=naming("a.txt", 10)):
        list(requirement_lines(tmp_path / "a.txt"))


def test_what_is_of_no_index_is_known(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases = [
        ("six", False, "six"),
        ("a==1 ; python_version < '3.9'", False, "a"),
        ("-e .", True, None),
        ("-e git+https://x.org/a.git#egg=a[b]&subdirectory=c", True, "a"),
        ("--editable='a @ git+https://x.org/a.git'", True, "a"),
        ("a @ https://x.org/a.zip", True, "a"),
        ("a @ file:///x/a-1.tar.gz ; python_version < '3.9'", True, "a"),
        ("https://x.org/a-1.0-py3-none-any.whl", True, "a"),
        ("https://x.org/a.zip ; python_version < '3.9'", True, None),
        ("https://[x/a.zip", True, None),
        ("git+ssh://git@x.org/a.git@main#egg=a", True, "a"),
        ("./folder", True, None),
        ("folder/other", True, None),
        ("folder\\other", True, None),
        ("demo-1.0.tar.gz", True, None),
        ("demo-1.0-py3-none-any.whl", True, "demo"),
    ]
    for line, is_elsewhere, name in cases:
        with subtests.test(line=line):
            (tmp_path / "a.txt").write_text(line)
            [found] = requirement_lines(tmp_path / "a.txt")
            assert (found.requirement is None, found.name) == (is_elsewhere, name)


def test_lines_are_joined_and_comments_removed(tmp_path: Path) -> None:
    lines = [
        "# first \\",
        "one # of \\",
        "swallowed",
        "",
        "two \\",
        "  --hash=sha256:1 \\",
        "# within",
        "three # x",
        "four \\",
    ]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    found = [(line.where.rpartition(":")[2], line.text, line.hashes) for line in requirement_lines(tmp_path / "a.txt")]
    assert found == [("2", "one", ()), ("5", "two", ("sha256:1",)), ("8", "three", ()), ("9", "four", ())]


def test_encodings_are_those_of_pip(tmp_path: Path, subtests: pytest.Subtests) -> None:
    text = "caf\u00e9-x==1"
    cases = [
        codecs.BOM_UTF8 + b"six==1",
        codecs.BOM_UTF16_LE + "six==1".encode("utf-16-le"),
        codecs.BOM_UTF32_BE + "six==1".encode("utf-32-be"),
        b"# -*- coding: latin-1 -*-\nsix==1 # \xe9",
        "six==1 # \u00e9".encode(),
    ]
    for content in cases:
        with subtests.test(content=content):
            (tmp_path / "a.txt").write_bytes(content)
            assert [line.text for line in requirement_lines(tmp_path / "a.txt")] == ["six==1"]
    for content in (text.encode("latin-1"), b"# coding: never-known\nsix"):
        with subtests.test(content=content):
            (tmp_path / "a.txt").write_bytes(content)
            with pytest.raises(LockError, match=naming("a.txt")):
                list(requirement_lines(tmp_path / "a.txt"))
