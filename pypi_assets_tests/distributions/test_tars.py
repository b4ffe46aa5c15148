"""Tars: members match tarfile's, and a broken archive keeps the members before the error."""

import gzip
import hashlib
import io
import tarfile

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from pypi_assets.distributions import tar_headers
from pypi_assets.distributions.archives import TarStream
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import MIB
from pypi_assets.distributions.reader import read_distribution
from pypi_assets.distributions.record import ErrorKind
from pypi_assets.distributions.tar_headers import content_of, read_members, skip_content
from pypi_assets.distributions.unpacked_tree import Doubts, MemberKind
from pypi_assets_tests.builders import tar_bytes
from pypi_assets_tests.distributions.hostile import sparse_old_gnu, sparse_pax
from pypi_assets_tests.distributions.made_extracts import extract_of
from pypi_assets_tests.distributions.raw_archives import (
    BLOCK,
    long_name,
    padded,
    pax_header,
    pax_record,
    tar_header,
    tar_member,
    tar_number,
)
from pypi_assets_tests.distributions.small_archives import PKG_INFO, SDIST
from pypi_assets_tests.distributions.tar_extracts import Dripping, extract
from pypi_assets_tests.examples import examples

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def error_text(extracted: Extract) -> str:
    assert extracted.error is not None
    assert extracted.error.kind is ErrorKind.CORRUPT_ARCHIVE
    return extracted.error.text


def by_tarfile(content: bytes) -> tuple[list[str], dict[str, bytes]]:
    """Return names and contents of regular files, read by tarfile."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for info in archive:
            if info.isfile() and (member := archive.extractfile(info)) is not None:
                files[info.name] = member.read()
    return list(files), files


def members_by_tarfile(content: bytes) -> list[tuple[object, ...]]:
    """Return name, kind, target and content of each member, read by tarfile."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:", errors="surrogateescape") as archive:
        return [
            (info.name, KINDS.get(info.type), info.linkname, archive.extractfile(info).read() if info.isreg() else None)  # type: ignore[union-attr]
            for info in archive
        ]


def members_read(content: bytes, drip: int) -> list[tuple[object, ...]]:
    """Return the same, read by the tar reader."""
    tar = TarStream(iter([content[at : at + drip] for at in range(0, len(content), drip)]))
    members = []
    for member in read_members(tar, Doubts()):
        kept = content_of(tar, member) if member.kind is MemberKind.FILE else skip_content(tar, member)
        members.append((member.name, member.kind, member.target, kept))
    return members


KINDS = {
    tarfile.REGTYPE: MemberKind.FILE,
    tarfile.SYMTYPE: MemberKind.SYMBOLIC_LINK,
    tarfile.LNKTYPE: MemberKind.HARD_LINK,
    tarfile.DIRTYPE: MemberKind.FOLDER,
    tarfile.FIFOTYPE: MemberKind.SPECIAL,
}


segments = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=130)


names = (
    st.lists(
        segments.filter(lambda segment: segment not in {".", "..", "PKG-INFO", "METADATA"}), min_size=1, max_size=4
    )
    .map("/".join)
    .filter(lambda name: not name.endswith("/"))
)


kinds = st.sampled_from([tarfile.REGTYPE] * 3 + [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])


