"""Start the processes of the demo, and end them all."""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from folders import DEMO, ROOT
from rich.console import Console

STOP_WITHIN_S = 90

console = Console()


@contextmanager
def started(commands: dict[str, list[str]], settings: dict[str, str]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Run the commands, each in its own process group, and end them all, even if the block raises an error."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command in commands.items():
            with log_of(name).open("wb") as log:
                processes[name] = subprocess.Popen(
                    command, cwd=ROOT, env=settings, start_new_session=True, stdout=log, stderr=subprocess.STDOUT
                )
        yield processes
    finally:
        for process in reversed(processes.values()):
            signal_group(process, signal.SIGINT)
        for process in processes.values():
            try:
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                signal_group(process, signal.SIGKILL)
                process.wait()


def log_of(name: str) -> Path:
    """Return the log file of a process."""
    return DEMO / f"{name}.log"


def has_ended(processes: dict[str, subprocess.Popen[bytes]]) -> bool:
    """Check whether one of the processes has ended by itself, and show its last messages."""
    for name, process in processes.items():
        if process.poll() is not None:
            lines = log_of(name).read_text(errors="replace").splitlines()[-15:]
            console.print(f"{name} ended (exit code {process.returncode}); its last messages:", *lines, sep="\n")
            return True
    return False


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send the signal to the process and to all processes that it started."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def answers(url: str) -> bool:
    """Check whether the address answers with status 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
