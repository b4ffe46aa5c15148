"""Reads the projects of a lock: uv.lock, poetry.lock, and pylock.toml by PEP 751. All that is locked is a root."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError, is_valid_pylock_path

from pypi_assets.distributions.pyproject import items, strings, table
from pypi_assets.scopes.roots import Roots, RootsError, joined_roots, read_toml

_Package = tuple[str, list[str], str | None]
"""The name of a locked package, its extras, and where it comes from if that is no index."""


def lock_reader(filename: str) -> Callable[[Path], Roots] | None:
    """What reads a lock of that name; None where it is the name of no known lock."""
    if is_valid_pylock_path(Path(filename)):
        return _reader(_pylock)
    return {"uv.lock": _reader(_uv_lock), "poetry.lock": _reader(_poetry_lock)}.get(filename)


def _reader(packages: Callable[[dict[str, Any]], Iterator[_Package]]) -> Callable[[Path], Roots]:
    def read(path: Path) -> Roots:
        content = read_toml(path)
        try:
            found = list(packages(content))
        except _LockError as error:
            raise RootsError(f"{path}: {error}") from None
        skipped = [f"{path}: {name} comes from {source}, and not from an index" for name, _, source in found if source]
        return joined_roots(((name, extras) for name, extras, source in found if source is None), skipped)

    return read


class _LockError(Exception):
    """The lock is of another format; the text names the key."""


def _uv_lock(content: Mapping[str, Any]) -> Iterator[_Package]:
    if content.get("version") != 1:
        raise _LockError(f"version: expected 1 as uv writes it, not {content.get('version')!r}")
    for package, name in _packages(content, "package"):
        source = table(package, "source")
        yield name, [], next((kind for kind in source if kind != "registry"), None)


def _poetry_lock(content: Mapping[str, Any]) -> Iterator[_Package]:
    if not str(table(content, "metadata").get("lock-version", "")).startswith(("1.", "2.")):
        raise _LockError("metadata.lock-version: expected 1.x or 2.x, as Poetry writes it")
    for package, name in _packages(content, "package"):
        kind = table(package, "source").get("type", "legacy")
        yield name, [], None if kind == "legacy" else str(kind)


def _pylock(content: dict[str, Any]) -> Iterator[_Package]:
    try:
        lock = Pylock.from_dict(content)
    except (PylockValidationError, PylockUnsupportedVersionError) as error:
        raise _LockError(str(error).splitlines()[0]) from None
    for package in lock.packages:
        elsewhere = (("version control", package.vcs), ("a folder", package.directory), ("a URL", package.archive))
        yield package.name, [], next((kind for kind, where in elsewhere if where is not None), None)


def _packages(content: Mapping[str, Any], key: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    packages = content.get(key, [])
    if not isinstance(packages, list):
        raise _LockError(f"{key}: expected a list of tables, not {packages!r}")
    for number, package in enumerate(packages, start=1):
        name = dict(items(package)).get("name")
        if not strings(name):
            raise _LockError(f"{key} {number}: it has no name")
        yield package, strings(name)[0]
