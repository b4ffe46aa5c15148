"""Each hostile or odd file gives an error record or a correct record, in bounded time and memory. None of it is run."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from pypi_assets.distributions.extract import decode_extract, encode_extract
from pypi_assets.distributions.limits import MIB
from pypi_assets.distributions.reader import make_record, read_distribution
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.distributions.record_building import record_to_json
from pypi_assets.distributions.sources import MismatchError, SeekableFileSource
from pypi_assets_tests.distributions.hostile import ANY, CASES, Case
from pypi_assets_tests.slices import slices

MAX_MEMORY = 150 * MIB
MAX_SECONDS = 5
PARTLY_READ = [case for case in CASES if case.name.startswith(("zip:", "egg:", "dist-info:"))]


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Fail as soon as the block uses more processor time than `seconds`, so that a hang does not block all tests."""

    def stop(signum: int, frame: object) -> None:
        raise AssertionError(f"more than {seconds:g} seconds of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    started = time.thread_time()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert time.thread_time() - started < seconds


@pytest.mark.parametrize("cases", slices(CASES, 16))
def test_record_is_correct_or_has_an_error(cases: list[Case], tmp_path, monkeypatch, subtests: pytest.Subtests):
    monkeypatch.chdir(tmp_path)
    for case in cases:
        with subtests.test(case.name):
            content = case.build()
            with processor_time(case.seconds):
                reading = read_distribution(io.BytesIO(content), case.filename, limits=case.limits)
            record = reading.record
            assert (record.error.kind if record.error else None) is case.expected, record.error
            if record.error is None:
                assert case.modules in (ANY, record.modules)
                assert case.requires in (ANY, record.requires_dist)
            for note in case.notes:
                assert any(note in each for each in record.notes), record.notes
            if record.sha256 is not None:
                assert record.size == len(content)

            orjson.loads(orjson.dumps(record_to_json(record)))
            assert decode_extract(encode_extract(reading.extract)) == reading.extract
            with processor_time(case.seconds):
                assert make_record(reading.extract, case.filename) == replace(record, sha256=None, size=None)
            assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
@pytest.mark.parametrize("cases", slices(PARTLY_READ, 3))
def test_range_reads_give_the_same_record(cases: list[Case], subtests: pytest.Subtests):
    for case in cases:
        with subtests.test(case.name):
            content = case.build()
            whole = read_distribution(io.BytesIO(content), case.filename, limits=case.limits).record
            try:
                parts = read_distribution(
                    SeekableFileSource(io.BytesIO(content)), case.filename, limits=case.limits
                ).record
            except MismatchError:
                continue
            # an sdist's start determines its compression
            if content.startswith(b"PK") or whole.kind is not DistributionKind.SDIST:
                assert parts == replace(whole, sha256=None, size=None)


@pytest.mark.nightly
def test_reading_takes_little_memory(tmp_path):
    """Read the files of all generators one after the other in a separate process.

    For files built in memory, the memory to build them counts too.
    """
    done = subprocess.run(
        [sys.executable, "-c", _READ_ALL],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert len(lines) >= 880
    peak_bytes, _, worst = max((int(peak), float(seconds), name) for peak, seconds, name in lines)
    assert peak_bytes < MAX_MEMORY, f"{worst}: {peak_bytes / MIB:.0f} MiB"
    longest_s, slowest = max((float(seconds), name) for _, seconds, name in lines)
    print(f"{len(lines)} files, {peak_bytes / MIB:.0f} MiB, {longest_s:.2f} s for {slowest}")  # noqa: T201 - with -s
    assert longest_s < MAX_SECONDS, slowest


_READ_ALL = """
import io, re, time
from pathlib import Path
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader import read_distribution
from pypi_assets_tests.distributions import hostile_sdists, hostile_tars
from pypi_assets_tests.distributions.hostile import CASES
from pypi_assets_tests.distributions.hostile_wheel_files import WHEEL_FILES
from pypi_assets_tests.distributions.hostile_wheels import WHEEL, WHEELS

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

files = [(case.name, case.filename, case.build, case.limits) for case in CASES]
files += [(case.name, case.filename, case.build, ReadLimits()) for case in hostile_tars.CASES + hostile_sdists.CASES]
files += [(name, WHEEL, build, ReadLimits()) for name, build in (WHEELS | WHEEL_FILES).items()]
before = peak()
for name, filename, build, limits in files:
    content = io.BytesIO(build())
    started = time.thread_time()
    read_distribution(content, filename, limits=limits)
    print(peak() - before, time.thread_time() - started, name.encode("ascii", "backslashreplace").decode())
"""


def test_case_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES) >= 70
