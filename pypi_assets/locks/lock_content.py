"""The bytes and the values of a lock: read within limits, with errors that name the file and the place."""

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
"""The locks of the largest workspaces have a tenth of that."""
LARGEST_REQUIREMENTS_BYTES = 16 * 1024**2
"""Of a file in the format of requirements.txt, whose lines take longer to parse."""
MOST_ENTRIES = 50_000
"""The largest workspaces lock some thousand distributions."""
_SHOWN = 80


class LockError(ExpectedError):
    """A lock that cannot be read; the text names the file, the place in it, and what is accepted."""


def read_bytes(path: Path, largest: int = LARGEST_BYTES) -> bytes:
    """The content of a file. Raises LockError where it cannot be read, or has more than `largest` bytes."""
    try:
        if (size := path.stat().st_size) > largest:
            raise LockError(f"{path}: has {size:,} bytes, and files of its kind are read up to {largest:,}")
        return path.read_bytes()
    except OSError as error:
        raise LockError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise LockError(f"{path}: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises LockError as `read_bytes` does, and where it is no TOML."""
    try:
        return parse_toml(read_bytes(path).decode("utf-8-sig"), longest=LARGEST_BYTES)
    except ValueError as error:
        raise LockError(f"{path}: {error}") from None


def tables_at(parent: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    """The tables of the array at `key`, which may be missing. Raises LockError."""
    value = parent.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise LockError(f"{where}{key}: expected a list of tables, not {shown(value)}")
    if len(value) > MOST_ENTRIES:
        raise LockError(f"{where}{key}: has {len(value):,} tables, and at most {MOST_ENTRIES:,} are read")
    return value


def table_at(parent: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """The table at `key`, which may be missing. Raises LockError."""
    value = parent.get(key, {})
    if not isinstance(value, dict):
        raise LockError(f"{where}{key}: expected a table, not {shown(value)}")
    return value


def text_at(parent: Mapping[str, Any], key: str, where: str) -> str | None:
    """The text at `key`, None where there is none. Raises LockError."""
    value = parent.get(key)
    if value is not None and not isinstance(value, str):
        raise LockError(f"{where}{key}: expected a text, not {shown(value)}")
    return value


def texts_at(parent: Mapping[str, Any], key: str, where: str) -> list[str]:
    """The texts at `key`: an array, one text, or none. Raises LockError."""
    value = parent.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise LockError(f"{where}{key}: expected a list of texts, not {shown(value)}")
    return texts


def shown(value: object) -> str:
    """`value` as Python writes it, cut: a lock can hold anything.

    >>> shown("a" * 100)[-4:]
    'aaa…'
    """
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def checked_marker(text: str | None, where: str) -> str | None:
    """The marker `text`, if there is one. Raises LockError, whose text begins with `where`."""
    if text is not None:
        try:
            parsed_marker(text)
        except (ValueError, RecursionError) as error:
            raise LockError(f"{where}{shown(text)} is no marker: {_first_line(error)}") from None
    return text


@cached_if_short(4_096, longest=1_000)
def parsed_marker(text: str) -> Marker:
    """The marker. Raises ValueError, and RecursionError for one that nests too deep."""
    return Marker(text)


def checked_version(text: str, where: str) -> str:
    """`text`. Raises LockError where it is no version by PEP 440."""
    try:
        Version(text)
    except ValueError:  # InvalidVersion, or a number with thousands of digits
        raise LockError(f"{where}{shown(text)} is no version") from None
    return text


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def toml_text(text: str) -> str:
    """`text` as a basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
