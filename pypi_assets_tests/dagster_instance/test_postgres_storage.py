"""Dagster's storage on a real PostgreSQL server reuses its connections, and reconnects after they are closed."""

from pathlib import Path

import dagster as dg
import psycopg
import pytest
import yaml

from pypi_assets_tests.dagster_instance.instances import anything
from pypi_assets_tests.deploy.services import DEPLOY


@pytest.mark.nightly
def test_dagster_connects_once_and_again_after_disconnection(tmp_path: Path, dagster_postgres: str):
    storage = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())["storage"]
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump({"storage": storage, "telemetry": {"enabled": False}}))
    with psycopg.connect(dagster_postgres, autocommit=True) as connection:
        used = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

        def processes() -> set[int]:
            return {pid for (pid,) in connection.execute(f"SELECT pid {used}")}

        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            instance.add_dynamic_partitions("ranges", ["0-5"])
            kept = processes()  # includes those that made the tables, which the server has not ended yet
        for _ in range(3):  # as often as for a tick
            with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
                assert dg.materialize([anything], instance=instance, partition_key="0-5").success
            kept &= processes()
        assert kept
        assert len(processes()) <= 5

        connection.execute(f"SELECT pg_terminate_backend(pid) {used}")
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            assert instance.get_materialized_partitions(dg.AssetKey("anything")) == {"0-5"}
            assert dg.materialize([anything], instance=instance, partition_key="0-5").success
            assert instance.get_runs_count() == 4
        assert processes().isdisjoint(kept)
