"""The kind of an sdist: its name decides, and another content is a doubt."""

import bz2
import gzip
import io
import lzma
import zipfile

import pytest

from pypi_assets.distributions.reader import ends_in_zip, is_read_as_tar, is_tar, kind_notes, unread_compression
from pypi_assets_tests.builders import tar_bytes, zip_bytes

TAR = tar_bytes({"demo-1.0/setup.py": ""}, format="tar")
ZIP = zip_bytes({"demo-1.0/setup.py": ""})
COMPRESSED = {"gzip": gzip.compress(TAR), "bzip2": bz2.compress(TAR), "xz": lzma.compress(TAR), "none": TAR}


def test_a_name_has_its_compression(subtests: pytest.Subtests):
    cases = [
        (".tar.gz", {"gzip"}),
        (".TGZ", {"gzip"}),
        (".tar.bz2", {"bzip2"}),
        (".tbz", {"bzip2"}),
        (".tar.xz", {"xz"}),
        (".txz", {"xz"}),
        (".tlz", {"xz"}),
        (".tar.lzma", {"xz"}),
        (".tar", set(COMPRESSED)),
        (".zip", set()),
    ]
    for suffix, right in cases:
        with subtests.test(suffix=suffix):
            for name, content in COMPRESSED.items():
                notes = kind_notes(f"demo-1.0{suffix}", content[:512], content)
                assert (notes == []) is (name in right), name
                assert is_read_as_tar(f"demo-1.0{suffix}", content) is (suffix != ".zip")
                assert is_tar(content[:512])


def test_a_zip_is_none_of_them():
    assert not is_tar(ZIP)
    assert not is_read_as_tar("demo-1.0.tar.gz", ZIP)
    assert kind_notes("demo-1.0.zip", ZIP[:512], ZIP) == []
    assert "older versions of pip" in kind_notes("demo-1.0.tar.gz", ZIP[:512], ZIP)[0]
    assert "ends like a zip" in kind_notes("demo-1.0.tar.gz", COMPRESSED["gzip"], ZIP)[0]
    assert "starts like a tar" in kind_notes("demo-1.0.zip", COMPRESSED["gzip"], ZIP)[0]


def test_what_ends_in_a_zip_is_what_zipfile_takes_for_one(subtests: pytest.Subtests):
    cases = [
        b"",
        ZIP,
        ZIP[:-1],
        ZIP + b"rubbish",
        ZIP + bytes(65_535),
        ZIP + bytes(65_536),
        ZIP + bytes(70_000),
        b"PK\5\6",
        b"PK\5\6" + bytes(18),
        b"PK\5\6" + b"x" * 18,
        ZIP + b"PK\5\6",
    ]
    for content in cases:
        with subtests.test(content=content):
            assert ends_in_zip(content[-70_000:]) is zipfile.is_zipfile(io.BytesIO(content))


def test_compressions_that_are_not_read_are_named():
    assert unread_compression(b"\x28\xb5\x2f\xfd....") == "zstd"
    assert unread_compression(b"\x1f\x9d") == "compress"
    assert unread_compression(b"\x1f\x8b") is None
