"""A deployment for each test, and the real files that its index serves."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pypi_assets.devindex.server import Faults, running
from pypi_assets_tests.deploy.services import (
    DEPLOY,
    LOOPBACK,
    Deployment,
    drop_databases,
    local_environment,
    make_databases,
    secret,
)
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.postgres import running_server

CORPORA = DEPLOY.parent / ".corpora"
LARGEST = 8_000_000


@pytest.fixture(scope="session")
def wheels() -> dict[str, Path]:
    """Return more than 200 real wheels, by filename."""
    paths = sorted(path for part in ("closure", "pairs") for path in (CORPORA / part).glob("*.whl"))
    found = {path.name: path for path in paths if path.stat().st_size < LARGEST}
    if len(found) <= 200:
        pytest.fail(f"only {len(found)} wheels below {CORPORA}: run `make test-deploy`, which downloads them")
    return found


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start a PostgreSQL server for each worker, because all deployments use the same database names."""
    with running_server(f"postgres-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}") as url:
        yield url


@pytest.fixture
def index_faults() -> Faults | None:
    """Return the faults of the index. Tests of faults override this fixture."""
    return None


@pytest.fixture
def address() -> str:
    """Return the address of the index, the store and Redis. Tests with a second machine override this fixture."""
    return LOOPBACK


@pytest.fixture
def deploy(
    tmp_path: Path, postgres_url: str, index_faults: Faults | None, address: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Deployment]]:
    """Return a function that starts the services of the given Compose files.

    They begin with an empty store, two empty databases and the index of `tmp_path / "index"`. Keyword arguments replace
    variables of the services.
    """
    clear_settings(monkeypatch)
    with ExitStack() as on_end:
        index_url = on_end.enter_context(running(tmp_path / "index", host=address, faults=index_faults))
        secrets = tmp_path / "deployment" / "run" / "secrets"
        environment = local_environment(index_url, postgres_url, secrets, address)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret(environment, "aws_secret_access_key"))
        for name, value in environment.items():
            monkeypatch.setenv(name, value)  # the test process reads the store too
        monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "reader"))

        def start(*files: str, **variables: str) -> Deployment:
            make_databases(postgres_url)
            on_end.callback(drop_databases, postgres_url)
            deployment = Deployment(tmp_path / "deployment", environment | variables, files)
            on_end.callback(deployment.stop)
            deployment.start()
            return deployment

        yield start
