"""Reads the projects of a lock: uv.lock, poetry.lock, and pylock.toml by PEP 751. All that is locked is a root."""

from collections.abc import Callable
from pathlib import Path

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.reading import entries_reader
from pypi_assets.scopes.roots import Roots, RootsError, joined_roots, read_toml


def lock_reader(filename: str) -> Callable[[Path], Roots] | None:
    """What reads a lock of that name; None where it is the name of no known lock."""
    entries = entries_reader(filename)
    if entries is None:
        return None

    def read(path: Path) -> Roots:
        content = read_toml(path)
        try:
            found = list(entries(content))
        except LockError as error:
            raise RootsError(f"{path}: {error}") from None
        skipped = [
            f"{path}: {entry.name} comes from {entry.elsewhere}, and not from an index"
            for entry in found
            if entry.elsewhere is not None
        ]
        return joined_roots(((entry.name, ()) for entry in found if entry.elsewhere is None), skipped)

    return read
