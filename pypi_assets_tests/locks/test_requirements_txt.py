"""Requirements files: their lines, their included files, and which lines are pins."""

import codecs
from pathlib import Path

import pytest

from pypi_assets.locks import requirement_lines as module
from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.pins import RemarkKind
from pypi_assets.locks.requirement_lines import LineKind, requirement_lines, requirement_pins
from pypi_assets_tests.locks import samples
from pypi_assets_tests.naming import mentions, naming


def test_pins_have_versions_markers_hashes_and_extras(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(samples.REQUIREMENTS)
    (tmp_path / "more.txt").write_text(samples.MORE)
    (tmp_path / "constraints.txt").write_text(samples.CONSTRAINTS)
    pins, remarks = requirement_pins(tmp_path / "requirements.txt")
    by_name = {pin.name: pin for pin in pins}
    assert {name: pin.version for name, pin in by_name.items()} == {
        "PyYAML": "6.0.2",
        "six": "1.17.0",
        "Zope.Interface": "7.2",
        "idna": "3.10",
    }
    assert by_name["PyYAML"].marker == 'python_version >= "3.9"'
    assert [file.hashes for file in by_name["PyYAML"].files] == [{"sha256": "a" * 64}, {"sha256": "b" * 64}]
    assert by_name["Zope.Interface"].extras == {"test"}
    assert by_name["Zope.Interface"].where == f"{tmp_path}/more.txt:1"
    assert [
        mentions(remark.text, *values)
        for remark, values in zip(
            remarks,
            [
                (f"{tmp_path}/requirements.txt:10", "-e ."),
                (f"{tmp_path}/requirements.txt:11", "forked @ git+https://example.org/forked.git"),
            ],
            strict=True,
        )
    ] == [True, True]


def test_line_without_pinned_version_is_rejected(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases = [
        ("a", ["r.txt:1", "a", "a==1.0"]),
        ("a>=1", ["r.txt:1", "a>=1"]),
        ("a==1.*", ["r.txt:1", "a==1.*"]),
        ("a==1,!=2", ["r.txt:1", "a==1,!=2"]),
        ("a===old", ["r.txt:1", "old"]),
        ("a==1\na==2", ["r.txt:2", "a==2", "a==1", "r.txt:1"]),
        ("a==1; os_name=='x'\na==2", ["r.txt:2", "a==2", "a==1", "r.txt:1"]),
        ("a==1; os_name=='x'\na==2; os_name=='x'", ["r.txt:2", "a==2", "a==1", "r.txt:1"]),
        ("a==1 --hash=sha256", ["r.txt:1", "sha256"]),
        ("a==1 ; os_name", ["r.txt:1", "a==1 ; os_name"]),
        ("a\0==1", ["r.txt:1"]),
    ]
    for text, values in cases:
        with subtests.test(text=text):
            (tmp_path / "r.txt").write_text(text)
            with pytest.raises(LockError, match=naming(*values)):
                requirement_pins(tmp_path / "r.txt")


def test_versions_for_different_environments_do_not_conflict(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("a==1; os_name=='x'\na==2; os_name!='x'\nb==1\nb==1; os_name=='x'")
    assert [pin.text for pin in requirement_pins(tmp_path / "r.txt")[0]] == ["a==1", "a==2", "b==1", "b==1"]


def test_unknown_option_is_a_remark(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("--no-such-option=secret\na==1 --other\n--only-final :all:\n")
    pins, remarks = requirement_pins(tmp_path / "r.txt")
    assert [pin.text for pin in pins] == ["a==1"]
    assert [remark.kind for remark in remarks] == [RemarkKind.UNKNOWN_OPTION] * 2
    assert mentions(remarks[0].text, "r.txt:1", "--no-such-option")
    assert "secret" not in remarks[0].text


def test_files_included_by_a_constraint_file_are_constraints(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n-c b.txt\n")
    (tmp_path / "b.txt").write_text("two==2\n-r c.txt\n")
    (tmp_path / "c.txt").write_text("three==3\n")
    kinds = {line.name: line.kind for line in requirement_lines(tmp_path / "a.txt")}
    assert kinds == {"one": LineKind.REQUIREMENT, "two": LineKind.CONSTRAINT, "three": LineKind.CONSTRAINT}


def test_too_many_lines_are_rejected_before_parsing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 1)
    (tmp_path / "a.txt").write_text("a\n" * 11)
    with pytest.raises(LockError, match=naming("a.txt", 10)):
        list(requirement_lines(tmp_path / "a.txt"))


def test_lines_that_use_no_index_are_recognized(tmp_path: Path, subtests: pytest.Subtests) -> None:
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
            [parsed] = requirement_lines(tmp_path / "a.txt")
            assert (parsed.requirement is None, parsed.name) == (is_elsewhere, name)


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


def test_encodings_match_pip(tmp_path: Path, subtests: pytest.Subtests) -> None:
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
