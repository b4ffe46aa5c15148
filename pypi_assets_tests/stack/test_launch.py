"""Starting a program of the stack: after its dependencies, and never next to a server that holds its lock."""

import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets.distributions.containment import kernel
from pypi_assets.stack.launch import delete_stale_lock
from pypi_assets.stack.layout import Layout, is_ready
from pypi_assets_tests.waiting import until

LAUNCH = (sys.executable, "-m", "pypi_assets.stack.launch")


def test_launch_waits_for_the_address_and_becomes_the_command(tmp_path: Path):
    layout = Layout(tmp_path)
    layout.make_folders()  # the path of a test can be too long for a socket
    path = layout.sockets / "socket"
    command = [*LAUNCH, "--await", f"unix:{path}", "--", sys.executable, "-c", "import os; print(os.getpid())"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert str(path) in process.stderr.readline()
        assert process.poll() is None
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert int(output) == process.pid
    assert process.returncode == 0


def test_launch_with_lock_waits_for_the_end_of_the_holder(tmp_path: Path):
    command = [*LAUNCH, "--lock", str(tmp_path / "lock"), "--"]
    prints = ["sh", "-c", "echo first; read line"]
    first = subprocess.Popen([*command, *prints], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "first\n"
        second = subprocess.Popen([*command, "echo", "second"], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(1)
    finally:
        first.kill()
        first.communicate()
    assert second.communicate(timeout=60)[0] == "second\n"


@pytest.mark.skipif(not kernel.IS_LINUX, reason="the kernel of Linux alone does this")
def test_launch_command_ends_with_its_parent_process():
    starts = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([*{LAUNCH!r}, '--', 'sleep', '1000'], stdout=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", starts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    becomes_sleep(child)
    ended = os.pidfd_open(child)
    parent.kill()
    parent.communicate()
    assert select.select([ended], [], [], 60)[0]
    os.close(ended)


def becomes_sleep(process: int) -> None:
    """Wait until the launched process has become the command."""
    until(lambda: Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"sleep"))


def test_delete_stale_lock_keeps_the_lock_of_a_running_server(tmp_path: Path, subtests: pytest.Subtests):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    for name, content, is_kept in (
        ("of a process that has ended", f"{int(ended.stdout)}\n/data\n", False),
        ("of a process that is no server", f"{os.getpid()}\n/data\n", False),
        ("without a number", "", True),
    ):
        with subtests.test(name):
            path = tmp_path / "postmaster.pid"
            path.write_text(content)
            delete_stale_lock(path)
            assert path.exists() == is_kept
    delete_stale_lock(tmp_path / "missing")


def test_is_ready_without_listener_is_false(tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for address in (
        f"http://127.0.0.1:{port}/",
        f"unix:{tmp_path / 'none'}",
        f"postgresql://postgres@/x?host={tmp_path}",
    ):
        assert not is_ready(address)
