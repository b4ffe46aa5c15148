"""Targets of `attempts.py`: a process, servers and files that can be lost."""

import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def targets() -> Iterator[dict[str, str]]:
    """Yield the variables that name a server of each kind, a process, and files in a new folder with a short path."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _targets(Path(folder))


def _targets(place: Path) -> Iterator[dict[str, str]]:
    for name in ("file", "old", "deleted"):
        (place / name).write_text("text")
    abstract = uuid.uuid4().hex
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (f"\0{abstract}", str(place / "socket")):
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(address)
            listening.listen()
        process = subprocess.Popen(["sleep", "600"])
        stack.callback(process.wait)
        stack.callback(process.kill)
        yield {
            "TARGET_PORT": str(tcp.getsockname()[1]),
            "TARGET_UNIX": str(place / "socket"),
            "TARGET_ABSTRACT": abstract,
            "TARGET_FILE": str(place / "file"),
            "TARGET_FOLDER": str(place),
            "TARGET_PROCESS": str(process.pid),
        }
