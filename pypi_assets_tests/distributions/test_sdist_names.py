"""Names of an sdist's members: usual names are used as they are, all others are handled like in pip."""

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget, LimitExceededError, ReadLimits
from pypi_assets.distributions.sdist_names import SdistNames, are_usual, common_top, readable
from pypi_assets.distributions.unpacked_tree import Doubts, Member, MemberKind, unpacked_tar
from pypi_assets_tests.examples import examples


def test_usual_names(subtests: pytest.Subtests):
    cases = [
        ("demo-1.0/demo.py", True),
        ("demo-1.0/.github/x.yml", True),
        ("demo-1.0/..x/...", True),
        (".hidden", True),
        ("demo-1.0/é.py", True),
        ("demo-1.0/" + "n" * 255, True),
        ("", False),
        (".", False),
        ("..", False),
        ("./a", False),
        ("/a", False),
        ("a//b", False),
        ("a/./b", False),
        ("a/../b", False),
        ("a/b/", False),
        ("a/b/..", False),
        ("a/b/.", False),
        ("a\\b", False),
        ("a\0b", False),
        ("demo-1.0/" + "n" * 256, False),
        ("demo-1.0/" + "é" * 64, False),
        ("d/" * 460 + "a", False),
    ]
    for name, expected in cases:
        with subtests.test(name=name):
            assert are_usual([name], []) is expected
            assert are_usual([], [name]) is expected
            if expected:
                doubts = Doubts()
                tree = unpacked_tar([Member(name, MemberKind.FILE, 7), Member("x", MemberKind.FILE, 8)], doubts)
                assert (tree.files, doubts.notes) == ({name: 7, "x": 8}, [])


PARTS = (
    "",
    ".",
    "..",
    "a",
    ".a",
    "a.",
    "...",
    "é" * 63,
    "é" * 64,
    "n" * 255,
    "n" * 256,
    "a\nb",
    "n" * 200 + "\n" + "n" * 60,
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4), min_size=1, max_size=3))
def test_name_with_odd_part_is_not_usual(names):
    is_ascii = all(part.isascii() for parts in names for part in parts)
    longest = 255 if is_ascii else 63
    has_odd = any(part in {"", ".", ".."} or len(part) > longest for parts in names for part in parts)
    assert not has_odd or not are_usual([], list(map("/".join, names)))
    if not has_odd and all("\n" not in part for parts in names for part in parts):
        assert are_usual([], list(map("/".join, names)))


def test_conflicting_files_and_folders_are_not_usual():
    assert are_usual(["a/b", "a/c"], ["a"])
    assert not are_usual(["a/b", "a"], [])
    assert not are_usual(["a/b/c/d", "a/b"], [])
    assert not are_usual(["a"], ["a/b"])


def test_common_top():
    assert common_top(["a/b", "a/c/d"], ["a"]) == "a"
    assert common_top(["a/b"], ["b"]) is None
    assert common_top(["a", "a/b"], []) is None
    assert common_top([], []) is None


def test_invalid_bytes_are_replaced():
    assert readable(b"\xff\xe9a".decode(errors="surrogateescape")) == "\ufffd\ufffda"
    assert readable("é") == "é"


def collected(*names: str, **limits: int) -> tuple[Extract, SdistNames]:
    extract = Extract()
    collected_names = SdistNames(extract, Budget(ReadLimits(**limits)))
    collected_names.add_all(list(names), list(range(len(names))))
    return extract, collected_names


def test_last_member_of_a_name_wins():
    extract, names = collected("demo-1.0/a.py", "demo-1.0/x/", "demo-1.0/x/../a.py", "demo-1.0/b.py")
    assert names.places == {"demo-1.0/a.py": 2, "demo-1.0/b.py": 3}
    names.finish()
    assert extract.paths == ["demo-1.0/a.py", "demo-1.0/b.py"]
    assert extract.notes == ["1 member names occur again; the last one counts"]


def test_name_ends_at_nul_as_in_zipfile():
    extract, names = collected("demo-1.0/a.py\0.txt", "demo-1.0/b.py")
    names.finish()
    assert extract.paths == ["demo-1.0/a.py", "demo-1.0/b.py"]
    assert zipfile.ZipInfo("a.py\0.txt").filename == "a.py"


def test_name_limits():
    with pytest.raises(LimitExceededError):
        collected("a", "b", max_members=1)
    extract, names = collected(*["a/../" * 800 + str(number) for number in range(2000)])
    names.finish()
    assert extract.error is not None
    assert io.StringIO(extract.error.text).read().startswith("the members' names have more than")


def test_many_deep_folders_are_not_usual():
    deep = "/".join(["xx"] * 280)
    assert are_usual([f"{number}/{deep}" for number in range(40)], [])
    assert not are_usual([f"{number}/{deep}" for number in range(400)], [])
