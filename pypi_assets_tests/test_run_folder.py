"""Forked programs, and the folder of a test run, which is deleted when its process ends."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from pypi_assets_tests.forked import COMMAND_LINE, ForkedProgram, run_forked
from pypi_assets_tests.run_folder import remove_orphans
from pypi_assets_tests.waiting import until

PROGRAM = """
import sys
from pypi_assets_tests.postgres import running_server
from pypi_assets_tests.run_folder import make_run_folder

folder = make_run_folder()
with running_server():
    print(folder, flush=True)
    sys.stdin.read()
"""


def wait_until_gone(path: Path, pid: int) -> None:
    until(lambda: not path.exists() and not psutil.pid_exists(pid))


@pytest.mark.nightly
@pytest.mark.parametrize("ending", ["end", "kill"])
def test_folder_and_server_end_with_their_owner(ending: str) -> None:
    with tempfile.TemporaryDirectory(prefix="run-", dir="/tmp") as folder:  # the path of a socket must be short
        end_owner(Path(folder), ending)


def end_owner(tmp_path: Path, ending: str) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdin=pipe, stdout=pipe, text=True
    ) as owner:
        assert owner.stdout is not None
        path = Path(owner.stdout.readline().strip())
        assert path.parent == tmp_path
        server = int((path / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])
        assert psutil.pid_exists(server)
        remove_orphans(tmp_path)
        assert path.exists()  # its owner is still running
        if ending == "kill":
            owner.send_signal(signal.SIGKILL)
        else:
            owner.communicate()
    wait_until_gone(path, server)


def test_orphans_are_removed_and_other_folders_stay(tmp_path: Path) -> None:
    orphan, foreign, unlocked = (tmp_path / name for name in ("pypi-assets-tests-1", "other", "pypi-assets-tests-2"))
    for folder in (orphan, foreign, unlocked):
        folder.mkdir()
    for folder in (orphan, foreign):
        (folder / "owner").touch()
    remove_orphans(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "pypi-assets-tests-2"]


def test_forked_program_gets_arguments_environment_and_folder(tmp_path: Path) -> None:
    program = "import os, sys; print(sys.argv[1:], dict(os.environ), os.getcwd(), repr(sys.stdin.read()))"
    done = run_forked(program, "a", 5, env={"ONE": "1"}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"['a', '5'] {{'ONE': '1'}} {tmp_path} ''\n"


def test_forked_program_returns_exit_code_or_signal() -> None:
    for program, code in {
        "pass": 0,
        "import sys; sys.exit(3)": 3,
        "import sys; sys.exit('why')": 1,
        "1 / 0": 1,
        "import os; os.kill(os.getpid(), 15)": -signal.SIGTERM,
    }.items():
        assert run_forked(program).returncode == code, program
    assert "ZeroDivisionError" in run_forked("1 / 0").stderr


def test_forked_program_communicates_through_pipes() -> None:
    program = "import sys\nfor line in sys.stdin: print(line.strip() * 2, flush=True)"
    with ForkedProgram(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("ab\n")
        process.stdin.flush()
        assert process.stdout.readline() == "abab\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        assert process.stdout.read() == ""
    with ForkedProgram(program, stdin=subprocess.PIPE) as ended:
        assert ended.stdin
        ended.stdin.close()
        assert ended.wait(60) == 0


def test_strict_program_fails_on_a_warning() -> None:
    program = "import warnings; warnings.warn('x')"
    assert (run_forked(program).returncode, run_forked(program, strict=True).returncode) == (0, 1)


def test_interrupt_is_a_keyboard_interrupt() -> None:
    program = (
        "import time\ntry: print('ready', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: raise SystemExit(7)"
    )
    with ForkedProgram(program, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 7


def test_command_line_runs_pypi_assets() -> None:
    done = run_forked(COMMAND_LINE, "--version", env=dict(os.environ), strict=True)
    assert (done.returncode, done.stdout.split(",")[0]) == (0, "pypi-assets")
