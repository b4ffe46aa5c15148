"""Select the tests of a run, and define shared fixtures such as a catalog on SQLite and on a real PostgreSQL."""

import gc
import os
import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.databases import prepare_catalogs, sqlite_database
from pypi_assets_tests.durations import DurationRecorder
from pypi_assets_tests.examples import examples
from pypi_assets_tests.importing import import_tests
from pypi_assets_tests.leveldb_bindings import binding  # noqa: F401 - a fixture
from pypi_assets_tests.lock_order import LockOrder, watched_lock_order
from pypi_assets_tests.postgres import EMPTY, MIGRATED, new_database, running_server
from pypi_assets_tests.run_folder import make_run_folder
from pypi_assets_tests.served_index import ServedIndex, served_index
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog
from pypi_assets_tests.tiers import Draw, choose, draw, order
from pypi_assets_tests.waiting_transactions import WaitingTransactions, watched_transactions

# CI draws the same examples in every run, so that failures are reproducible. Other runs draw new examples.
# The health check for slow examples would measure the load of the machine: the first text drawn reads all of Unicode.
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

_DRAW = pytest.StashKey[Draw]()
_TAKEN = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=("quick", "all"),
        default="all",
        help="quick: all quick tests and a share of the nightly ones; all: every test (default)",
    )
    parser.addoption(
        "--record-durations",
        metavar="FOLDER",
        help="write the duration of each test to FOLDER, for pypi_assets_tests.durations",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder of the run, and draw the nightly tests once for all workers."""
    if folder := config.option.record_durations:
        config.pluginmanager.register(DurationRecorder(Path(folder)))
    if hasattr(config, "workerinput"):
        config.stash[_DRAW] = Draw(**config.workerinput["draw"])
        return
    make_run_folder()
    config.stash[_DRAW] = draw() if config.option.tier == "quick" else Draw("", "", frozenset())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the draw to a worker."""
    node.workerinput["draw"] = asdict(node.config.stash[_DRAW])


def pytest_report_header(config: pytest.Config) -> str | None:
    return f"nightly tests: {config.stash[_DRAW]}" if config.option.tier == "quick" else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the test modules. Each worker begins at a different one, so that no two workers compile the same file."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        share = int(worker.removeprefix("gw")) / int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        import_tests([Path(arg.partition("::")[0]) for arg in session.config.args], share)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.tier == "quick":
        items[:], deselected, taken = choose(items, config.stash[_DRAW])
        config.hook.pytest_deselected(items=deselected)
        config.stash[_TAKEN] = taken
    if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
        order(items, int(workers))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Store the nightly groups that a worker has selected."""
    if taken := getattr(node, "workeroutput", {}).get("taken"):
        node.config.stash[_TAKEN] = set(taken)


def pytest_sessionfinish(session: pytest.Session) -> None:
    gc.unfreeze()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["taken"] = sorted(session.config.stash.get(_TAKEN, ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the selected nightly tests in one line."""
    if taken := config.stash.get(_TAKEN, None):
        names = ", ".join(sorted(group.partition("::")[2] for group in taken))
        terminalreporter.write_line(f"nightly tests taken ({len(taken)}): {names}")


def pytest_collection_finish() -> None:
    """Exclude the thousands of collected tests from garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two workers per core, because tests wait for other processes about as long as they compute."""
    return 2 * (os.cpu_count() or 1)


@pytest.fixture(scope="session", autouse=True)
def _restore_sigint() -> None:
    """Restore the default SIGINT handler. A shell ignores SIGINT for background processes, and child processes of the
    tests would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start a PostgreSQL server that all workers share and that runs until the tests end."""
    with running_server() as url:
        yield url


@pytest.fixture(scope="session", autouse=True)
def _share_compiled_statements() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        prepare_catalogs(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def _commit_packs_by_size_only() -> Iterator[None]:
    """Commit reads by count and bytes only. On a busy machine, the time limit would split them into more packs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypi_assets.crawl.reading._COMMIT_EVERY_S", 3_600.0)
        yield


@pytest.fixture(scope="session")
def lock_order() -> Iterator[LockOrder]:
    """Watch the transactions of all tests."""
    with watched_lock_order() as order:
        yield order


@pytest.fixture(autouse=True)
def _require_lock_order(lock_order: LockOrder) -> Iterator[None]:
    """Fail each test in which a transaction locks tables in the wrong order."""
    lock_order.breaches.clear()
    yield
    if lock_order.breaches:
        pytest.fail("\n".join(dict.fromkeys(lock_order.breaches)))


@pytest.fixture(scope="session")
def waiting_transactions() -> Iterator[WaitingTransactions]:
    """Watch the HTTP requests of all tests."""
    with watched_transactions() as waiting:
        yield waiting


@pytest.fixture(autouse=True)
def _forbid_requests_within_transactions(waiting_transactions: WaitingTransactions) -> Iterator[None]:
    """Fail each test in which a request is sent within a transaction."""
    waiting_transactions.forget()
    yield
    if waiting_transactions.requests:
        pytest.fail("\n".join(dict.fromkeys(waiting_transactions.requests)))


@pytest.fixture
def postgres_database_url(postgres_url: str) -> Iterator[str]:
    """Create a database with the catalog's tables, all empty, on the shared PostgreSQL server."""
    with new_database(postgres_url, MIGRATED) as url:
        yield url


@pytest.fixture
def empty_postgres_database_url(postgres_url: str) -> Iterator[str]:
    """Create a database without tables on the shared PostgreSQL server."""
    with new_database(postgres_url, EMPTY) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a database with empty catalog tables. The test runs once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return sqlite_database(tmp_path / "catalog" / "catalog.sqlite")
    url: str = request.getfixturevalue("postgres_database_url")
    return url


@pytest.fixture
def catalog(database_url: str) -> Iterator[Catalog]:
    """Open an empty catalog."""
    opened = open_catalog(database_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_catalog(tmp_path: Path) -> Iterator[Catalog]:
    """Open an empty catalog on SQLite, for tests that do not depend on the database."""
    opened = open_catalog(sqlite_database(tmp_path / "catalog" / "catalog.sqlite"))
    yield opened
    opened.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    """Open an empty catalog on SQLite to which tests add files."""
    small = small_catalog(tmp_path)
    yield small
    small.catalog.close()


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """Open an empty storage in a folder."""
    return open_storage((tmp_path / "storage").as_uri())


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    """Serve an empty index on loopback."""
    with served_index(tmp_path / "served") as served:
        yield served


@pytest.fixture
def dagster_postgres(monkeypatch: pytest.MonkeyPatch, empty_postgres_database_url: str) -> str:
    """Return the URL of an empty database that Dagster's instance uses."""
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", empty_postgres_database_url.replace("+psycopg:", "+psycopg2:"))
    return empty_postgres_database_url.replace("+psycopg:", ":")
