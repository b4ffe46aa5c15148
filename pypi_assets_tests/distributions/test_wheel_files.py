"""The files that pip reads by exact name are read as pip reads them."""

import importlib.metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget, Limits
from pypi_assets.distributions.wheel_files import (
    has_bom,
    installed_entry_points,
    keep_member,
    metadata_problems,
    start_up_lines,
    wheel_problem,
)

INFO = "demo-1.0.dist-info/"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"Wheel-Version: 1.0\nTag: a\n", None),
        (b"Tag: a\nwheel-version:1.9 \n", None),
        (b"Wheel-Version: 0\n", None),
        (b"Wheel-Version: 2.0\n", "Wheel-Version is 2.0"),
        (b"Wheel-Version: 1.x\n", "WHEEL has no Wheel-Version"),
        (b"", "WHEEL has no Wheel-Version"),
        (b"\xef\xbb\xbfWheel-Version: 1.0\n", "WHEEL has no Wheel-Version"),
        (b"Wheel-Version: 1.0\nX: \xff\n", "WHEEL is not UTF-8"),
    ],
)
def test_versions_of_wheels(content, problem):
    assert wheel_problem(content) == problem


def test_a_usual_wheel_file_is_not_kept():
    extract = Extract()
    for name, content in (("WHEEL", b"Wheel-Version: 1.0\n"), ("METADATA", b"Name: a\n\n\xff"), ("RECORD", b"x")):
        keep_member(extract, INFO + name, content, Budget(Limits()))
    assert extract.files == {f"{INFO}METADATA": b"Name: a\n\n", f"{INFO}RECORD": b"x"}
    assert extract.notes == ["ambiguous archive: pip refuses it: METADATA is not UTF-8"]
    keep_member(extract, f"{INFO}WHEEL", b"Wheel-Version: 7\n", Budget(Limits()))
    assert f"{INFO}WHEEL" in extract.files


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (b"Name: a\nRequires-Dist: b\n >=1\n", 1),
        (b"requires-dist: b\r\n\t>=1\r\n", 1),
        (b"Name: a\rREQUIRES-DIST: b\r  >=1\r", 1),
        (b"Requires-Dist:\n b\n", 0),
        (b"License: b\n >=1\nRequires-Dist: c\n", 0),
        (b"Requires-Dist: b\n \n", 0),
        (b"Requires-Dist: a\0b\n", 1),
    ],
)
def test_headers_that_pip_refuses(content, count):
    assert len(list(metadata_problems(content))) == count


def test_byte_order_marks():
    assert (has_bom(b"\xef\xbb\xbfName: a"), has_bom(b"Name: a")) == (True, False)


LINES = st.sampled_from(
    ["[g]", "[ g ]", "[[h]]", "a = b:c", "a=d:e", "# x", "f = g # h", " i = j", "", "\ufeff[k]", "=", "[", "l="]
)


@given(st.lists(LINES, max_size=8).map("\n".join))
def test_entry_points_are_those_of_importlib(text):
    groups, problems, repeated = installed_entry_points(text.encode())
    try:
        found = list(importlib.metadata.EntryPoints._from_text(text))
    except TypeError:
        assert problems
        return
    expected: dict[str, dict[str, str]] = {}
    for each in found:
        if each.name and each.value:
            expected.setdefault(each.group, {})[each.name] = each.value
    assert groups == expected
    values = {(each.group, each.name, each.value) for each in found if each.name and each.value}
    assert bool(repeated) == (len({(group, name) for group, name, _ in values}) < len(values))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[console_scripts]\na = b\n", "the script a has no function"),
        ("[gui_scripts]\na = b [c:d]\n", "the script a has no function"),
        ("[console_scripts]\n../a = b:c\n", "the script ../a leads out of its folder, where old versions write it"),
        ("[g]\na\n", "entry_points.txt has a line without ="),
        ("[g]\na = b\n", None),
        ("[console_scripts]\na = b:c [d]\n", None),
    ],
)
def test_entry_points_that_pip_refuses(text, problem):
    assert installed_entry_points(text.encode())[1] == ([problem] if problem else [])


def test_lines_of_start_up_files():
    assert start_up_lines(b"# import x\n\nimport a; b()\nsub/c \n") == (True, ["sub/c"])
    assert start_up_lines(b"important\n import a\n") == (False, ["important", " import a"])
    assert start_up_lines(b"import\tos\n") == (True, [])
