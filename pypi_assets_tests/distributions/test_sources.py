"""Sources of bytes, their capabilities, and failures below the archive."""

import hashlib
import io
import os
import threading
from pathlib import Path

import pytest

from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.extract import decode_extract
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.local_files import read_local
from pypi_assets.distributions.reader import make_record, read_distribution, read_path
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.distributions.reader_process import BytesAt, NextBytes, Ready, Sidecar
from pypi_assets.distributions.record import DistributionKind, ErrorKind, ReadError
from pypi_assets.distributions.served_sources import answer_from, as_ranges, end_of
from pypi_assets.distributions.sources import RangeSourceError, SeekableFileSource, Spool
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel, zip_bytes
from pypi_assets_tests.distributions.small_archives import Stream
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.served_index import shared_readers


class OneWay(io.RawIOBase):
    """A forward-only source that returns a few bytes at a time, like a network stream."""

    def __init__(self, content: bytes) -> None:
        self._rest = content

    def readable(self):
        return True

    def read(self, size=-1):
        size = min(size if size >= 0 else len(self._rest), 1000)
        chunk, self._rest = self._rest[:size], self._rest[size:]
        return chunk


@pytest.mark.parametrize("make", [make_wheel, make_sdist, make_egg])
def test_unseekable_source_gives_the_same_record(tmp_path, make):
    path = make(tmp_path, "demo", "1.0")
    record = read_distribution(OneWay(path.read_bytes()), path.name).record
    assert record.error is None
    assert record.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert record == read_path(path)


def test_source_errors_propagate(tmp_path):
    class Failing(io.BytesIO):
        def read(self, size=-1):
            if self.tell() > 100:
                raise ConnectionResetError("gone")
            return super().read(min(size, 60) if size > 0 else size)

    for make in (make_wheel, make_sdist):
        path = make(tmp_path, "demo", "1.0")
        with pytest.raises(ConnectionResetError):
            read_distribution(Failing(path.read_bytes()), path.name)


def test_spooled_zip_size_is_limited(tmp_path):
    content = make_wheel(tmp_path, "demo", "1.0").read_bytes()
    size = len(content)
    for limit, text in ((size, None), (size - 1, f"a zip of unknown size is larger than {size - 1} bytes")):
        limits = ReadLimits(max_spooled_bytes=limit)
        record = read_distribution(OneWay(content), "demo-1.0-py3-none-any.whl", limits=limits).record
        assert record.error == (text and ReadError(ErrorKind.LIMIT_EXCEEDED, text))


def test_spool_returns_its_content_and_leaves_no_descriptors():
    opened = set(Path("/dev/fd").iterdir())
    with Spool() as spool:
        for piece in (b"", b"0123", b"456789"):
            spool.add(piece)
        assert (spool.size, spool.sidecar()) == (10, None)
        assert [spool.read_at(2, 4), spool.read_at(8, 5), spool.read_at(10, 1)] == [b"2345", b"89", b""]
        with pytest.raises(RangeSourceError):
            spool.read_at(-1, 1)
    assert set(Path("/dev/fd").iterdir()) <= opened  # servers of earlier tests can close theirs


def test_seekable_zip_is_a_range_source() -> None:
    zipped, other = zip_bytes({"a": b""}), b"no zip"
    ranges = SeekableFileSource(io.BytesIO(zipped))
    assert as_ranges(ranges, "demo-1.0-py3-none-any.whl", DistributionKind.WHEEL) is ranges
    for filename, kind, content, is_zip in (
        ("demo-1.0-py3-none-any.whl", DistributionKind.WHEEL, zipped, True),
        ("demo-1.0-py3-none-any.whl", DistributionKind.WHEEL, other, True),
        ("demo-1.0.zip", DistributionKind.SDIST, zipped, True),
        ("demo-1.0.ZIP", DistributionKind.SDIST, zipped, True),
        ("demo-1.0.zip", DistributionKind.SDIST, other, False),
        ("demo-1.0.tar.gz", DistributionKind.SDIST, zipped, False),
    ):
        file = io.BytesIO(content)
        assert (as_ranges(file, filename, kind) is not None) == is_zip
        assert as_ranges(Stream(content), filename, kind) is None
        assert is_zip or file.tell() == 0


