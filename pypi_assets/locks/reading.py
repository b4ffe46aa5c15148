"""Reads a lock, whatever kind it is of."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.pylock import is_valid_pylock_path
from packaging.utils import InvalidName, canonicalize_name

from pypi_assets.locks.entries import Entry
from pypi_assets.locks.lock_content import (
    LockError,
    checked_marker,
    checked_version,
    read_toml,
    shown,
    text_at,
    texts_at,
)
from pypi_assets.locks.pins import Graph, Lock, Pin, Remark, RemarkKind, merged
from pypi_assets.locks.poetry_lock import poetry_entries, poetry_environments
from pypi_assets.locks.pylock_toml import pylock_entries
from pypi_assets.locks.requirements_txt import requirement_pins
from pypi_assets.locks.uv_lock import uv_entries, uv_graph

_Entries = Callable[[Mapping[str, Any]], Iterable[Entry]]
KINDS = "uv.lock, pylock.toml, pylock.NAME.toml, poetry.lock, and files in the format of requirements.txt"


def read_lock(path: Path) -> Lock:
    """The pins of a lock. Its name shows the kind: uv.lock, poetry.lock, pylock.toml or pylock.NAME.toml. Any other
    file is in the format of requirements.txt.

    Raises LockError, which names the file and the place in it.

        read_lock(Path("requirements.txt")).pins[0].text  # "PyYAML==6.0.2"
    """
    entries = entries_reader(path.name)
    if entries is None and path.suffix in {".toml", ".lock"}:
        raise LockError(f"{path}: locks are read from {KINDS}")
    graph: Graph | None = None
    requires_python: str | None = None
    environments: tuple[str, ...] = ()
    if entries is None:
        pins, remarks = requirement_pins(path)
    else:
        content = read_toml(path)
        try:
            pins, remarks = _from_entries(entries(content))
            graph = uv_graph(content) if entries is uv_entries else None
            requires_python, environments = _scope(content, entries)
        except LockError as error:
            raise LockError(f"{path}: {error}") from None
    merged_pins, repeated = merged(pins)
    return Lock(path.name, merged_pins, (*remarks, *repeated), graph, requires_python, environments)


def entries_reader(filename: str) -> _Entries | None:
    """What reads the entries of a lock of that name; None where it is not the name of a lock in TOML."""
    if is_valid_pylock_path(Path(filename)):
        return pylock_entries
    readers: dict[str, _Entries] = {"uv.lock": uv_entries, "poetry.lock": poetry_entries}
    return readers.get(filename)


def _scope(content: Mapping[str, Any], entries: _Entries) -> tuple[str | None, tuple[str, ...]]:
    """Return the Requires-Python of a lock, and the markers of which one must hold. Raises LockError."""
    if entries is poetry_entries:
        return None, poetry_environments(content)
    key = "environments" if entries is pylock_entries else "supported-markers"
    environments = tuple(texts_at(content, key, ""))
    for marker in environments:
        checked_marker(marker, f"{key}: ")
    return text_at(content, "requires-python", ""), environments


def _from_entries(entries: Iterable[Entry]) -> tuple[list[Pin], list[Remark]]:
    pins: list[Pin] = []
    remarks = []
    for entry in entries:
        if entry.elsewhere is not None:
            text = f"{entry.where} comes from {shown(entry.elsewhere)}, and not from an index"
            remarks.append(Remark(RemarkKind.ELSEWHERE, text, _normalized(entry)))
        elif entry.version is None:
            raise LockError(f"{entry.where}: it has no version")
        else:
            pins.append(_pin(entry, entry.version))
    return pins, remarks


def _pin(entry: Entry, version: str) -> Pin:
    return Pin(
        name=entry.name,
        normalized=_normalized(entry),
        version=checked_version(version, f"{entry.where}: version: "),
        where=entry.where,
        marker=entry.marker,
        files=entry.files,
        index=entry.index,
        requires_python=entry.requires_python,
    )


def _normalized(entry: Entry) -> str:
    try:
        return canonicalize_name(entry.name, validate=True)
    except InvalidName:
        raise LockError(f"{entry.where}: {shown(entry.name)} is no name of a project") from None
