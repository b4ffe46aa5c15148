"""Create SQLite databases with the catalog's tables, and share one cache of compiled statements.

Most catalogs in tests are small and short-lived, so creating tables and compiling statements would take most of the
time.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Dialect, Engine

from pypi_assets.catalog import database
from pypi_assets.catalog.database import open_catalog


def sqlite_database(path: Path) -> str:
    """Create an SQLite database with the catalog's tables, all empty, and return its URL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_empty_database())
    return f"sqlite:///{path}"


@cache
def _empty_database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.sqlite"
        path.touch()  # an existing file is not replaced by a copy of the empty database
        open_catalog(f"sqlite:///{path}").close()
        return path.read_bytes()


def _copy_empty_database(path: Path) -> None:
    """Write the copy and link it to `path`, so that simultaneous users of the file find it whole."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name) as whole:
        whole.write(_empty_database())
        whole.flush()
        with suppress(FileExistsError):
            os.link(whole.name, path)


def prepare_catalogs(patch: pytest.MonkeyPatch) -> None:
    """Make all catalogs on the same kind of database share one cache of compiled statements.

    A new SQLite catalog file is copied from an empty one.
    """
    dialects: dict[str, Dialect] = {}
    compiled: dict[str, dict[Any, Any]] = {}

    def create_engine(url: str, **options: Any) -> Engine:
        engine = sqlalchemy.create_engine(url, **options)
        shared = dialects.get(engine.name)
        if shared is None or shared.server_version_info is None:  # the engine of this dialect has never connected
            shared = dialects[engine.name] = engine.dialect
        engine.dialect = shared
        engine.update_execution_options(compiled_cache=compiled.setdefault(engine.name, {}))
        return engine

    def open_(url: str, clock: Callable[[], float] | None, *, migrate: bool, must_exist: bool = False) -> Any:
        file = Path(url.removeprefix("sqlite:///"))
        is_new = url.startswith("sqlite:///") and file.parent.is_dir() and not (migrate or must_exist or file.exists())
        if is_new and vars(database)["_MIGRATIONS"] == migrations:
            _copy_empty_database(file)
        return opened(url, clock, migrate=migrate, must_exist=must_exist)

    opened, migrations = vars(database)["_open"], vars(database)["_MIGRATIONS"]
    patch.setattr(database, "create_engine", create_engine)
    patch.setattr(database, "_open", open_)
