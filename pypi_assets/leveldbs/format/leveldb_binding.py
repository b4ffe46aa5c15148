"""Opens LevelDBs with a binding: plyvel or its fork plyvel-next, which only this module imports, on first use.

Another binding can replace them if it offers the types below. How this project opens its LevelDBs, and what their
errors mean, does not belong here; see `open_leveldb`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, Self, cast

from pypi_assets.leveldbs.format.leveldb_errors import MissingBindingError

BINDINGS = ("plyvel", "plyvel_next")
"""The modules that can open LevelDBs. The first one that can be imported is used."""

_MISSING = (
    "LevelDBs need plyvel or plyvel-next, and neither can be imported: install pypi-assets again with CPython 3.12,"
    " 3.13 or 3.14 on Linux or macOS (x86-64 or ARM), for which pip installs a wheel (`uv python install 3.13`)"
)


class RecordIterator(Protocol):
    """Records in the order of their keys, in the state at one moment. As a context manager, it releases that state."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...

    def __next__(self) -> tuple[bytes, bytes]: ...


class RawIterator(Protocol):
    """LevelDB's own iterator, which is moved explicitly."""

    def seek(self, target: bytes) -> None: ...

    def seek_to_last(self) -> None: ...

    def valid(self) -> bool: ...

    def key(self) -> bytes: ...

    def value(self) -> bytes: ...

    def next(self) -> None: ...

    def close(self) -> None: ...


class WriteBatch(Protocol):
    """Changes that are written together. As a context manager, it writes them at the end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def write(self) -> None: ...


class Database(Protocol):
    """An open LevelDB. LevelDB's own errors are among `binding_errors()`."""

    def get(self, key: bytes, *, verify_checksums: bool = False) -> bytes | None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def write_batch(self) -> WriteBatch: ...

    def iterator(
        self,
        *,
        prefix: bytes | None = None,
        start: bytes | None = None,
        include_start: bool = True,
        verify_checksums: bool = False,
    ) -> RecordIterator: ...

    def raw_iterator(self, *, verify_checksums: bool = False) -> RawIterator: ...

    def compact_range(self, *, start: bytes, stop: bytes) -> None: ...

    def get_property(self, name: bytes) -> bytes | None: ...

    def close(self) -> None: ...


def require_binding() -> Any:
    """Return the module plyvel, or plyvel_next if plyvel cannot be imported. Raises MissingBindingError.

    Call it before long work that ends with opening a LevelDB.
    """
    unloadable = ""  # the errors are not stored: they would keep the frames of all callers alive, and so open LevelDBs
    try:
        import plyvel

        return plyvel
    except ModuleNotFoundError:
        pass
    except ImportError as error:  # built with a LevelDB library that was removed later
        unloadable += f"; {error}"
    try:
        import plyvel_next

        return plyvel_next
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError):
            unloadable += f"; {error}"
        raise MissingBindingError(_MISSING + unloadable) from error


def open_database(path: Path, **options: Any) -> Database:
    """Open the LevelDB in the folder `path` with plyvel's `options`. Raises MissingBindingError."""
    return cast("Database", require_binding().DB(str(path), **options))


def binding_errors() -> tuple[type[Exception], ...]:
    """Return the errors of LevelDB itself, for `except`. Empty until a binding is imported."""
    imported = [sys.modules.get(name) for name in BINDINGS]
    return tuple(module.Error for module in imported if module and hasattr(module, "Error"))
