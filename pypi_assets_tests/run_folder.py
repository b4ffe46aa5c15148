"""The folder of a test run: in memory if there is enough, and always deleted at the end, together with its servers."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "pypi-assets-tests-"
_MEMORY = Path("/dev/shm")
_LEAST_FREE_BYTES = 6 * 1024**3
_LOCK = "owner"

_CLEAN_UP = """
read -r _
for file in "$1"/postgres*/data/postmaster.pid; do
    pid=$(head -n 1 "$file" 2>/dev/null) && kill -INT "$pid" 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e "$file" ] || break; sleep 0.2; done
done
rm -rf "$1"
"""
"""Its input ends when the process that holds the other end of the pipe ends."""


def make_run_folder() -> Path:
    """Make a folder for the temporary files of this process and its child processes.

    When this process ends, even if it is killed, the database servers in the folder are stopped and the folder is
    deleted.
    """
    parent = Path(tempfile.gettempdir())
    if "TMPDIR" not in os.environ and _has_room(_MEMORY):
        parent = _MEMORY
    remove_orphans(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_WRONLY)  # the lock and the pipe are held until this process ends
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    ending, _ = os.pipe()
    command = ["sh", "-c", _CLEAN_UP, "sh", str(folder)]
    os.posix_spawn("/bin/sh", command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, ending, 0)], setsid=True)
    os.close(ending)
    return folder


def remove_orphans(parent: Path) -> None:
    """Remove folders of ended runs whose clean-up process was killed too."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def _has_room(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return min(shutil.disk_usage(folder).free, int(fields["MemAvailable"].split()[0]) * 1024) >= _LEAST_FREE_BYTES
