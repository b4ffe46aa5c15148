"""A bad file costs at most its reader process. For valid files, records equal the records of a direct read."""

import errno
import hashlib
import io
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.extract import ServedMetadata, decode_extract, encode_extract
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader import make_record, read_distribution
from pypi_assets.distributions.reader_pool import ReaderFailure, ReaderPool, ReaderStartError, StoredExtract, WholeFile
from pypi_assets.distributions.record import AMBIGUOUS, DistributionRecord, ErrorKind, ReadError
from pypi_assets.distributions.record_building import record_digest
from pypi_assets.distributions.sources import MismatchError, SeekableFileSource
from pypi_assets_tests.builders import core_metadata, make_egg, make_sdist, make_wheel, zip_bytes
from pypi_assets_tests.distributions.pooled_files import (
    far_wheel,
    let_readers_leave_marks,
    notice_stopped_readers,
    wheel,
)
from pypi_assets_tests.distributions.small_archives import Stream
from pypi_assets_tests.naming import naming

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel shows or enforces it on Linux alone")


class NetworkError(Exception):
    """An error that a source raises."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list["subprocess.Popen[bytes]"]:
    """Return the reader processes that are started, in order."""
    processes: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args, **options) -> None:  # type: ignore[no-untyped-def]
            super().__init__(*args, **options)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    return processes


@pytest.fixture
def pool() -> Iterator[ReaderPool]:
    with ReaderPool(ReadLimits(), size=1) as pool:
        yield pool


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReaderPool]:
    """Yield a pool whose readers misbehave as the file's name demands and may use 0.1 seconds of processor time."""
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    notice_stopped_readers(monkeypatch)
    with ReaderPool(ReadLimits(seconds=0.1), size=1) as pool:
        yield pool


def distributions(folder: Path) -> list[Path]:
    return [
        make_wheel(
            folder, "demo", "1.0", requires_dist=["attrs>=2; python_version<'3.9'"], entry_points="[a]\nb=c:d\n"
        ),
        make_egg(folder, "demo", "1.0", requires="attrs\n", top_level=["demo"]),
        make_sdist(folder, "demo", "1.0", requires_dist=["attrs"], metadata_version="2.2"),
        make_sdist(folder, "demo", "1.1", format="tar.bz2"),
        make_sdist(folder, "demo", "1.2", format="zip"),
        make_sdist(folder, "demo", "1.3", format="zip", filename="demo-1.3.tar.gz"),
        make_sdist(folder, "demo", "1.4", format="tar", filename="demo-1.4.zip"),
        make_sdist(folder, "demo", "1.5", files={f"demo/{number}.bin": os.urandom(90_000) for number in range(20)}),
    ]


def direct(path: Path) -> DistributionRecord:
    with path.open("rb") as file:
        return read_distribution(file, path.name, project="Demo", hash_content=False).record


def test_records_equal_those_of_a_direct_read(tmp_path: Path, pool: ReaderPool) -> None:
    for path in distributions(tmp_path):
        expected = direct(path)
        assert expected.error is None, path
        with path.open("rb") as file:
            from_file = pool.read(file, path.name, project="Demo")
        from_stream = pool.read(Stream(path.read_bytes()), path.name, project="Demo")
        for finished in (from_file, from_stream):
            assert finished.record == expected
            assert finished.extract is not None
            assert make_record(decode_extract(finished.extract), path.name, project="Demo") == expected


