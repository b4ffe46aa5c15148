"""The files that pip reads by exact name are read as pip reads them."""

import pytest

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget, Limits
from pypi_assets.distributions.wheel_files import (
    has_bom,
    keep_member,
    metadata_problems,
    record_problem,
    start_up_lines,
    wheel_problem,
)

INFO = "demo-1.0.dist-info/"
UNREADABLE = "WHEEL has no Wheel-Version that all readers accept"


def test_versions_of_wheels(subtests: pytest.Subtests):
    cases = [
        (b"Wheel-Version: 1.0\nTag: a\n", None),
        (b"Tag: a\nwheel-version:1.9 \n", None),
        (b"Wheel-Version: 0\n", None),
        (b"Wheel-Version: 2.0\n", "Wheel-Version is 2.0"),
        (b"Wheel-Version: 1.0\n x\n", UNREADABLE),
        (b"Wheel-Version: 1." + b"0" * 4301, UNREADABLE),
        (b"Wheel-Version: 00000000001.0\n", None),
        (b"Wheel-Version: 00000000002.0\n", "Wheel-Version is 00000000002.0"),
        (b"Wheel-Version: 1.x\n", UNREADABLE),
        (b"", UNREADABLE),
        (b"\xef\xbb\xbfWheel-Version: 1.0\n", UNREADABLE),
        (b"Wheel-Version: 1.0\nX: \xff\n", "WHEEL is not UTF-8"),
    ]
    for content, problem in cases:
        with subtests.test(content=content):
            assert wheel_problem(content) == problem


def test_a_usual_wheel_file_is_not_kept():
    extract = Extract()
    for name, content in (("WHEEL", b"Wheel-Version: 1.0\n"), ("METADATA", b"Name: a\n\n\xff"), ("RECORD", b"x")):
        keep_member(extract, INFO + name, content, Budget(Limits()))
    assert extract.files == {f"{INFO}METADATA": b"Name: a\n\n"}
    assert extract.notes == ["ambiguous archive: pip refuses it: METADATA is not UTF-8"]
    keep_member(extract, f"{INFO}RECORD", b"\n", Budget(Limits()))
    assert extract.notes[1:] == ["ambiguous archive: pip refuses it: RECORD has a blank line"]
    keep_member(extract, f"{INFO}WHEEL", b"Wheel-Version: 7\n", Budget(Limits()))
    assert f"{INFO}WHEEL" in extract.files


def test_headers_that_pip_refuses(subtests: pytest.Subtests):
    cases = [
        (b"Name: a\nRequires-Dist: b\n >=1\n", 1),
        (b"requires-dist: b\r\n\t>=1\r\n", 1),
        (b"Name: a\rREQUIRES-DIST: b\r  >=1\r", 1),
        (b"Requires-Dist:\n b\n", 0),
        (b"License: b\n >=1\nRequires-Dist: c\n", 0),
        (b"Requires-Dist: b\n \n", 0),
        (b"Requires-Dist: a\0b\n", 2),
        (b"Requires-Dist: a\x7f\n", 1),
        (b"Requires-Dist: a\x0c\n", 0),
        ("Provides-Extra: a\u200b\nAuthor: \u00e9\n".encode(), 1),
        ("Requires-Dist: a\nAuthor: \u00e9\u200b\n".encode(), 0),
        (b"Name: a \nRequires-Dist: b\n", 1),
        (b"Version: 1\nname:\n a\n", 1),
        (b"Name: \t a\nName: b \n", 0),
    ]
    for content, count in cases:
        with subtests.test(content=content):
            assert len(list(metadata_problems(content))) == count


def test_records_of_files_that_pip_refuses(subtests: pytest.Subtests):
    cases = [
        (b"a,,\nb,,\n", None),
        (b"a,,\r\nb,,\r\n", None),
        (b" \n", None),
        (b"", None),
        (b"a,,\n\n", "RECORD has a blank line"),
        (b"\r\na,,", "RECORD has a blank line"),
        ("a\u2028\u2028".encode(), "RECORD has a blank line"),
        (b"\xe9", "RECORD is not UTF-8"),
        (b"a" * 131_073, "RECORD has a line that is too long"),
        (b"a\n" * 131_073, None),
    ]
    for content, problem in cases:
        with subtests.test(content=content):
            assert record_problem(content) == problem


def test_byte_order_marks():
    assert (has_bom(b"\xef\xbb\xbfName: a"), has_bom(b"Name: a")) == (True, False)


def test_lines_of_start_up_files():
    assert start_up_lines(b"# import x\n\nimport a; b()\nsub/c \n") == (True, ["sub/c"])
    assert start_up_lines(b"important\n import a\n") == (False, ["important", " import a"])
    assert start_up_lines(b"import\tos\n") == (True, [])
