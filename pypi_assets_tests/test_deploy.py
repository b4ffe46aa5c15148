"""Dagster's instance of deploy/ works on a real PostgreSQL and a real S3 server."""

import shutil
from pathlib import Path

import dagster as dg
import pytest
import yaml

from pypi_assets_tests.s3_server import BUCKET, s3_server

DEPLOY = Path(__file__).parent.parent / "deploy"


@dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name="ranges"))
def anything() -> None:
    """Something to materialize."""


def test_dagster_on_postgresql_and_s3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_postgres_database_url: str
):
    shutil.copy(DEPLOY / "dagster.yaml", tmp_path)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", empty_postgres_database_url.replace("+psycopg:", "+psycopg2:"))
    monkeypatch.setenv("DAGSTER_S3_BUCKET", BUCKET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with s3_server(monkeypatch), dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert type(instance.run_storage).__name__ == "PostgresRunStorage"
        assert type(instance.compute_log_manager).__name__ == "S3ComputeLogManager"
        instance.add_dynamic_partitions("ranges", ["0-5"])
        assert dg.materialize([anything], instance=instance, partition_key="0-5").success
        assert instance.get_materialized_partitions(dg.AssetKey("anything")) == {"0-5"}


def test_both_instance_files_agree_where_nothing_speaks_against_it():
    here, root = (yaml.safe_load((folder / "dagster.yaml").read_text()) for folder in (DEPLOY, DEPLOY.parent))
    shared = set(root) - {"compute_logs", "storage"}
    assert {name: here.get(name) for name in shared} == {name: root[name] for name in shared}
