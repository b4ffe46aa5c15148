"""The content of a zip member: equal to zipfile's, with a note if other readers would see something else."""

import bz2
import zlib

import pytest

from pypi_assets.distributions.limits import Budget, ReadLimits
from pypi_assets.distributions.zip_directory import BadZipError
from pypi_assets.distributions.zips import ZipEntry, inflate
from pypi_assets_tests.distributions import raw_archives
from pypi_assets_tests.distributions.hostile_wheels import lzma_member
from pypi_assets_tests.distributions.raw_archives import BZIP2, DEFLATED, DESCRIPTOR_FLAG, LZMA, STORED, deflate

CONTENT = bytes(range(256)) * 20


def read(written, *, flags=None, **changes):
    """Return content and notes of an entry stored as `written`. `changes` are fields of the directory."""
    local = raw_archives.local_header(written)
    data = written.stored
    values = {
        "name": "name",
        "raw_name": written.name,
        "flags": written.flags if flags is None else flags,
        "method": written.method,
        "crc": zlib.crc32(written.content),
        "compressed": len(data),
        "size": len(written.content),
        "start": 0,
        "end": len(local) + len(data),
    }
    notes = []
    return inflate(ZipEntry(**values | changes), local + data, Budget(ReadLimits()), notes), notes


def test_all_compression_methods_of_zipfile(subtests: pytest.Subtests):
    cases_of_method = [
        (STORED, CONTENT),
        (DEFLATED, deflate(CONTENT)),
        (DEFLATED, deflate(CONTENT) + b"more"),
        (BZIP2, bz2.compress(CONTENT)),
        (LZMA, lzma_member(CONTENT)),
        (LZMA, lzma_member(CONTENT, 2**32 - 1)),
    ]
    for method, data in cases_of_method:
        for flags in [0x800, 0x800 | DESCRIPTOR_FLAG]:
            with subtests.test(flags=flags, method=method, data=data):
                assert read(raw_archives.Entry(b"name", CONTENT, method, data, flags=flags)) == (CONTENT, [])


@pytest.mark.parametrize(("method", "data"), [(STORED, CONTENT), (DEFLATED, deflate(CONTENT))])
def test_size_in_the_directory_truncates_but_does_not_pad(method, data):
    written = raw_archives.Entry(b"name", CONTENT, method, data)
    for size in (1, 100, 4097):
        content, notes = read(written, size=size, crc=zlib.crc32(CONTENT[:size]))
        assert content == CONTENT[:size]
        assert len(notes) == 1  # the local header has a different size
    content, notes = read(written, size=len(CONTENT) + 9)
    assert content == CONTENT
    assert notes[0] == "ambiguous archive: name claims 5129 bytes and has 5120"
    assert read(written, size=0, crc=0)[0] == b""


@pytest.mark.parametrize(
    "changes",
    [
        {"crc": 1},
        {"size": 5},
        {"raw_name": b"other"},
        {"compressed": 100_000},
        {"method": BZIP2},
        {"method": LZMA},
        {"method": DEFLATED},
    ],
)
def test_entries_rejected_by_zipfile(changes):
    with pytest.raises(BadZipError):
        read(raw_archives.Entry(b"name", CONTENT), **changes)


@pytest.mark.parametrize(
    ("method", "data"), [(BZIP2, bz2.compress(CONTENT)[:-9] + b"x" * 9), (LZMA, lzma_member(CONTENT)[:30] + b"x" * 99)]
)
def test_broken_data_after_the_size_are_rejected(method, data):
    for size in (0, 10):
        with pytest.raises(BadZipError):
            read(raw_archives.Entry(b"name", CONTENT, method, data), size=size, crc=zlib.crc32(CONTENT[:size]))


def test_local_name_that_overlaps_the_next_member_is_rejected():
    local = bytearray(raw_archives.local_header(raw_archives.Entry(b"name", b"")))
    local[26] = 99
    entry = ZipEntry("name", b"name", 0x800, STORED, 0, 0, 0, 0, len(local))
    with pytest.raises(BadZipError):
        inflate(entry, bytes(local), Budget(ReadLimits()), [])


def test_names_are_compared_as_decoded_by_zipfile():
    written = raw_archives.Entry("é".encode(), CONTENT, flags=0x800)
    assert read(written)[0] == CONTENT
    assert read(written, raw_name=b"\x82", flags=0)[0] == CONTENT
    with pytest.raises(BadZipError):
        read(written, flags=0)


@pytest.mark.parametrize(
    "properties", [b"\x09\x04", b"\x09\x04\x06\x00" + bytes(20), b"\x09\x04\x05\x00" + b"\xff" * 20]
)
def test_broken_lzma_is_rejected(properties):
    with pytest.raises(BadZipError):
        read(raw_archives.Entry(b"name", CONTENT, LZMA, properties))
