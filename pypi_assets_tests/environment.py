"""Remove the developer's own settings from the environment of a test."""

import os

import pytest

from pypi_assets.settings import ENV_PREFIX


def clear_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete all variables of settings, and disable the developer's `.env` file."""
    for name in list(os.environ):
        if name.upper().startswith(ENV_PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.setenv(f"{ENV_PREFIX}ENV_FILE", os.devnull)