def test_reading_together_equals_reading_alone(
    tmp_path: Path, pool: ReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [*distributions(tmp_path), tmp_path / "demo-2.0-py3-none-any.whl", tmp_path / "demo-2.0.exe"]
    for path in paths[-2:]:
        path.write_bytes(b"no archive")
    alone = [pool.read(io.BytesIO(path.read_bytes()), path.name, project="Demo") for path in paths]
    files = [WholeFile(path.name, "Demo", path.read_bytes()) for path in paths]
    assert pool.read_together([]) == []
    monkeypatch.setattr(pool, "read", None)
    for together_s in (0.0, 60.0):
        monkeypatch.setattr(reader_pool, "TOGETHER_S", together_s)
        together = pool.read_together(files)
        assert [finished.record for finished in together] == [finished.record for finished in alone]
        assert [decode_extract(finished.extract or b"") for finished in together] == [
            decode_extract(finished.extract or b"") for finished in alone
        ]


@pytest.mark.parametrize("number", [0, 1, 4])
def test_range_source_is_read_in_parts(tmp_path: Path, pool: ReaderPool, number: int) -> None:
    path = distributions(tmp_path)[number]
    with path.open("rb") as file:
        assert pool.read(SeekableFileSource(file), path.name, project="Demo").record == direct(path)


@dataclass
class Indexed(SeekableFileSource):
    """A wheel as an index serves it, with METADATA as a sidecar."""

    content: bytes
    metadata: bytes | None
    metadata_sha256: str

    def __post_init__(self) -> None:
        super().__init__(io.BytesIO(self.content))

    def sidecar(self) -> bytes | None:  # type: ignore[override]
        return self.metadata


def test_sidecar_is_read_and_must_match(tmp_path: Path, started: list["subprocess.Popen[bytes]"]) -> None:
    metadata = core_metadata("demo", "1.0", requires_dist=["attrs"]).encode()
    filler = {"demo.bin": os.urandom(50_000), "demo-1.0.dist-info/entry_points.txt": ""}
    content = zip_bytes({"demo-1.0.dist-info/METADATA": metadata, **filler})
    promised, other = (hashlib.sha256(data).hexdigest() for data in (metadata, b"other"))
    filename = "demo-1.0-py3-none-any.whl"
    with ReaderPool(ReadLimits(), size=1) as pool:
        for sidecar in (metadata, None):
            assert pool.read(Indexed(content, sidecar, promised), filename).record.requires_dist == ("attrs",)
        for sidecar, sha256 in ((metadata + b"\n", promised), (None, other)):
            with pytest.raises(MismatchError, match=naming("METADATA")):
                pool.read(Indexed(content, sidecar, sha256), filename)
        assert pool.read(io.BytesIO(content), filename).record.error is None
    assert len(started) == 1


def test_broken_files_have_errors_of_a_direct_read(tmp_path: Path, pool: ReaderPool) -> None:
    for path in distributions(tmp_path):
        path.write_bytes(path.read_bytes()[:-30])
        with path.open("rb") as file:
            assert pool.read(file, path.name, project="Demo").record == direct(path)


@pytest.mark.parametrize("filename", ["demo-1.0.win32.exe", "demo\udc80-1.0.tar.gz"])
def test_unsupported_files_start_no_reader(
    pool: ReaderPool, started: list["subprocess.Popen[bytes]"], filename: str
) -> None:
    finished = pool.read(io.BytesIO(b"MZ"), filename)
    assert finished.record == read_distribution(io.BytesIO(b"MZ"), filename, hash_content=False).record
    assert finished.record.error is not None
    assert finished.record.error.kind == ErrorKind.UNSUPPORTED_KIND
    assert started == []


def test_limits_apply(tmp_path: Path) -> None:
    source, filename = wheel(tmp_path)
    with ReaderPool(ReadLimits(max_members=2), size=1) as pool:
        assert pool.read(source, filename).record.error == ReadError(ErrorKind.LIMIT_EXCEEDED, "more than 2 members")


def test_stream_is_read_to_its_end(tmp_path: Path, pool: ReaderPool) -> None:
    stream = Stream(make_sdist(tmp_path, "demo", "1.0").read_bytes() + bytes(10) + b"x" * 10**6)
    notes = pool.read(stream, "demo-1.0.tar.gz").record.notes
    assert notes == (f"{AMBIGUOUS} bytes after the end of the compressed data are ignored",)
    assert stream.read() == b""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        ("crash", ErrorKind.READER_FAILURE, "the reader died: signal SIGSEGV"),
        ("exit", ErrorKind.READER_FAILURE, "the reader died: exit status 3"),
        ("raise", ErrorKind.READER_FAILURE, "the reader failed: ZeroDivisionError: no\ufffdnumber"),
        ("babble", ErrorKind.READER_FAILURE, "the reader sent an unexpected message: "),
        ("excess", ErrorKind.READER_FAILURE, "the reader sent an unexpected message: Judged(results=[None, "),
        ("stop", ErrorKind.LIMIT_EXCEEDED, "reading takes more than 0.1 seconds"),
        pytest.param("fill", ErrorKind.LIMIT_EXCEEDED, "reading takes too much memory", marks=linux_only),
    ],
)
def test_misbehaving_reader_costs_one_record(
    tmp_path: Path, faulty: ReaderPool, fault: str, kind: ErrorKind, text: str
) -> None:
    finished = faulty.read(*wheel(tmp_path, fault), project="Fault")
    assert finished.extract is None
    assert finished.died == (fault not in {"raise", "fill"})
    assert finished.record.error is not None
    assert finished.record.error.kind == kind
    assert finished.record.error.text.startswith(text)
    assert (finished.record.project, finished.record.version) == (fault, "1.0")

    assert faulty.read(*wheel(tmp_path)).record.modules == ("demo",)

    content = wheel(tmp_path)[0].read()
    names = ["demo", f"late_{fault}", fault, "demo"]
    together = faulty.read_together([WholeFile(f"{name}-1.0-py3-none-any.whl", None, content) for name in names])
    assert [finished.record.modules for finished in (together[0], together[3])] == [("demo",)] * 2
    for failed in together[1:3]:
        assert failed.record.error is not None
        assert failed.record.error.kind == kind
        assert failed.died == finished.died

    names = ["demo-1.0.tar.gz", f"{fault}-1.0.tar.gz", "demo-1.1.tar.gz", "demo-1.2.tar.gz"]
    content = finished_extract(tmp_path)
    records = faulty.judge([StoredExtract(name, None, content) for name in names])
    failure = records.pop(1)
    assert isinstance(failure, ReaderFailure)
    assert failure.kind == kind
    assert failure.text.startswith(text)
    for name, record in zip([names[0], *names[2:]], records, strict=True):
        assert isinstance(record, DistributionRecord)
        assert (record.filename, record.error) == (name, None)


