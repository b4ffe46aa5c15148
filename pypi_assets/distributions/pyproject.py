"""Reads pyproject.toml and looks into it: its values can be of any kind."""

from collections.abc import Mapping
from typing import Any

import tomli

MAX_TOML_CHARACTERS = 512 * 1024
"""Ten times the longest honest files; parsing some text of this length takes a second."""


def parse_toml(text: str) -> dict[str, Any]:
    """Raises ValueError, and RecursionError where it is nested too deeply."""
    if len(text) > MAX_TOML_CHARACTERS:
        raise ValueError(f"it is longer than {MAX_TOML_CHARACTERS} characters")
    return tomli.loads(text)


def table(parent: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The table at `keys`, empty where there is none."""
    value: object = parent
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """A string or an array of strings, as a list; what is no string is left out."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
