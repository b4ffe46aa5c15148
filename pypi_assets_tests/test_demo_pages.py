"""The pages that the demo leaves running end when they are told to, and with the folder of the demo."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets_tests.environment import clear_settings

DEMO = Path(__file__).parent.parent / "demo"
START = (
    "import folders, pages; folders.remember_port(folders.free_port()); print(pages.start(), folders.remembered_port())"
)
WITHIN_S = 30


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the demo, so that the data of no other one are touched."""
    clear_settings(monkeypatch)
    shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / ".demo" / "index").mkdir(parents=True)
    yield tmp_path
    shutil.rmtree(tmp_path / ".demo", ignore_errors=True)


def run(copy: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=copy / "demo", check=True, capture_output=True, text=True, timeout=120).stdout


def started(copy: Path) -> tuple[str, list[int]]:
    """The address of the pages, and the ports of what was started."""
    url, index_port = run(copy, "-c", START).split()
    with urllib.request.urlopen(f"{url}healthz", timeout=60) as answer:
        assert answer.status == 200
    return url, [int(index_port), int(url.rstrip("/").rpartition(":")[2])]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_they_answer_until_they_are_stopped(copy: Path):
    _, ports = started(copy)
    assert not any(map(is_free, ports))
    run(copy, "pages.py", "stop")
    assert all(map(is_free, ports))
    run(copy, "pages.py", "stop")


def test_they_end_with_the_folder_of_the_demo(copy: Path):
    _, ports = started(copy)
    shutil.rmtree(copy / ".demo")
    deadline = time.monotonic() + WITHIN_S
    while not all(map(is_free, ports)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