def test_silent_reader_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list["subprocess.Popen[bytes]"]
) -> None:
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    monkeypatch.setattr(reader_pool, "GRACE_S", 0.2)
    with ReaderPool(ReadLimits(seconds=0.1), size=1) as pool:
        finished = pool.read(*wheel(tmp_path, "stop"))
    assert finished.record.error == ReadError(ErrorKind.LIMIT_EXCEEDED, "reading takes more than 0.1 seconds")
    assert finished.died
    assert [process.returncode for process in started] == [-signal.SIGKILL]


@pytest.mark.nightly
def test_only_extracts_that_kill_a_reader_have_no_record(tmp_path: Path, faulty: ReaderPool) -> None:
    projects = ["exit", "exit", "demo", "raise", "demo", "excess", "demo", "demo", "exit"]
    content = finished_extract(tmp_path)
    records = faulty.judge([StoredExtract(f"{name}-{at}.tar.gz", None, content) for at, name in enumerate(projects)])
    filenames = [record.filename for record in records if isinstance(record, DistributionRecord)]
    assert filenames == [f"demo-{at}.tar.gz" for at in (2, 4, 6, 7)]
    kinds = [record.kind for record in records if isinstance(record, ReaderFailure)]
    assert kinds == [ErrorKind.READER_FAILURE] * 5


def test_reader_that_dies_once_costs_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    let_readers_leave_marks(monkeypatch, tmp_path)
    content = wheel(tmp_path)[0].read()
    names = [f"{name}-1.0-py3-none-any.whl" for name in ("demo", "once", "demo")]
    together = faulty.read_together([WholeFile(name, None, content) for name in names])
    assert [finished.record.error for finished in together] == [None] * 3
    assert len(started) == 2

    names = ["demo-1.0.tar.gz", "once-1.0.tar.gz", "demo-1.1.tar.gz"]
    content = finished_extract(tmp_path)
    records = faulty.judge([StoredExtract(name, None, content) for name in names])
    assert [record.filename for record in records if isinstance(record, DistributionRecord)] == names
    assert len(started) == 3


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["crash", "raise", "stop", pytest.param("fill", marks=linux_only)])
def test_extract_survives_a_failure_while_making_the_record(tmp_path: Path, faulty: ReaderPool, fault: str) -> None:
    source, filename = wheel(tmp_path, f"late_{fault}")
    died = fault in {"crash", "stop"}
    finished = faulty.read(source, filename)
    assert (finished.died, finished.extract is None) == (died, died)
    source.seek(0)
    finished = faulty.read(source, filename, extract_first=True)
    assert finished.record.error is not None
    assert finished.died == died
    assert finished.extract is not None
    assert make_record(decode_extract(finished.extract), filename).modules == (f"late_{fault}",)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["crash", "raise", "stop", pytest.param("fill", marks=linux_only)])
