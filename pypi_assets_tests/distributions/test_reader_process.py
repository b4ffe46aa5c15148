"""A reader's process: its output, and its end together with the parent process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.distributions.pooled_files import far_wheel

PARENT = """
import sys
from pathlib import Path
from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.sources import SeekableFileSource

class Source(SeekableFileSource):
    def sidecar(self):
        print("reading", flush=True)
        sys.stdin.readline()

reader_pool.READER_PROGRAM, reader_pool.GRACE_S, path = sys.argv[1], 0.1, Path(sys.argv[2])
if path.name.startswith("spin"):
    reader_pool.Channel.set_timeout = lambda *_: None
with reader_pool.ReaderPool(ReadLimits(seconds=0.1), size=2) as pool, path.open("rb") as file:
    print(pool.read(Source(file), path.name).record.modules)
"""


PROGRAMS = ["pypi_assets.distributions.reader_process", "pypi_assets_tests.distributions.misbehaving_reader"]


def parent(path: Path, program: str) -> "subprocess.Popen[str]":
    """Run a program with a reader that shares its stderr, so that stderr ends when both processes have ended."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-W", "error", "-c", PARENT, program, str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def stored_far_wheel(folder: Path) -> Path:
    content, filename = far_wheel()
    (folder / filename).write_bytes(content.getvalue())
    return folder / filename


def test_nothing_is_printed_if_warnings_are_errors(tmp_path: Path) -> None:
    with parent(stored_far_wheel(tmp_path), PROGRAMS[0]) as program:
        stdout, stderr = program.communicate("\n" * 9, timeout=60)
    assert (set(stdout.splitlines()), stderr) == ({"reading", "('demo',)"}, "")
    assert program.returncode == 0


def test_killed_parent_leaves_no_waiting_reader(tmp_path: Path) -> None:
    with parent(stored_far_wheel(tmp_path), PROGRAMS[0]) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "reading\n"
        program.kill()
        program.communicate(timeout=60)
    assert program.returncode == -signal.SIGKILL


def test_killed_parent_leaves_no_hanging_reader(tmp_path: Path) -> None:
    with parent(make_wheel(tmp_path, "spin", "1.0"), PROGRAMS[1]) as program:
        assert program.stderr is not None
        assert program.stderr.readline() == "spinning\n"
        program.kill()
        program.communicate(timeout=60)
    assert program.returncode == -signal.SIGKILL
