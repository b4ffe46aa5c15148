"""The web pages that the demo leaves running end on `stop`, or when the demo's folder is deleted."""

import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.waiting import until

DEMO = Path(__file__).parent.parent / "demo"
START = (
    "import folders, pages; folders.remember_port(folders.free_port()); print(pages.start(), folders.remembered_port())"
)
WITHIN_S = 30


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Copy the demo, so that the data of other copies is not touched."""
    clear_settings(monkeypatch)
    shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / ".demo" / "index").mkdir(parents=True)
    yield tmp_path
    shutil.rmtree(tmp_path / ".demo", ignore_errors=True)


def run(copy: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=copy / "demo", check=True, capture_output=True, text=True, timeout=120).stdout


def started(copy: Path) -> tuple[str, list[int]]:
    """Start the pages. Return their URL, and the ports of the started processes."""
    url, index_port = run(copy, "-c", START).split()
    with urllib.request.urlopen(f"{url}healthz", timeout=60) as answer:
        assert answer.status == 200
    return url, [int(index_port), int(url.rstrip("/").rpartition(":")[2])]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_pages_respond_until_stopped(copy: Path):
    _, ports = started(copy)
    assert not any(map(is_free, ports))
    run(copy, "pages.py", "stop")
    assert all(map(is_free, ports))
    run(copy, "pages.py", "stop")


def test_pages_end_when_demo_folder_is_deleted(copy: Path):
    _, ports = started(copy)
    shutil.rmtree(copy / ".demo")
    until(lambda: all(map(is_free, ports)), WITHIN_S)