def test_sources_answer_questions_of_their_kind() -> None:
    ranges = SeekableFileSource(io.BytesIO(b"0123456789"))
    stream = io.BytesIO(b"abc")
    answers = [
        (BytesAt(2, 3), ranges, b"234"),
        (Sidecar(), ranges, None),
        (NextBytes(2), None, b"ab"),
    ]
    for question, range_source, expected in answers:
        fetch = answer_from(stream, range_source, question)
        assert fetch is not None
        assert fetch() == expected
    for wrong, range_source in ((NextBytes(2), ranges), (BytesAt(0, 1), None), (Sidecar(), None), (Ready([]), ranges)):
        assert answer_from(stream, range_source, wrong) is None


def test_source_error_while_fetching_the_end_propagates() -> None:
    class Failing(SeekableFileSource):
        def read_at(self, offset: int, size: int) -> bytes:
            raise RangeSourceError(OSError("disk"))

    assert end_of(SeekableFileSource(io.BytesIO(b"0123456789"))) == b"0123456789"
    with pytest.raises(OSError, match="disk"):
        end_of(Failing(io.BytesIO(b"0")))


def files(folder: Path) -> list[Path]:
    made = [
        make_wheel(folder, "demo", "1.0", requires_dist=["a"], files={"demo.py": "", "data": os.urandom(300_000)}),
        make_egg(folder, "demo", "1.0"),
        make_sdist(folder, "demo", "1.0", files={"setup.py": "setup(py_modules=['demo'])\n", "demo.py": ""}),
        make_sdist(folder, "demo", "1.1", format="zip"),
        make_sdist(folder, "demo", "1.2", format="zip", filename="demo-1.2.tar.gz"),
        folder / "demo-1.0.win32.exe",
        folder / "broken-1.0-py3-none-any.whl",
    ]
    for path in made[-2:]:
        path.write_bytes(b"no archive")
    return made


def test_local_record_equals_a_direct_read(tmp_path: Path) -> None:
    for path in files(tmp_path):
        finished = read_local(path, shared_readers())
        assert finished.record == read_path(path)
        assert (finished.record.size, len(finished.record.sha256 or "")) == (path.stat().st_size, 64)
        assert finished.extract is not None
        made = make_record(decode_extract(finished.extract), path.name)
        assert (made.modules, made.error) == (finished.record.modules, finished.record.error)


@pytest.mark.parametrize("number", range(3))
def test_pipe_is_read_once(tmp_path: Path, number: int) -> None:
    path = files(tmp_path)[number]
    pipe = tmp_path / "pipe" / path.name
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    assert read_local(pipe, shared_readers()).record == read_path(path)
    writer.join()


def test_limits_of_the_readers_apply(tmp_path: Path) -> None:
    limits = ReadLimits(max_file_bytes=1000)
    with ReaderPool(limits, size=1) as readers:
        for path in files(tmp_path)[:-2]:
            path.write_bytes(path.read_bytes() + bytes(1_000_000))
            finished = read_local(path, readers)
            assert finished.record == read_path(path, limits=limits)
            assert finished.record.error is not None
            assert (finished.record.error.kind, finished.record.sha256) == (ErrorKind.LIMIT_EXCEEDED, None)


def test_crash_costs_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    paths = [make_wheel(tmp_path, name, "1.0") for name in ("crash", "demo")]
    with ReaderPool(ReadLimits(), size=1) as readers:
        crashed, honest = [read_local(path, readers).record for path in paths]
    assert crashed.error is not None
    assert mentions(crashed.error.text, "SIGSEGV")
    assert crashed.size == paths[0].stat().st_size
    assert honest == read_path(paths[1])


def test_unreadable_file_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_local(tmp_path / "demo-1.0.tar.gz", shared_readers())
    with pytest.raises(IsADirectoryError):
        read_local(tmp_path, shared_readers())
