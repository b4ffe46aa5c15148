"""Sources of bytes: what fails below the archive is no property of the file."""

import hashlib
import io
from pathlib import Path

import pytest

from pypi_assets.distributions.limits import Limits
from pypi_assets.distributions.reader import read_distribution, read_path
from pypi_assets.distributions.record import ErrorKind, ReadError
from pypi_assets.distributions.sources import SourceError, Spool
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel


class OneWay(io.RawIOBase):
    """A source that can only be read forward, a few bytes at a time, like a network stream."""

    def __init__(self, content: bytes) -> None:
        self._rest = content

    def readable(self):
        return True

    def read(self, size=-1):
        size = min(size if size >= 0 else len(self._rest), 1000)
        chunk, self._rest = self._rest[:size], self._rest[size:]
        return chunk


@pytest.mark.parametrize("make", [make_wheel, make_sdist, make_egg])
def test_a_source_that_is_not_seekable_gives_the_same_record(tmp_path, make):
    path = make(tmp_path, "demo", "1.0")
    record = read_distribution(OneWay(path.read_bytes()), path.name).record
    assert record.error is None
    assert record.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert record == read_path(path)


def test_a_failing_source_is_no_property_of_the_file(tmp_path):
    class Failing(io.BytesIO):
        def read(self, size=-1):
            if self.tell() > 100:
                raise ConnectionResetError("gone")
            return super().read(min(size, 60) if size > 0 else size)

    for make in (make_wheel, make_sdist):
        path = make(tmp_path, "demo", "1.0")
        with pytest.raises(ConnectionResetError):
            read_distribution(Failing(path.read_bytes()), path.name)


def test_a_zip_that_comes_as_a_stream_is_kept_within_a_limit(tmp_path):
    content = make_wheel(tmp_path, "demo", "1.0").read_bytes()
    size = len(content)
    for limit, text in ((size, None), (size - 1, f"a zip of unknown size is larger than {size - 1} bytes")):
        limits = Limits(max_spooled_bytes=limit)
        record = read_distribution(OneWay(content), "demo-1.0-py3-none-any.whl", limits=limits).record
        assert record.error == (text and ReadError(ErrorKind.LIMIT_EXCEEDED, text))


def test_a_spool_gives_back_what_it_was_given_and_leaves_nothing():
    opened = set(Path("/dev/fd").iterdir())
    with Spool() as spool:
        for piece in (b"", b"0123", b"456789"):
            spool.add(piece)
        assert (spool.size, spool.sidecar()) == (10, None)
        assert [spool.read_at(2, 4), spool.read_at(8, 5), spool.read_at(10, 1)] == [b"2345", b"89", b""]
        with pytest.raises(SourceError):
            spool.read_at(-1, 1)
    assert set(Path("/dev/fd").iterdir()) == opened
