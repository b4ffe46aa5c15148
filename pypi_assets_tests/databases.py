"""SQLite databases with the catalog's tables, and a shared cache of compiled statements.

Most catalogs of tests are small and short-lived: creating tables and compiling statements would take most of the time.
"""

import os
import tempfile
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
    """Creates an SQLite database with the catalog's tables, all empty; returns its URL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_empty_database())
    return f"sqlite:///{path}"


@cache
def _empty_database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.sqlite"
        path.touch()  # so that it is no copy
        open_catalog(f"sqlite:///{path}").close()
        return path.read_bytes()


def _copy_empty_database(path: Path) -> None:
    """Processes and threads that open one file at the same time find all of it."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name) as whole:
        whole.write(_empty_database())
        whole.flush()
        with suppress(FileExistsError):
            os.link(whole.name, path)


def prepare_catalogs(patch: pytest.MonkeyPatch) -> None:
    """Makes all catalogs on one kind of database share one cache of compiled statements, and a catalog in a file that
    is not there yet a copy of an empty one."""
    dialects: dict[str, Dialect] = {}
    compiled: dict[str, dict[Any, Any]] = {}

    def create_engine(url: str, **options: Any) -> Engine:
        file = sqlalchemy.make_url(url).database
        if url.startswith("sqlite:") and file and Path(file).parent.is_dir() and not Path(file).exists():
            _copy_empty_database(Path(file))
        engine = sqlalchemy.create_engine(url, **options)
        shared = dialects.get(engine.name)
        if shared is None or shared.server_version_info is None:  # its engine has never connected
            shared = dialects[engine.name] = engine.dialect
        engine.dialect = shared
        engine.update_execution_options(compiled_cache=compiled.setdefault(engine.name, {}))
        return engine

    patch.setattr(database, "create_engine", create_engine)
