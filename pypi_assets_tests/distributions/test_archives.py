"""Names of archive members: safe and unique."""

import io
import zipfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.archives import BLOCK, BadTarError, SafeNames, TarStream, padded
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget, ReadLimits
from pypi_assets.distributions.wheel_names import WheelNames
from pypi_assets_tests.builders import core_metadata, tar_bytes, zip_bytes
from pypi_assets_tests.distributions.small_archives import METADATA, PKG_INFO, SDIST, WHEEL, read
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming

CONTENT = bytes(range(256)) * 8


def stream(size: int) -> TarStream:
    return TarStream(iter([CONTENT[at : at + size] for at in range(0, len(CONTENT), size)]))


@pytest.mark.parametrize("size", [1, 7, 500, 5000])
def test_stream_pieces_of_any_size(size):
    tar = stream(size)
    assert tar.read(3) == CONTENT[:3]
    tar.skip(700)
    assert (tar.position, tar.read_whole(5)) == (703, CONTENT[703:708])
    assert tar.position == 703 + BLOCK
    tar.skip_rest()
    assert tar.read(1) == b""


def test_stream_that_ends_early_is_an_error():
    with pytest.raises(BadTarError, match=naming(2048)):
        stream(100).skip(len(CONTENT) + 1)
    with pytest.raises(BadTarError, match=naming(2048)):
        stream(100).read_padded(len(CONTENT) + 1)


def test_read_whole_blocks():
    assert list(map(padded, (0, 1, 512, 513))) == [0, 512, 512, 1024]


@pytest.mark.parametrize("build", [zip_bytes, tar_bytes])
def test_names_that_lead_outside_are_harmless(build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    members = dict.fromkeys(
        ["/x/evil.py", "../evil.py", "demo-1.0/../../evil.py", "demo-1.0/a.py", "./demo-1.0/b.py"], ""
    )
    filename = "demo-1.0.zip" if build is zip_bytes else SDIST
    record = read(build(members | {"demo-1.0/PKG-INFO": PKG_INFO}), filename)
    assert record.error is None
    assert record.modules == ("a", "b")
    leaving = "3" if build is zip_bytes else "2"  # tarfile makes absolute names relative
    assert any(f"{leaving} member names that lead out of the archive are ignored" in note for note in record.notes)
    assert list(tmp_path.iterdir()) == []


def test_last_of_repeated_members_wins():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(METADATA, core_metadata("demo", "1.0", requires_dist=["first"]))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(METADATA, core_metadata("demo", "1.0", requires_dist=["last"]))
    record = read(buffer.getvalue(), WHEEL)
    assert record.requires_dist == ("last",)
    assert "1 member names occur again; the last one counts" in record.notes


PARTS = (
    "",
    ".",
    "..",
    "a",
    "A",
    ".a",
    "a.",
    "...",
    "a b",
    "-a",
    "é",
    "\n",
    "\na",
    "a\n.",
    "\0",
    "x-1.dist-info",
    "x.data",
)
NAMES = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize("kind", [SafeNames, WheelNames])
@settings(max_examples=examples(300), deadline=None)
@given(names=st.lists(NAMES, max_size=6))
@example(names=["demo/.hidden/a", "demo/a", "demo/"])
@example(names=["demo/a", "demo/./a"])
def test_adding_names_in_bulk_equals_one_by_one(kind, names):
    at_once, single = Extract(), Extract()
    fast, slow = kind(at_once, Budget(ReadLimits())), kind(single, Budget(ReadLimits()))
    fast.add_all(names, list(range(len(names))))
    for place, name in enumerate(names):
        slow.add_all([name], [place])
    assert fast.places == slow.places
    fast.finish()
    slow.finish()
    assert at_once == single
    for place, name in enumerate(names):
        cut = name.partition("\0")[0]
        expected = kind(Extract(), Budget(ReadLimits())).add(cut, place, is_file=not cut.endswith("/"))
        assert expected is None or expected in fast.places
