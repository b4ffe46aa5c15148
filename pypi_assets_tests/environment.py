"""Removes the settings of the person who runs the tests from the environment."""

import os

import pytest

from pypi_assets.settings import ENV_PREFIX


def clear_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of their file `.env`."""
    for name in list(os.environ):
        if name.upper().startswith(ENV_PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.setenv(f"{ENV_PREFIX}ENV_FILE", os.devnull)