@st.composite
def members(draw: st.DrawFn) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(draw(names))
    info.type = draw(kinds)
    info.linkname = draw(names) if info.islnk() or info.issym() else ""
    info.mtime = draw(st.sampled_from([0, 1_700_000_000, 1.5]))
    info.uid = draw(st.sampled_from([0, 1000, 8**9]))
    content = draw(st.binary(max_size=1500)) * draw(st.sampled_from([1, 1, 50])) if info.isreg() else b""
    info.size = len(content)
    return info, content


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.lists(members(), min_size=1, max_size=6, unique_by=lambda member: member[0].name),
    st.dictionaries(st.sampled_from(["comment", "atime", "x.y"]), segments, max_size=2),
    st.sampled_from([1, 7, 100, 511, 512, 513, 10_000, MIB]),
)
def test_tars_of_tarfile_are_read_like_tarfile(format_name, written, shared_pax, drip):
    buffer = io.BytesIO()
    pax = shared_pax if format_name == "pax" else None
    try:
        with tarfile.open(fileobj=buffer, mode="w", format=FORMATS[format_name], pax_headers=pax) as archive:
            for info, content in written:
                archive.addfile(info, io.BytesIO(content))
    except ValueError:  # ustar has no space for it
        reject()
    content = buffer.getvalue()
    assert members_read(content, drip) == members_by_tarfile(content)
    extracted = extract(content, drip=drip)
    assert extracted.error is None
    assert extract(gzip.compress(content, 1), drip=max(drip, 100)) == extracted


def sparse_by_extensions(name: bytes, regions: list[tuple[int, bytes]], size: int) -> bytes:
    """Return an old GNU sparse member of `count` regions, with a map that continues after the header."""
    pairs = [tar_number(offset, 12) + tar_number(len(data), 12) for offset, data in regions]
    data = b"".join(data for _, data in regions)
    start, rest = pairs[:4], pairs[4:]
    tail = bytes(41) + b"".join(start).ljust(96, b"\0") + (b"\1" if rest else b"\0") + tar_number(size, 12)
    blocks = [rest[at : at + 21] for at in range(0, len(rest), 21)]
    more = [
        b"".join(block).ljust(504, b"\0") + (b"\0" if block is blocks[-1] else b"\1") + bytes(7) for block in blocks
    ]
    return tar_header(name, len(data), b"S", magic=b"ustar  \0", tail=tail) + b"".join(more) + padded(data)


@pytest.mark.parametrize(
    "sparse",
    [
        sparse_old_gnu(b"a.txt", b"x = 1\n" * 200, 5000, offset=512),
        sparse_by_extensions(b"a.txt", [(512 * number, b"%d\n" % number) for number in range(60)], 40_000),
        *(sparse_pax(version, b"a.txt", b"x = 1\n" * 200, 5000) for version in ("0.0", "0.1", "1.0")),
    ],
    ids=["old", "old, extended", "0.0", "0.1", "1.0"],
)
def test_sparse_files_have_holes(sparse):
    content = sparse + tar_member(b"b.txt", b"after")
    expected = by_tarfile(content)
    assert len(expected[1]["a.txt"]) in {5000, 40_000}
    extracted = extract(content)
    assert (extracted.paths, extracted.files, extracted.error) == (*expected, None)
    assert extract(content, lambda name: name == "b.txt").files == {"b.txt": b"after"}


SPARSE_1_0 = pax_record(b"GNU.sparse.major", b"1") + pax_record(b"GNU.sparse.minor", b"0")


@pytest.mark.parametrize(
    "sparse",
    [
        sparse_old_gnu(b"a.txt", b"x" * 100, 50),
        sparse_pax("1.0", b"a.txt", b"x" * 100, 50),
        pax_header(pax_record(b"GNU.sparse.map", b"0,100,200") + pax_record(b"GNU.sparse.size", b"300"))
        + tar_member(b"a.txt", b"x" * 50),
        pax_header(pax_record(b"GNU.sparse.map", b"0,-5") + pax_record(b"GNU.sparse.size", b"300"))
        + tar_member(b"a.txt", b"x" * 50),
        pax_header(SPARSE_1_0) + tar_member(b"a.txt", b"9\n1\n2\n"),
        pax_header(SPARSE_1_0) + tar_member(b"a.txt", b""),
    ],
)
def test_invalid_sparse_maps(sparse):
    extracted = extract(sparse + tar_member(b"b.txt"))
    assert (extracted.paths, extracted.files) == (["a.txt"], {})
    assert error_text(extracted).startswith("BadTarError: ")


