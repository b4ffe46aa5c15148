"""The folder of a run goes with the process that made it, however that ends."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from pypi_assets_tests.run_folder import remove_orphans

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
    deadline = time.monotonic() + 60
    while (path.exists() or psutil.pid_exists(pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not path.exists()
    assert not psutil.pid_exists(pid)


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
        assert path.exists()  # its owner lives
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
