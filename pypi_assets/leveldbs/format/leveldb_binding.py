"""The door to LevelDB: the only module that imports a binding of it, plyvel, when a LevelDB is first opened.

Another binding takes plyvel's place here, by offering the types below. How this project opens its LevelDBs, and what
their errors mean, does not belong here: see `open_leveldb`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, Self, cast

from pypi_assets.leveldbs.format.errors import MissingBindingError

_MISSING = (
    "plyvel is not installed, with which LevelDBs are read and written: make and pip bring it for CPython 3.11 and 3.12"
    " on x86-64 Linux (`uv python install 3.12`), and elsewhere build it with `pip install plyvel` once"
    " its headers are there (`apt install g++ libleveldb-dev python3-dev`,"
    " `dnf install gcc-c++ leveldb-devel python3-devel` or `brew install leveldb`)"
)


class RecordIterator(Protocol):
    """Records in the order of their keys, from one moment on; a context manager that lets go of that moment."""

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
    """Changes that are written together; a context manager that writes them at its end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def write(self) -> None: ...


class Database(Protocol):
    """An open LevelDB. What it raises of its own is one of `binding_errors()`."""

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
    """Returns the module plyvel. Raises MissingBindingError where it is not installed, or cannot be loaded.

    Called before anything long begins that ends in an open LevelDB.
    """
    try:
        import plyvel
    except ModuleNotFoundError as error:
        raise MissingBindingError(_MISSING) from error
    except ImportError as error:  # it was built, but LevelDB itself is not there
        raise MissingBindingError(f"{_MISSING}; {error}") from error
    return plyvel


def open_database(path: Path, **options: Any) -> Database:
    """Opens the LevelDB in the folder `path` with plyvel's `options`. Raises MissingBindingError."""
    return cast("Database", require_binding().DB(str(path), **options))


def binding_errors() -> tuple[type[Exception], ...]:
    """The errors of LevelDB itself, for `except`: none as long as the binding was not imported."""
    plyvel = sys.modules.get("plyvel")
    return (plyvel.Error,) if plyvel else ()