def test_sparse_maps_are_limited():
    regions = [(number, b"") for number in range(tar_headers.MAX_REGIONS + 30)]
    many = b",".join([b"0"] * 2 * (tar_headers.MAX_REGIONS + 2))
    for content in (
        sparse_by_extensions(b"a.txt", regions, 5000),
        pax_header(pax_record(b"GNU.sparse.map", many)) + tar_member(b"a.txt"),
        pax_header(SPARSE_1_0) + tar_member(b"a.txt", b"99999\n"),
    ):
        error = extract(content).error
    assert error is not None
    assert error.kind is ErrorKind.LIMIT_EXCEEDED
    assert "10000" in error.text


def with_signed_checksum(name: bytes) -> bytes:
    """Return a header as some old systems wrote it, with a checksum of signed bytes."""
    header = tar_header(name)
    signed = sum(memoryview(header).cast("b")) - sum(header[148:156]) + 8 * 32
    return header[:148] + b"%06o\0 " % signed + header[156:]


def test_member_name_and_next_member(subtests: pytest.Subtests):
    cases = [
        (tar_header(b"demo.py", magic=bytes(8)), "demo.py"),
        (tar_header(b"demo.py", kind=b"\0", magic=bytes(8)), "demo.py"),
        (tar_header(b"demo.py", prefix=b"a/b"), "a/b/demo.py"),
        (tar_header(b"n" * 100, prefix=b"p" * 155), f"{'p' * 155}/{'n' * 100}"),
        (tar_header("dém\u2028o.py".encode()), "dém\u2028o.py"),
        (with_signed_checksum("démo.py".encode()), "démo.py"),
        (tar_header(b"d\xe9mo.py"), "d\ufffdmo.py"),
        (tar_header(b"\xed\xa0\x80.py"), "\ufffd\ufffd\ufffd.py"),
        (tar_header(b"demo.py\0rubbish"), "demo.py"),
        (tar_header(b"demo.py", size_field=b"           "), "demo.py"),
        (tar_header(b"demo.py", size_field=b"\x80" + bytes(11)), "demo.py"),
        (long_name(b"\xff" * 120) + tar_header(b"short"), "\ufffd" * 120),
        (long_name(b"first") + long_name(b"second") + tar_header(b"short"), "first"),
        (long_name(b"y/../" * 60 + b"next.txt", b"K") + tar_header(b"demo.py", kind=b"2"), "demo.py"),
        (pax_header(pax_record(b"path", b"a=b\nc")) + tar_header(b"short"), "a=b\nc"),
        (pax_header(pax_record(b"path", b"d\xff")) + tar_header(b"short"), "d\ufffd"),
        (pax_header(pax_record(b"path", b"")) + tar_header(b"short"), "short"),
        (pax_header(pax_record(b"path", b"demo.py"), b"X") + tar_header(b"short"), "demo.py"),
        (pax_header(pax_record(b"path", b"all.py"), b"g") + tar_header(b"short"), "all.py"),
        (tar_header(b"demo.py", size=3000, kind=b"2", link=b"next.txt"), "demo.py"),
    ]
    for content, name in cases:
        with subtests.test(content=content):
            extracted = extract(content + pax_header(pax_record(b"path", b"next.txt")) + tar_member(b"x", b"next"))
            assert extracted.error is None
            assert extracted.paths == [name, "next.txt"]
            assert extracted.files["next.txt"] == b"next"
            assert "".join(extracted.paths).encode()


def test_global_header_renames_all_following_members():
    shared = pax_header(pax_record(b"size", b"4") + pax_record(b"path", b"demo/a.txt"), b"g")
    content = shared + tar_member(b"x", b"1234") + tar_member(b"y", b"567890")
    extracted = extract(content)
    assert extracted.files == {"demo/a.txt": b"5678"}
    assert any(note.startswith("ambiguous archive: 1 global headers") for note in extracted.notes)


def test_only_regular_types_are_files():
    headers = [tar_header(b"x%d" % kind, kind=b"%d" % kind) for kind in (3, 4, 5, 6)]
    unknown = tar_member(b"volume", b"its data", kind=b"V")
    folders = tar_header(b"old/", 100, b"\0") + tar_header(b"new/")
    assert extract(b"".join(headers) + unknown + folders + tar_header(b"a.txt")).paths == ["new", "a.txt"]


