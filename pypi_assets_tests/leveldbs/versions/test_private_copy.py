"""Private folders vanish with their owner, however it ends, and those of the living are left alone."""

import os
import signal
import subprocess
from pathlib import Path

from pypi_assets.leveldbs.versions.private_copy import private_folder, private_parent
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.forked import ForkedProgram

_HOLD = """
import sys
from pathlib import Path
from pypi_assets.leveldbs.versions.private_copy import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_private_folder_is_removed_at_the_end(tmp_path: Path) -> None:
    with private_folder(tmp_path / "p") as one, private_folder(tmp_path / "p") as other:
        (one / "file").write_text("x")
        assert one != other
        assert one.is_dir()
        assert other.is_dir()
    assert list((tmp_path / "p").iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with ForkedProgram(_HOLD, tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with private_folder(tmp_path):
            assert (left / "file").exists()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert (left / "file").exists()
    with private_folder(tmp_path):
        assert not left.exists()


def test_private_folders_go_where_files_can_be_linked(tmp_path: Path) -> None:
    folder = open_storage((tmp_path / "storage").as_uri())
    assert private_parent(folder, tmp_path / "cache") == tmp_path / "storage" / ".private"
    remote = open_storage("memory:///")
    assert private_parent(remote, tmp_path / "cache") == tmp_path / "cache" / ".private"
    assert private_parent(remote, None).name.startswith("pypi-assets-")
