"""Reads poetry.lock."""

from collections.abc import Iterator, Mapping
from typing import Any

from pypi_assets.distributions.poetry_requirements import python_marker
from pypi_assets.locks.entries import Entry, hashes_of, required_name
from pypi_assets.locks.lock_content import LockError, checked_marker, table_at, tables_at, text_at
from pypi_assets.locks.pins import LockedFile

_FROM_INDEX = "legacy"
"""The type of source of an index that is not the default one."""


def poetry_entries(content: Mapping[str, Any]) -> Iterator[Entry]:
    """The packages of a lock. Raises LockError, which names the key."""
    version = text_at(table_at(content, "metadata", ""), "lock-version", "metadata.") or ""
    if not version.startswith(("1.", "2.")):
        raise LockError("metadata.lock-version: expected 1.x or 2.x, as Poetry writes it")
    for number, package in enumerate(tables_at(content, "package", ""), start=1):
        name = required_name(package, f"package {number}")
        where = f"package {number} ({name})"
        source = table_at(package, "source", f"{where}: ")
        kind = text_at(source, "type", f"{where}: source.") or _FROM_INDEX
        yield Entry(
            where=where,
            name=name,
            version=text_at(package, "version", f"{where}: "),
            marker=_marker(package, where),
            files=tuple(_files(package, where)),
            elsewhere=None if kind == _FROM_INDEX else kind,
            index=text_at(source, "url", f"{where}: source.") if kind == _FROM_INDEX else None,
        )


def poetry_environments(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the markers of which one must hold: that of the Pythons of the project. Raises LockError."""
    constraint = text_at(table_at(content, "metadata", ""), "python-versions", "metadata.")
    try:
        marker = python_marker(constraint or "*")
    except ValueError:  # it decides nothing
        return ()
    return (marker,) if marker else ()


def _marker(package: Mapping[str, Any], where: str) -> str | None:
    """The marker of a package: one text, or one for each group, any of which brings it in."""
    stated = package.get("markers")
    if not isinstance(stated, dict):
        return checked_marker(text_at(package, "markers", f"{where}: "), f"{where}: markers: ")
    markers = [checked_marker(text_at(stated, group, f"{where}: markers."), f"{where}: markers: ") for group in stated]
    return " or ".join(f"({marker})" for marker in markers if marker) or None


def _files(package: Mapping[str, Any], where: str) -> Iterator[LockedFile]:
    for file in tables_at(package, "files", f"{where}: "):
        hashes = hashes_of(text_at(file, "hash", f"{where}: files."), f"{where}: hash")
        yield LockedFile(text_at(file, "file", f"{where}: files."), hashes)
