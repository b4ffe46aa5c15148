"""The code location loads whatever the settings are, and contacts nothing while it does."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.definitions import defs
from pypi_assets.defs.assets.full_crawl import project_listing
from pypi_assets.defs.resources import build_resources
from pypi_assets.defs.sensors import build_sensors
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.settings import ENV_PREFIX, Settings, SettingsError, load_settings
from pypi_assets_tests.defs.conftest import failure_text

LEVELDBS = {f"{dataset}_leveldb" for dataset in DATASETS}
_NOTHING_OPENED = """
import socket, sqlite3
def refuse(*args, **kwargs):
    raise AssertionError("opened while loading")
socket.socket.connect = socket.create_connection = sqlite3.connect = refuse
import pypi_assets.definitions
import dagster
dagster.Definitions.validate_loadable(pypi_assets.definitions.defs)
print("loaded")
"""


def test_definitions_are_loadable() -> None:
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
        "project_listing",
        "crawled_projects",
        "crawled_distribution_data",
        "changelog",
        "changed_distributions",
        "changed_distribution_data",
        "full_dump",
        "incremental_dump",
        "compacted_dump",
        *LEVELDBS,
        "parquet_export",
    }
    assert graph.get(dg.AssetKey("modules_leveldb")).parent_keys == {
        dg.AssetKey("full_dump"),
        dg.AssetKey("incremental_dump"),
    }
    assert len(defs.get_repository_def().asset_checks_defs_by_key) == 7 + 2 * len(DATASETS)
    checks = {key.name for key in defs.get_repository_def().asset_checks_defs_by_key}
    assert {f"{dataset}_{check}" for dataset in DATASETS for check in ("is_fresh", "matches_input_list")} <= checks
    built = defs.resolve_job_def("update_leveldbs").asset_layer.executable_asset_keys
    assert {key.to_user_string() for key in built} == LEVELDBS
    assert all(
        sensor.default_status == dg.DefaultSensorStatus.STOPPED for sensor in defs.get_repository_def().sensor_defs
    )


def test_what_queries_the_index_or_reads_much_of_the_catalog_is_in_a_pool() -> None:
    nodes = [node for job in defs.get_repository_def().get_all_jobs() for node in job.nodes]
    pools = {pool for node in nodes for pool in node.definition.pools}
    crawled = {"project_listing", "crawled_projects", "crawled_distribution_data", "retry_given_up", "audit_catalog"}
    changed = {"changelog", "changed_distributions", "changed_distribution_data"}
    assert {pool: {node.name for node in nodes if pool in node.definition.pools} for pool in pools} == {
        "index": crawled | changed,
        "database": {"write_full_dump", "incremental_dump"},
        **{name: {name} for name in LEVELDBS},
    }


@pytest.mark.parametrize(
    ("name", "value"), [("DATABASE_URL", "mysql://wrong"), ("CONTACT", ""), ("SENSOR_INTERVAL_S", "soon")]
)
def test_loading_opens_nothing_and_survives_wrong_settings(tmp_path: Path, name: str, value: str) -> None:
    home = tmp_path / "home"
    environment = os.environ | {ENV_PREFIX + "HOME": str(home), ENV_PREFIX + name: value}
    loaded = subprocess.run(
        [sys.executable, "-c", _NOTHING_OPENED], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert loaded.stdout == "loaded\n", loaded.stderr
    assert not home.exists()


def test_a_run_names_a_missing_contact(tmp_path: Path) -> None:
    settings = load_settings(index_url="https://index.example.org/simple/", home=tmp_path)
    result = _list_with(settings)
    assert "PYPI_ASSETS_CONTACT is not set" in failure_text(result)


def test_a_run_names_wrong_settings_and_a_wrong_database(tmp_path: Path) -> None:
    assert failure_text(_list_with(SettingsError("PYPI_ASSETS_HOME: wrong"))) == "PYPI_ASSETS_HOME: wrong"
    settings = load_settings(
        index_url="http://127.0.0.1:9/simple/", database_url="postgresql://127.0.0.1:9/none", home=tmp_path
    )
    with (
        dg.build_asset_context(resources=build_resources(settings).by_name()) as context,
        pytest.raises(dg.Failure, match="check PYPI_ASSETS_DATABASE_URL") as failed,
    ):
        project_listing(context)
    assert failed.value.allow_retries


def test_a_tick_names_wrong_settings() -> None:
    wrong = build_resources(SettingsError("PYPI_ASSETS_HOME: wrong")).by_name()
    for sensor in build_sensors(60, on=False):
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, resources=wrong) as context,
            pytest.raises(dg.Failure, match="PYPI_ASSETS_HOME: wrong"),
        ):
            sensor(context)


def _list_with(settings: Settings | SettingsError) -> dg.ExecuteInProcessResult:
    resources = build_resources(settings).by_name()
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([project_listing], instance=instance, resources=resources, raise_on_error=False)
    assert not result.success
    return result
