"""Wheels for readers, readers that leave marks, and readers whose stop is noticed immediately."""

import io
import os
import select
import socket
import subprocess
from pathlib import Path

import pytest

from pypi_assets.distributions import reader_pool
from pypi_assets_tests.builders import core_metadata, make_wheel, zip_bytes


def wheel(folder: Path, name: str = "demo") -> tuple[io.BytesIO, str]:
    path = make_wheel(folder, name, "1.0")
    return io.BytesIO(path.read_bytes()), path.name


def far_wheel(name: str = "demo") -> tuple[io.BytesIO, str]:
    """Return a wheel with METADATA far from its end, so that a reader has to fetch it."""
    metadata = {f"{name}-1.0.dist-info/METADATA": core_metadata(name, "1.0")}
    content = zip_bytes(metadata | {f"{name}.py": "", f"{name}.bin": os.urandom(50_000)})
    return io.BytesIO(content), f"{name}-1.0-py3-none-any.whl"


def let_readers_leave_marks(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let misbehaving readers that start from now on write marks to `folder`."""
    environment = reader_pool._environment()
    monkeypatch.setattr(reader_pool, "_environment", lambda: environment | {"MARKS_OF_READERS": str(folder)})


class _AttentiveSocket(socket.socket):
    """A channel to a reader that times out as soon as a process of `started` is stopped."""

    started: "list[subprocess.Popen[bytes]]"

    def recv_into(self, *args, **options) -> int:  # type: ignore[no-untyped-def]
        while not select.select([self], [], [], 0.01)[0]:
            if any(map(_is_stopped, self.started)):
                raise TimeoutError
        return super().recv_into(*args, **options)


def _is_stopped(process: "subprocess.Popen[bytes]") -> bool:
    if process.returncode is not None:
        return False
    state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
    return state is not None and state.si_code == os.CLD_STOPPED


def notice_stopped_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time out a stopped reader immediately, and no other reader however busy the machine is."""
    started: list[subprocess.Popen[bytes]] = []
    popen, socketpair = subprocess.Popen, socket.socketpair

    class Recorded(popen):  # type: ignore[misc, valid-type]
        def __init__(self, *args, **options) -> None:  # type: ignore[no-untyped-def]
            super().__init__(*args, **options)
            started.append(self)

    def attentive_pair() -> tuple[socket.socket, socket.socket]:
        ours, theirs = socketpair()
        attentive = _AttentiveSocket(ours.family, ours.type, ours.proto, ours.detach())
        attentive.started = started
        return attentive, theirs

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    monkeypatch.setattr(socket, "socketpair", attentive_pair)
    monkeypatch.setattr(reader_pool, "GRACE_S", 300.0)
