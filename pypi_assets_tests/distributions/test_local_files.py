"""A file on disk has the record of a direct read, and what it does to its reader costs that record alone."""

import os
import threading
from pathlib import Path

import pytest

from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.extract import decode_extract
from pypi_assets.distributions.limits import Limits
from pypi_assets.distributions.local_files import read_local
from pypi_assets.distributions.reader import make_record, read_path
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.distributions.record import ErrorKind
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.served_index import shared_readers


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


def test_the_record_is_that_of_a_direct_read(tmp_path: Path) -> None:
    for path in files(tmp_path):
        finished = read_local(path, shared_readers())
        assert finished.record == read_path(path)
        assert (finished.record.size, len(finished.record.sha256 or "")) == (path.stat().st_size, 64)
        assert finished.extract is not None
        made = make_record(decode_extract(finished.extract), path.name)
        assert (made.modules, made.error) == (finished.record.modules, finished.record.error)


@pytest.mark.parametrize("number", range(3))
def test_a_pipe_is_read_once(tmp_path: Path, number: int) -> None:
    path = files(tmp_path)[number]
    pipe = tmp_path / "pipe" / path.name
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    assert read_local(pipe, shared_readers()).record == read_path(path)
    writer.join()


def test_the_limits_are_those_of_the_readers(tmp_path: Path) -> None:
    limits = Limits(max_file_bytes=1000)
    with ReaderPool(limits, size=1) as readers:
        for path in files(tmp_path)[:-2]:
            path.write_bytes(path.read_bytes() + bytes(1_000_000))
            finished = read_local(path, readers)
            assert finished.record == read_path(path, limits=limits)
            assert finished.record.error is not None
            assert (finished.record.error.kind, finished.record.sha256) == (ErrorKind.LIMIT_EXCEEDED, None)


def test_a_crash_costs_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    paths = [make_wheel(tmp_path, name, "1.0") for name in ("crash", "demo")]
    with ReaderPool(Limits(), size=1) as readers:
        crashed, honest = [read_local(path, readers).record for path in paths]
    assert crashed.error is not None
    assert mentions(crashed.error.text, "SIGSEGV")
    assert crashed.size == paths[0].stat().st_size
    assert honest == read_path(paths[1])


def test_what_cannot_be_read_is_an_error_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_local(tmp_path / "demo-1.0.tar.gz", shared_readers())
    with pytest.raises(IsADirectoryError):
        read_local(tmp_path, shared_readers())
