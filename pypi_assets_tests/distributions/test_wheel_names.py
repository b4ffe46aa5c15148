"""Destinations of wheel members equal those that pip computes with os.path. Names that pip rejects are rejected."""

import os.path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget, ReadLimits
from pypi_assets.distributions.wheel_names import (
    RefusedNameError,
    WheelNames,
    destination,
    has_bom,
    keep_member,
    metadata_problems,
    normal_parts,
    record_problem,
    site_folder,
    start_up_lines,
    wheel_problem,
)
from pypi_assets_tests.naming import mentions

INFO = "demo-1.0.dist-info/"
UNREADABLE = "WHEEL has no Wheel-Version that all readers accept"


def test_wheel_versions(subtests: pytest.Subtests):
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


def test_usual_wheel_file_is_not_kept():
    extract = Extract()
    for name, content in (("WHEEL", b"Wheel-Version: 1.0\n"), ("METADATA", b"Name: a\n\n\xff"), ("RECORD", b"x")):
        keep_member(extract, INFO + name, content, Budget(ReadLimits()))
    assert extract.files == {f"{INFO}METADATA": b"Name: a\n\n"}
    assert extract.notes == ["ambiguous archive: pip refuses it: METADATA is not UTF-8"]
    keep_member(extract, f"{INFO}RECORD", b"\n", Budget(ReadLimits()))
    assert extract.notes[1:] == ["ambiguous archive: pip refuses it: RECORD has a blank line"]
    keep_member(extract, f"{INFO}WHEEL", b"Wheel-Version: 7\n", Budget(ReadLimits()))
    assert f"{INFO}WHEEL" in extract.files


def test_headers_rejected_by_pip(subtests: pytest.Subtests):
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


def test_record_files_rejected_by_pip(subtests: pytest.Subtests):
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


def test_startup_file_lines():
    assert start_up_lines(b"# import x\n\nimport a; b()\nsub/c \n") == (True, ["sub/c"])
    assert start_up_lines(b"important\n import a\n") == (False, ["important", " import a"])
    assert start_up_lines(b"import\tos\n") == (True, [])


PATHS = st.lists(st.sampled_from(["a", "b.py", ".", "..", "", "x.data", "purelib", "data"]), max_size=7).map("/".join)


def as_pip_computes(path):
    """Return the path from site-packages, or scheme and path, by the same calls as pip, or None if pip rejects it."""
    normal = os.path.normpath(path)
    top = path.split("/", 1)[0]
    if top.endswith(".data"):
        parts = normal.split(os.path.sep, 2)
        if len(parts) < 3 or parts[1] not in {"purelib", "platlib", "headers", "scripts", "data"}:
            return None
        return f"{top}/{parts[1]}/{parts[2]}"
    inside = os.path.abspath(os.path.join("/site", normal))  # noqa: PTH100, PTH118 - the same calls as in pip
    return inside.removeprefix("/site/") if inside.startswith("/site/") else None


@given(PATHS)
@example("demo/../evil.py")
@example("x.data/purelib/x/../evil.py")
@example("x.data/a/../../y/purelib/evil.py")
@example("//x/evil.py")
def test_destinations_equal_those_of_pip(path):
    try:
        place = destination(path)
    except RefusedNameError:
        place = None
    expected = as_pip_computes(path)
    if ".." in path.split("/") and expected is not None and normal_parts(path)[:1] == [".."]:
        return
    assert place == expected


def collected(*names):
    extract = Extract()
    wheel_names = WheelNames(extract, Budget(ReadLimits()))
    wheel_names.add_all(list(names), list(range(len(names))))
    wheel_names.finish()
    return wheel_names, extract


def test_last_spelling_of_a_name_wins():
    names, extract = collected("a.py", "x/../b.py", "./a.py", "d/", "x.data/purelib/c.py", "b.py")
    assert names.places == {"a.py": 2, "b.py": 5, "x.data/purelib/c.py": 4}
    assert extract.notes == ["2 member names occur again; the last one counts"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../a", "lead out of the archive"),
        ("/a", "lead out of the archive"),
        ("x.data/../a", "lead out of the archive's .data folder"),
        ("x.data/purelib", "lie in no scheme of a .data folder"),
        ("x.data", "lie in no scheme of a .data folder"),
        ("x.data/other/a", "lie in an unknown scheme of a .data folder"),
        (".", "have no name of a file"),
        ("", "have no name of a file"),
    ],
)
def test_names_rejected_by_pip_are_omitted_and_noted(name, reason):
    _, extract = collected(name, "a.py")
    assert extract.paths == ["a.py"]
    assert extract.notes == [f"ambiguous archive: pip refuses it: 1 member names that {reason}: {name}"]


@pytest.mark.parametrize("name", ["d-1.dist-info/./METADATA", "d-1.dist-info/METADATA/", "d-1.dist-info/RECORD/."])
def test_other_spelling_never_replaces_metadata_files(name):
    names, extract = collected("d-1.dist-info/METADATA", "d-1.dist-info/RECORD", name)
    assert names.places == {"d-1.dist-info/METADATA": 0, "d-1.dist-info/RECORD": 1}
    assert extract.error is not None


@pytest.mark.parametrize("name", ["e-1.dist-info", "e-1.dist-info/", "e-1.dist-info/sub/"])
def test_second_dist_info_is_an_error_even_if_empty(name):
    _, extract = collected("d-1.dist-info/METADATA", name)
    assert extract.error is not None
    assert mentions(extract.error.text, 2, ".dist-info")
    assert collected("d-1.dist-info/METADATA", "d-1.dist-info/", "x/e-1.dist-info/")[1].error is None


def test_names_too_long_for_file_systems():
    _, extract = collected("a" * 252 + ".py", "b/" * 200 + "c.py")
    assert extract.notes == []
    _, extract = collected("a" * 253 + ".py", "d/" + "é" * 128 + "/e.py")
    assert extract.notes == ["ambiguous archive: pip refuses it on usual file systems: names in 2 folders are too long"]


def test_site_folders():
    folders = ["", "a/b", "x.data/purelib", "x.data/platlib/a", "x.data/scripts", "x.data/data/a", "x-1.dist-info/a"]
    assert [site_folder(folder) for folder in folders] == ["", "a/b", "", "a", None, None, None]
