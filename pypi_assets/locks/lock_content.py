"""Read the bytes and values of a lock within limits, with errors that name the file and the place."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.version import Version

from pypi_assets.distributions.pyproject import parse_toml
from pypi_assets.errors import ExpectedError
from pypi_assets.short_texts import cached_if_short

LARGEST_BYTES = 64 * 1024**2
"""The locks of the largest workspaces have a tenth of this."""
LARGEST_REQUIREMENTS_BYTES = 16 * 1024**2
"""The limit for files in the format of requirements.txt, whose lines take longer to parse."""
MOST_ENTRIES = 50_000
"""The largest workspaces lock a few thousand distributions."""
_SHOWN = 80


class LockError(ExpectedError):
    """A lock cannot be read. The message names the file, the place in it, and the expected value."""


def read_bytes(path: Path, largest: int = LARGEST_BYTES) -> bytes:
    """Return the content of a file. Raise LockError if it cannot be read or has more than `largest` bytes."""
    try:
        if (size := path.stat().st_size) > largest:
            raise LockError(f"{path}: has {size:,} bytes, at most {largest:,} are accepted")
        return path.read_bytes()
    except OSError as error:
        raise LockError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise LockError(f"{path}: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a file. Raise LockError like `read_bytes`, or if it is not valid TOML."""
    try:
        return parse_toml(read_bytes(path).decode("utf-8-sig"), longest=LARGEST_BYTES)
    except ValueError as error:
        raise LockError(f"{path}: {error}") from None


def tables_at(parent: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    """Return the tables of the array at `key`, which may be missing. Raise LockError."""
    value = parent.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise LockError(f"{where}{key}: expected a list of tables, not {shown(value)}")
    if len(value) > MOST_ENTRIES:
        raise LockError(f"{where}{key}: has {len(value):,} tables, at most {MOST_ENTRIES:,} are accepted")
    return value


def table_at(parent: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """Return the table at `key`, which may be missing. Raise LockError."""
    value = parent.get(key, {})
    if not isinstance(value, dict):
        raise LockError(f"{where}{key}: expected a table, not {shown(value)}")
    return value


def text_at(parent: Mapping[str, Any], key: str, where: str) -> str | None:
    """Return the text at `key`, or None if it is missing. Raise LockError."""
    value = parent.get(key)
    if value is not None and not isinstance(value, str):
        raise LockError(f"{where}{key}: expected a string, not {shown(value)}")
    return value


def texts_at(parent: Mapping[str, Any], key: str, where: str) -> list[str]:
    """Return the texts at `key`, which may be an array, one text, or missing. Raise LockError."""
    value = parent.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise LockError(f"{where}{key}: expected a list of strings, not {shown(value)}")
    return texts


def shown(value: object) -> str:
    """Return the repr of `value`, cut to a length for messages, since a lock can contain anything.

    >>> shown("a" * 100)[-4:]
    'aaa…'
    """
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def checked_marker(text: str | None, where: str) -> str | None:
    """Return the marker `text`, which may be None. Raise LockError with a message that begins with `where`."""
    if text is not None:
        try:
            parsed_marker(text)
        except (ValueError, RecursionError) as error:
            raise LockError(f"{where}{shown(text)} is not a valid marker: {_first_line(error)}") from None
    return text


@cached_if_short(4_096, longest=1_000)
def parsed_marker(text: str) -> Marker:
    """Return the marker. Raise ValueError, and RecursionError if it is nested too deeply."""
    return Marker(text)


def checked_version(text: str, where: str) -> str:
    """Return `text`. Raise LockError if it is not a version by PEP 440."""
    try:
        Version(text)
    except ValueError:  # InvalidVersion, or a number with thousands of digits
        raise LockError(f"{where}{shown(text)} is not a valid version") from None
    return text


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def toml_text(text: str) -> str:
    """Return `text` as a basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