def test_broken_member_keeps_earlier_members(subtests: pytest.Subtests):
    cases_of_broken = [
        (tar_header(b"x", checksum_error=1), "BadTarError: a broken header at 1024"),
        (tar_header("é".encode(), checksum_error=1), "BadTarError: a broken header at 1024"),
        (tar_header(b"x", size=-512), "BadTarError: a broken header at 1024"),
        (tar_header(b"x", size_field=b"-1"), "BadTarError: a broken header at 1024"),
        (tar_header(b"x", size_field=b"9"), "BadTarError: no number: b'9"),
        (tar_header(b"x.bin", 2**60), "BadTarError: the tar ends at 1536, in the middle of a member"),
        (tar_member(b"x", b"content")[:-1], "BadTarError: the tar ends at 2047, in the middle of a member"),
        (tar_header(b"x")[:-1], "BadTarError: the tar ends at 1535, in the middle of a member"),
        (long_name(b"x"), "BadTarError: the tar ends at 2048, in the middle of a member"),
        (long_name(b"x" * 600)[: 2 * BLOCK], "BadTarError: the tar ends at 2048, in the middle of a member"),
        (pax_header(b""), "BadTarError: the tar ends at 1536, in the middle of a member"),
        (pax_header(pax_record(b"size", b"-3")) + tar_header(b"x"), "BadTarError: no number: b'-3'"),
        (
            pax_header(pax_record(b"size", b"9" * 5000)) + tar_header(b"x"),
            "BadTarError: no number: b'99999999999999999999'",
        ),
        (pax_header(b"5 a=b\n"), "BadTarError: a broken pax header"),
        (pax_header(b"4 a=b\n"), "BadTarError: a broken pax header"),
        (pax_header(b"6 a=b\n7"), "BadTarError: a broken pax header"),
        (long_name(b"x") * 101, "BadTarError: more than 100 headers for one member before 104448"),
    ]
    for broken, text in cases_of_broken:
        for drip in [100, MIB]:
            with subtests.test(drip=drip, broken=broken):
                extracted = extract(
                    tar_member(b"a.txt", b"kept") + broken, lambda name: name.endswith(".txt"), drip=drip
                )
                assert error_text(extracted).startswith(text)
                assert extracted.files["a.txt"] == b"kept"


def test_end_of_tar():
    member = tar_member(b"a.txt", b"content")
    for end in (b"", bytes(BLOCK), bytes(2 * BLOCK), bytes(700), bytes(BLOCK) + tar_member(b"b.txt") + b"rubbish"):
        assert extract(member + end) == extract_of(["a.txt"], {"a.txt": b"content"})
    assert error_text(extract(b""))


def test_long_headers_are_limited():
    for content in (
        tar_header(b"x", 4 * 1024 * MIB, b"x"),
        long_name(b"x" * (tar_headers.MAX_EXTENSION_BYTES + 1)),
        pax_header(bytes(2 * MIB), b"g"),
    ):
        error = extract(content).error
        assert error is not None
        assert error.kind is ErrorKind.LIMIT_EXCEEDED
        assert "1048576" in error.text


def test_many_global_headers_are_allowed():
    shared = b"".join(pax_header(pax_record(b"key%d" % number, b"x"), b"g") for number in range(500))
    assert extract(shared + tar_header(b"a.txt")).paths == ["a.txt"]


@pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
def test_hash_is_computed_on_request(suffix):
    content = tar_bytes({"demo-1.0/PKG-INFO": PKG_INFO, "demo-1.0/demo.py": ""}, format=suffix)
    for hash_content in (True, False):
        record = read_distribution(Dripping(content, 99), SDIST, hash_content=hash_content).record
        assert record.sha256 == (hashlib.sha256(content).hexdigest() if hash_content else None)
        assert record.modules == ("demo",)
