"""The tree of an archive's members equals pip's, or has a doubt if versions of Python differ."""

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pip._internal.utils.unpacking import split_leading_dir

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.unpacked_tree import (
    Doubts,
    Member,
    MemberKind,
    leading_folder,
    split_leading_folder,
    unpacked_tar,
    unpacked_zip,
)
from pypi_assets_tests.distributions.pip_trees import unpacked_by_pip
from pypi_assets_tests.distributions.raw_archives import Entry, raw_zip
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming

FILE, FOLDER = MemberKind.FILE, MemberKind.FOLDER
SYMBOLIC, HARD = MemberKind.SYMBOLIC_LINK, MemberKind.HARD_LINK
TYPES = {FILE: tarfile.REGTYPE, FOLDER: tarfile.DIRTYPE, SYMBOLIC: tarfile.SYMTYPE, HARD: tarfile.LNKTYPE}


def as_tar(members: list[Member]) -> bytes:
    """Return a tar of `members`. The content of each file is its number."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for number, member in enumerate(members):
            info = tarfile.TarInfo(member.name)
            info.type, info.linkname = TYPES[member.kind], member.target
            content = b"%d" % number if member.kind is FILE else b""
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


parts = st.sampled_from(["a", "b", "c", ".", "..", "", "a", "b"])
paths = st.lists(parts, min_size=1, max_size=4).map("/".join)
names = st.builds("{}{}".format, st.sampled_from(["top/", "top/", "top/", "top//", "", "./", "/top/"]), paths)
kinds = st.sampled_from([FILE, FILE, FOLDER, SYMBOLIC, HARD])
targets = st.one_of(paths, names)
drawn = st.lists(st.builds(Member, names, kinds, st.just(0), targets), min_size=1, max_size=6)


@settings(max_examples=examples(120), deadline=None)
@given(drawn)
def test_tar_tree_without_doubt_equals_pip_tree(members):
    members = [member._replace(place=number) for number, member in enumerate(members)]
    members = [each if each.kind in {SYMBOLIC, HARD} else each._replace(target="") for each in members]
    doubts = Doubts()
    read = [each._replace(name=each.name.rstrip("/")) if each.kind is FOLDER else each for each in members]
    tree = unpacked_tar(read, doubts)
    if doubts.notes:
        return
    theirs = unpacked_by_pip(as_tar(members), "demo-1.0.tar.gz")
    assert theirs.refusal is None
    top = f"{tree.usual_top}/" if tree.usual_top else ""
    assert {path.removeprefix(top): b"%d" % place for path, place in tree.files.items()} == theirs.files


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(names, min_size=1, max_size=6))
def test_zip_tree_without_doubt_equals_pip_tree(written):
    doubts = Doubts()
    last = {name: number for number, name in enumerate(written)}
    tree = unpacked_zip([Member(name, FILE, last[name]) for name in written], doubts)
    if doubts.notes:
        return
    content = raw_zip([Entry(name.encode(), b"%d" % number) for number, name in enumerate(written)])
    theirs = unpacked_by_pip(content, "demo-1.0.zip")
    assert theirs.refusal is None
    top = f"{tree.usual_top}/" if tree.usual_top else ""
    assert {path.removeprefix(top): b"%d" % place for path, place in tree.files.items()} == theirs.files


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("demo-1.0/a/b", ("demo-1.0", "a/b")),
        ("/demo-1.0/a", ("demo-1.0", "a")),
        ("demo-1.0\\a/b", ("demo-1.0", "a/b")),
        ("demo-1.0/a\\b", ("demo-1.0", "a\\b")),
        ("demo-1.0", ("demo-1.0", "")),
        ("./a", (".", "a")),
        ("", ("", "")),
    ],
)
def test_leading_folder_is_removed_like_in_pip(name, expected):
    assert split_leading_folder(name) == expected == tuple(split_leading_dir(name))


def test_leading_folder_is_common_to_all_members():
    assert leading_folder(["a/b", "a\\c", "/a"]) == "a"
    assert leading_folder(["a/b", "b"]) is None
    assert leading_folder(["a/b", ""]) is None
    assert leading_folder([]) is None


@pytest.mark.nightly
def test_number_of_names_is_limited():
    members = [Member("a/" * 2000, FOLDER)] * 1600
    with pytest.raises(LimitExceededError, match=naming(3000000)):
        unpacked_tar(members, Doubts())
    assert unpacked_tar(members[:100], Doubts()).files == {}


def test_number_of_folders_is_limited():
    deep = "/x" * 350
    members = [Member(f"./{number}{deep}", FOLDER) for number in range(300)]
    with pytest.raises(LimitExceededError, match=naming(100000)):
        unpacked_tar(members, Doubts())
    assert unpacked_tar(members[:100], Doubts()).files == {}
