"""Wheels that tests give to readers, and readers that leave marks."""

import io
import os
from pathlib import Path

import pytest

from pypi_assets.distributions import reader_pool
from pypi_assets_tests.builders import core_metadata, make_wheel, zip_bytes


def wheel(folder: Path, name: str = "demo") -> tuple[io.BytesIO, str]:
    path = make_wheel(folder, name, "1.0")
    return io.BytesIO(path.read_bytes()), path.name


def far_wheel(name: str = "demo") -> tuple[io.BytesIO, str]:
    """One whose METADATA lies far before its end, with which a reader begins."""
    metadata = {f"{name}-1.0.dist-info/METADATA": core_metadata(name, "1.0")}
    content = zip_bytes(metadata | {f"{name}.py": "", f"{name}.bin": os.urandom(50_000)})
    return io.BytesIO(content), f"{name}-1.0-py3-none-any.whl"


def let_readers_leave_marks(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Misbehaving readers that start from now on know `folder`, and may write there."""
    environment = reader_pool._environment()
    monkeypatch.setattr(reader_pool, "_environment", lambda: environment | {"MARKS_OF_READERS": str(folder)})
