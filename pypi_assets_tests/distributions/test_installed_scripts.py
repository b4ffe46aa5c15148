"""Entry points are those of importlib.metadata, and what pip makes other scripts of is named."""

import importlib.metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.installed_scripts import installed_entry_points

LONG = "a" * 256
LINES = st.sampled_from(
    ["[g]", "[ g ]", "[[h]]", "a = b:c", "a=d:e", "# x", "f = g # h", " i = j", "", "\ufeff[k]", "=", "[", "l="]
)


@given(st.lists(LINES, max_size=8).map("\n".join))
def test_entry_points_are_those_of_importlib(text):
    groups, problems, doubts = installed_entry_points(text.encode())
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
    assert any("there twice" in doubt for doubt in doubts) == (
        len({(group, name) for group, name, _ in values}) < len(values)
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[console_scripts]\na = b\n", "the script a has no function"),
        ("[gui_scripts]\na = b [c:d]\n", "the script a has no function"),
        ("[console_scripts]\n../a = b:c\n", "the script ../a leads out of its folder, where old versions write it"),
        ("[g]\na\n", "entry_points.txt has a line without ="),
        ("[g]\na\0 = b\n", "entry_points.txt has NUL bytes"),
        (
            "[gui_scripts]\n" + "a" * 256 + " = b:c\n",
            f"the name of the script {'a' * 40} is too long for usual file systems",
        ),
        ("[g]\na = b\n", None),
        ("[console_scripts]\na = b:c [d]\n", None),
    ],
)
def test_entry_points_that_pip_refuses(text, problem):
    assert installed_entry_points(text.encode()).problems == ([problem] if problem else [])


@pytest.mark.parametrize(
    "line",
    ["a = b:c", "a-b.c=b.d:e.f", "a = b:c [x]", "a = b:c [x-y,z=1]", "a.exe = b:c", "\u00e9 = b:c"],
)
def test_lines_of_which_pip_makes_the_script_that_they_name(line):
    assert installed_entry_points(f"[console_scripts]\n{line}\n".encode()).doubts == []


@pytest.mark.parametrize(
    "line", ["a b = b:c", "[a = b:c", "a = b : c", "a = b:c:d", "a = b:c()", "a = b:c [", "a = b:c [x y]", "a = :c"]
)
def test_lines_of_which_pip_makes_another_script_or_none(line):
    name = line.partition(" =")[0]
    assert installed_entry_points(f"[console_scripts]\n{line}\n".encode()).doubts == [
        f"pip refuses 1 scripts, or makes others of their lines: {name}"
    ]


def test_other_groups_have_references_of_any_form():
    assert installed_entry_points(b"[g]\na b = c d\n").doubts == []


def test_what_is_replaced_or_left_out_is_named():
    found = installed_entry_points(b"[g]\na = b  c\nd =\n= e\n")
    assert found.groups == {"g": {"a": "b c"}}
    assert found.doubts == [
        "characters or blanks in 1 entry points are replaced: a",
        "2 entry points without a name or a reference are left out",
    ]


def test_scripts_that_pip_names_by_its_python_too():
    content = b"[console_scripts]\npip = a:b\n"
    assert len(installed_entry_points(content, "demo").doubts) == 1
    assert installed_entry_points(content, "pip").doubts == []
