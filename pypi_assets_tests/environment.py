"""Removes the settings of the person who runs the tests from the environment."""

import os

import pytest

from pypi_assets.settings import ENV_PREFIX


def clear_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith(ENV_PREFIX):
            monkeypatch.delenv(name)