def test_extract_survives_a_failure_while_parsing_setup_py(tmp_path: Path, faulty: ReaderPool, fault: str) -> None:
    script = f"{fault}-1\nsetup(py_modules=['one'])\n"
    path = make_sdist(tmp_path, "demo", "1.0", files={"setup.py": script, "one.py": ""})
    died = fault in {"crash", "stop"}
    for extract_first in (False, True):
        with path.open("rb") as file:
            finished = faulty.read(file, path.name, project="Demo", extract_first=extract_first)
        assert finished.record.error is not None
        assert finished.died == died
        assert (finished.extract is None) == (died and not extract_first)
    assert finished.extract is not None
    kept = decode_extract(finished.extract)
    assert kept.setup_arguments == b""
    assert make_record(kept, path.name, project="Demo") == direct(path)
    assert direct(path).modules == ("one",)


def finished_extract(folder: Path) -> bytes:
    path = make_sdist(folder, "demo", "1.0")
    with path.open("rb") as file:
        return encode_extract(read_distribution(file, path.name).extract)


def test_processor_time_signal_is_a_limit_error(pool: ReaderPool, started: list["subprocess.Popen[bytes]"]) -> None:
    class Overdrawn(SeekableFileSource):
        def sidecar(self) -> None:
            started[0].send_signal(signal.SIGXCPU)

    source, filename = far_wheel()
    error = pool.read(Overdrawn(source), filename).record.error
    assert error == ReadError(ErrorKind.LIMIT_EXCEEDED, "reading takes more than 60 seconds")


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["spin", "backtrack", "late_spin"])
def test_kernel_kills_reader_over_processor_time(
    tmp_path: Path, faulty: ReaderPool, started: list["subprocess.Popen[bytes]"], fault: str
) -> None:
    """Cover C code that never returns to the interpreter. A file that took too long is not read again."""
    source, filename = wheel(tmp_path, fault)
    finished = faulty.read(source, filename)
    assert finished.record.error == ReadError(ErrorKind.LIMIT_EXCEEDED, "reading takes more than 0.1 seconds")
    assert not finished.died
    assert started[0].wait() == -signal.SIGPROF


