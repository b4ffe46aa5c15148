"""Define a fixture that runs a test with each installed LevelDB binding, while the others cannot be imported."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from pypi_assets.leveldbs.format.leveldb_binding import BINDINGS

INSTALLED = [name for name in BINDINGS if find_spec(name) is not None]


def hide_bindings(monkeypatch: pytest.MonkeyPatch, *, but: str | None = None) -> None:
    for name in BINDINGS:
        if name != but:
            monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture(params=INSTALLED)
def binding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the only binding that can be imported."""
    module = import_module(request.param)
    hide_bindings(monkeypatch, but=request.param)
    return module
