"""A deployment for each test, and the real files that its index serves."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from pypi_assets.devindex.server import running
from pypi_assets_tests.deploy.services import DEPLOY, Deployment, free_ports, read_environment
from pypi_assets_tests.environment import clear_settings

CORPORA = DEPLOY.parent / ".corpora"
LARGEST = 8_000_000


@pytest.fixture(scope="session")
def wheels() -> dict[str, Path]:
    """More than 200 real wheels, by their names."""
    found = {path.name: path for path in sorted(CORPORA.glob("*/*.whl")) if path.stat().st_size < LARGEST}
    if len(found) <= 200:
        pytest.fail(f"only {len(found)} wheels below {CORPORA}: run `make test-deploy`, which downloads them")
    return found


@pytest.fixture
def deploy(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Deployment]]:
    """Starts the services of the Compose files that it is given, over an empty store, two empty databases and the index
    of `tmp_path / "index"`."""
    s3, code, webserver = free_ports(3)
    clear_settings(monkeypatch)
    with ExitStack() as on_end:
        index_url = on_end.enter_context(running(tmp_path / "index"))
        environment = read_environment(
            DEPLOY / "env.example",
            {
                "PYPI_ASSETS_INDEX_URL": index_url,
                "PYPI_ASSETS_CONTACT": "me@example.org",
                "PYPI_ASSETS_REQUESTS_PER_SECOND": "1000",
                "PYPI_ASSETS_SENSOR_INTERVAL_S": "5",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3}",
                "S3_ADDRESS": f"127.0.0.1:{s3}",
                "PYPI_ASSETS_DATABASE_URL": postgres_url.replace("/postgres?", "/catalog?"),
                "DAGSTER_POSTGRES_URL": postgres_url.replace("/postgres?", "/dagster?").replace("://", "+psycopg2://"),
                "DAGSTER_CODE_HOST": "127.0.0.1",
                "DAGSTER_GRPC_HOST": "127.0.0.1",
                "DAGSTER_GRPC_PORT": str(code),
                "DAGSTER_WEBSERVER_HOST": "127.0.0.1",
                "DAGSTER_WEBSERVER_PORT": str(webserver),
            },
        )
        for name, value in environment.items():
            monkeypatch.setenv(name, value)  # for what is asked of the store here
        monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "reader"))

        def start(*files: str) -> Deployment:
            make_databases(postgres_url)
            on_end.callback(drop_databases, postgres_url)
            deployment = Deployment(tmp_path / "deployment", environment, files)
            on_end.callback(deployment.stop)
            deployment.start()
            return deployment

        yield start


def make_databases(server_url: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        for statement in (DEPLOY / "postgres" / "databases.sql").read_text().split(";"):
            connection.execute(statement)  # type: ignore[call-overload]


def drop_databases(server_url: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        for name in ("catalog", "dagster"):
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[call-overload]