def test_slow_file_of_a_batch_is_read_alone_once(
    tmp_path: Path, faulty: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    filenames = [wheel(tmp_path, name)[1] for name in ("demo", "spin", "demo")]
    content = wheel(tmp_path)[0].getvalue()
    errors = [
        each.record.error for each in faulty.read_together([WholeFile(name, None, content) for name in filenames])
    ]
    assert errors == [None, ReadError(ErrorKind.LIMIT_EXCEEDED, "reading takes more than 0.1 seconds"), None]
    assert [process.poll() for process in started] == [-signal.SIGPROF, -signal.SIGPROF, None]


def test_slow_extract_of_a_batch_fails_after_its_time(
    tmp_path: Path, faulty: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    content = finished_extract(tmp_path)
    names = ["demo-1.0.tar.gz", "spin-1.0.tar.gz", "demo-1.1.tar.gz"]
    records = faulty.judge([StoredExtract(name, None, content) for name in names])
    failure = ReaderFailure(ErrorKind.LIMIT_EXCEEDED, "reading takes more than 0.1 seconds")
    assert records.pop(1) == failure
    assert [record.filename for record in records if isinstance(record, DistributionRecord)] == [names[0], names[2]]
    assert [process.poll() for process in started] == [-signal.SIGPROF, -signal.SIGPROF, None]


@pytest.mark.nightly
@linux_only
def test_reader_that_disables_its_timer_is_killed_by_the_kernel(
    tmp_path: Path, faulty: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    finished = faulty.read(far_wheel("request")[0], far_wheel("request")[1])
    assert finished.record.error == ReadError(ErrorKind.LIMIT_EXCEEDED, "reading takes more than 0.1 seconds")
    assert not finished.died
    assert started[0].wait() == -signal.SIGKILL


def test_source_errors_propagate_and_keep_the_reader(
    tmp_path: Path, pool: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    for raised in (
        NetworkError("reset"),
        OSError("disk"),
        EOFError("end"),
        MismatchError("other"),
        KeyboardInterrupt(),
    ):

        class Failing(SeekableFileSource):
            def read_at(self, offset: int, size: int, error: BaseException = raised) -> bytes:
                raise error

        class FailingLater(SeekableFileSource):
            def sidecar(self, error: BaseException = raised) -> None:
                raise error

        class FailingStream(Stream):
            calls = 0

            def read(self, size: int | None = -1, /, error: BaseException = raised) -> bytes:
                self.calls += 1
                if self.calls > 2:
                    raise error
                return super().read(1000)

        source, filename = wheel(tmp_path)
        sdist = make_sdist(tmp_path, "demo", "1.0", files={"demo.bin": os.urandom(10_000)})
        for failing, name in (
            (Failing(source), filename),
            (FailingLater(far_wheel()[0]), filename),
            (FailingStream(sdist.read_bytes()), sdist.name),
        ):
            with pytest.raises(type(raised)) as caught:
                pool.read(failing, name)
            assert caught.value is raised
            assert pool.read(*wheel(tmp_path)).record.error is None
    assert len(started) == 1


def test_full_disk_is_not_blamed_on_the_file(
    tmp_path: Path, faulty: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    with pytest.raises(OSError, match="No space left on device") as caught:
        faulty.read(*wheel(tmp_path, "full"))
    assert caught.value.errno == errno.ENOSPC
    assert faulty.read(*wheel(tmp_path)).record.error is None
    assert len(started) == 1


def test_file_errors_propagate(tmp_path: Path, pool: ReaderPool) -> None:
    raised = OSError("disk")

    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise raised

    source, filename = wheel(tmp_path)
    with pytest.raises(OSError, match="disk") as caught:
        pool.read(Failing(source.getvalue()), filename)
    assert caught.value is raised


def test_reader_that_dies_while_the_source_fails_is_replaced(
    pool: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    class Failing(SeekableFileSource):
        def sidecar(self) -> None:
            started[0].kill()
            raise NetworkError("reset")

    source, filename = far_wheel()
    with pytest.raises(NetworkError):
        pool.read(Failing(source), filename)
    assert pool.read(source, filename).record.error is None
    assert len(started) == 2


def test_reader_that_died_idle_costs_nothing(
    tmp_path: Path, pool: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    pool.read(*wheel(tmp_path))
    started[0].kill()
    started[0].wait()
    assert pool.read(*wheel(tmp_path)).record.error is None
    assert len(started) == 2


@linux_only
def test_memory_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list["subprocess.Popen[bytes]"]
) -> None:
    monkeypatch.setattr(reader_pool, "READER_MEMORY_BYTES", 16 * 1024**2)
    large = make_wheel(tmp_path, "large", "1.0", metadata="Name: large\nVersion: 1.0\n" + "Keywords: x\n" * 4_000_000)
    limits = ReadLimits(
        max_kept_bytes=2**26, max_wanted_bytes=2**26, max_metadata_bytes=2**26, max_expansion_ratio=10_000
    )
    with ReaderPool(limits, size=1) as pool:
        with large.open("rb") as file:
            error = pool.read(file, large.name).record.error
        assert error == ReadError(ErrorKind.LIMIT_EXCEEDED, "reading takes too much memory")
        assert pool.read(*wheel(tmp_path)).record.error is None
    assert len(started) == 2


@linux_only
def test_reader_has_kernel_limits(tmp_path: Path, pool: ReaderPool, started: list["subprocess.Popen[bytes]"]) -> None:
    pool.read(*wheel(tmp_path))
    limits = {
        what: resource.prlimit(started[0].pid, what)[0]
        for what in (
            *(resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_AS),
            *(resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE),
        )
    }
    assert limits[resource.RLIMIT_CORE] == 0
    assert 125 < limits[resource.RLIMIT_CPU] < 140
    assert limits[resource.RLIMIT_FSIZE] == 256 * 1024**2
    assert 1024**3 < limits[resource.RLIMIT_AS] < 2 * 1024**3
    assert (limits[resource.RLIMIT_NPROC], limits[resource.RLIMIT_NOFILE]) == (0, 4)


@pytest.mark.parametrize("together_s", [0, 60])
def test_extracts_are_judged_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: ReaderPool, together_s: float
) -> None:
    monkeypatch.setattr(reader_pool, "TOGETHER_S", together_s)
    paths = distributions(tmp_path)
    stored = []
    for path in paths:
        with path.open("rb") as file:
            extract = read_distribution(file, path.name, project="Demo").extract
        stored.append(StoredExtract(path.name, "Demo", encode_extract(extract)))
    stored.insert(3, StoredExtract("broken-1.0.tar.gz", None, b"no extract"))
    records = pool.judge(stored)
    assert records.pop(3) == ReaderFailure(ErrorKind.READER_FAILURE, failure_of(b"no extract"))
    assert records == [direct(path) for path in paths]
    same = [replace(each, digest=record_digest(direct(path))) for each, path in zip(stored[:3], paths, strict=False)]
    assert pool.judge([*same, *stored[3:]])[:3] == [None, None, None]
    assert pool.judge([]) == []


def test_wheel_is_amended_with_served_metadata(tmp_path: Path, pool: ReaderPool) -> None:
    reading = pool.read(io.BytesIO((path := distributions(tmp_path)[0]).read_bytes()), path.name)
    assert reading.extract is not None
    headers = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Dist: other\n\n"
    assert reading.metadata_sha256 not in {None, hashlib.sha256(headers).hexdigest()}
    served = ServedMetadata(headers + b"A description.", is_as_stated=True)
    amended = pool.amend(StoredExtract(path.name, None, reading.extract), served)
    assert amended.record.requires_dist == ("other",)
    assert amended.record.installed_metadata is not None
    assert amended.extract is not None
    assert decode_extract(amended.extract).served == ServedMetadata(headers, is_as_stated=True)
    assert pool.judge([StoredExtract(path.name, None, amended.extract)]) == [amended.record]
    broken = pool.amend(StoredExtract(path.name, None, b"no extract"), served)
    assert broken.record.error is not None
    assert (broken.record.error.kind, broken.extract) == (ErrorKind.READER_FAILURE, b"no extract")


def test_reader_that_dies_once_while_amending_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: ReaderPool
) -> None:
    let_readers_leave_marks(monkeypatch, tmp_path)
    extract = read_distribution(
        io.BytesIO(distributions(tmp_path)[0].read_bytes()), "demo-1.0-py3-none-any.whl"
    ).extract
    for name, error in (("late_once", None), ("late_crash", ErrorKind.READER_FAILURE)):
        stored = StoredExtract(f"{name}-1.0-py3-none-any.whl", None, encode_extract(extract))
        record = faulty.amend(stored, ServedMetadata(b"Name: demo\n", is_as_stated=True)).record
        assert (record.error and record.error.kind) == error, name


def failure_of(content: bytes) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the record repeats any error
        decode_extract(content)
    return f"the reader failed: {caught.type.__name__}: {caught.value}"


def test_threads_share_readers(tmp_path: Path, started: list["subprocess.Popen[bytes]"]) -> None:
    paths = distributions(tmp_path) * 10
    expected = {path: direct(path) for path in paths}
    with ReaderPool(ReadLimits(), size=2) as pool, ThreadPoolExecutor(8) as threads:
        assert started == []

        def read(path: Path) -> DistributionRecord:
            return pool.read(Stream(path.read_bytes()), path.name, project="Demo").record

        assert list(threads.map(read, paths)) == [expected[path] for path in paths]
        assert 1 <= len(started) <= 2


def test_free_reader_is_reused(tmp_path: Path, started: list["subprocess.Popen[bytes]"]) -> None:
    with ReaderPool(ReadLimits(), size=3) as pool:
        for _ in range(3):
            pool.read(*wheel(tmp_path))
    assert len(started) == 1


def test_end_of_zip_is_fetched_before_a_reader_is_reserved(
    tmp_path: Path, pool: ReaderPool, started: list["subprocess.Popen[bytes]"]
) -> None:
    class ReadsAnother(SeekableFileSource):
        def read_at(self, offset: int, size: int) -> bytes:
            assert pool.read(*wheel(tmp_path, "other")).record.error is None
            return super().read_at(offset, size)

    source, filename = wheel(tmp_path)
    assert pool.read(ReadsAnother(source), filename).record.error is None
    assert len(started) == 1


def test_each_waiting_source_has_its_own_reader(tmp_path: Path, started: list["subprocess.Popen[bytes]"]) -> None:
    everyone = threading.Barrier(3)

    class Waits(SeekableFileSource):
        def sidecar(self) -> None:
            everyone.wait(60)

    with ReaderPool(ReadLimits(), size=3) as pool, ThreadPoolExecutor(3) as threads:
        records = [threads.submit(pool.read, Waits(far_wheel()[0]), far_wheel()[1]) for _ in range(3)]
        assert [record.result().record.error for record in records] == [None] * 3
    assert len(started) == 3


def test_call_that_waits_for_a_reader_fails_on_close() -> None:
    pool = ReaderPool(ReadLimits(), size=1)
    waits, may_end = threading.Event(), threading.Event()

    class Waits(SeekableFileSource):
        def sidecar(self) -> None:
            waits.set()
            may_end.wait(60)

    source, filename = far_wheel()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(pool.read, Waits(source), filename)
        waits.wait(60)
        second = threads.submit(pool.read, far_wheel()[0], filename)
        pool.close()
        with pytest.raises(RuntimeError, match="closed"):
            second.result(60)
        may_end.set()
        assert first.result().record.error is None


def test_close_leaves_no_processes_and_descriptors(tmp_path: Path, started: list["subprocess.Popen[bytes]"]) -> None:
    opened = set(os.listdir("/dev/fd"))  # noqa: PTH208 - not a folder of files
    pool = ReaderPool(ReadLimits(), size=2)
    source, filename = far_wheel()

    class ClosesThePool(SeekableFileSource):
        def sidecar(self) -> None:
            pool.close()

    assert pool.read(ClosesThePool(source), filename).record.error is None
    assert [process.returncode for process in started] == [-signal.SIGKILL]
    with pytest.raises(RuntimeError, match="closed"):
        pool.read(source, filename)
    pool.close()
    assert set(os.listdir("/dev/fd")) <= opened  # noqa: PTH208 - servers of earlier tests can close theirs


@pytest.mark.parametrize("executable", ["/bin/false", "/nonexistent/python"])
def test_reader_that_does_not_start_is_not_blamed_on_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: ReaderPool, executable: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", executable)
        with pytest.raises(ReaderStartError):
            pool.read(*wheel(tmp_path))
        with pytest.raises(ReaderStartError):
            pool.judge([StoredExtract("demo-1.0.tar.gz", None, b"")])
    assert pool.read(*wheel(tmp_path)).record.error is None


def test_reader_inherits_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list["subprocess.Popen[bytes]"]
) -> None:
    environments: list[dict[str, str]] = []
    popen = subprocess.Popen

    def record(*args, **options):  # type: ignore[no-untyped-def]
        environments.append(options["env"])
        return popen(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", record)
    for name in ("AWS_SECRET_ACCESS_KEY", "PYTHONSECRET", "LC_SECRET", "LD_PRELOAD", "TMPDIR"):
        monkeypatch.setenv(name, "" if name == "LD_PRELOAD" else "secret")
    with ReaderPool(ReadLimits(), size=1) as pool:
        pool.read(*wheel(tmp_path))
    assert "secret" not in environments[0].values()
    assert "LD_PRELOAD" not in environments[0]
    assert "PATH" in environments[0]


def read_one(path: Path) -> None:
    with ReaderPool(ReadLimits(), size=1) as pool, path.open("rb") as file:
        assert pool.read(file, path.name, project="Demo").record == direct(path)


def test_daemonic_process_can_start_readers(tmp_path: Path) -> None:
    step = multiprocessing.get_context("spawn").Process(
        target=read_one, args=[make_wheel(tmp_path, "demo", "1.0")], daemon=True
    )
    step.start()
    step.join(60)
    assert step.exitcode == 0
    step.close()
