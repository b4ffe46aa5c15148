"""Compressed streams: several parts, padding, corruption and bombs."""

import bz2
import gzip
import hashlib
import lzma
import time
import zlib

import pytest

from pypi_assets.distributions.limits import MIB
from pypi_assets.distributions.record import ErrorKind
from pypi_assets_tests.builders import tar_bytes
from pypi_assets_tests.distributions.raw_archives import (
    BLOCK,
    gzip_member,
    tar_member,
)
from pypi_assets_tests.distributions.small_archives import PKG_INFO, SDIST, error_of, read
from pypi_assets_tests.distributions.tar_extracts import extract
from pypi_assets_tests.naming import mentions


def test_gzip_parts_and_padding_are_one_stream():
    plain = tar_bytes({"demo-1.0/PKG-INFO": PKG_INFO, "demo-1.0/demo.py": ""}, format="tar")
    parts = gzip.compress(plain[:700]) + gzip.compress(plain[700:])
    assert read(parts + bytes(512), SDIST).error is None
    record = read(parts + b"rubbish!", SDIST)
    assert record.error is None
    assert record.notes[0] == "ambiguous archive: bytes after the end of the compressed data are ignored"


def test_many_small_parts(subtests: pytest.Subtests):
    for compress in [gzip.compress, bz2.compress, lzma.compress]:
        for drip in [1, 3, 50, MIB]:
            with subtests.test(drip=drip, compress=compress):
                plain = tar_member(b"a.txt", b"content" * 50) + bytes(2 * BLOCK)
                parts = b"".join(compress(plain[start : start + 37]) for start in range(0, len(plain), 37))
                assert extract(parts, drip=drip).files == {"a.txt": b"content" * 50}


def test_gzip_header_with_checksum():
    header = b"name\0"
    start = b"\x1f\x8b\x08\x0a" + bytes(4) + b"\x02\xff" + header
    checksum = (zlib.crc32(start) & 0xFFFF).to_bytes(2, "little")
    content = gzip_member(tar_member(b"a.txt", b"content"), flags=0x0A, header=header + checksum)
    assert extract(content, drip=3).files == {"a.txt": b"content"}


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.bz2", "tar.xz"])
def test_truncated_or_corrupt_tar_keeps_earlier_members(suffix):
    content = tar_bytes(
        {"demo-1.0/PKG-INFO": PKG_INFO, "demo-1.0/demo.py": "", "demo-1.0/x.bin": hashlib.shake_128().digest(600_000)},
        format=suffix,
    )
    damaged = bytearray(content)
    damaged[-6] ^= 0x55
    for broken in (content[:-2000], content[:-1], bytes(damaged)):
        record = read(broken, f"demo-1.0.{suffix}")
        assert error_of(record).kind is ErrorKind.CORRUPT_ARCHIVE
        assert record.sha256 == hashlib.sha256(broken).hexdigest()
    assert read(content[:-1], f"demo-1.0.{suffix}").project == "demo"


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.bz2", "tar.xz"])
def test_bomb_ends_early(suffix):
    content = tar_bytes({"demo-1.0/zeros": bytes(16 * MIB)}, format=suffix)
    started = time.process_time()
    record = read(content, f"demo-1.0.{suffix}", ratio_free_bytes=MIB)
    assert error_of(record).kind is ErrorKind.LIMIT_EXCEEDED
    assert mentions(error_of(record).text, 200)
    assert time.process_time() - started < 2
