"""The code location loads whatever the settings are, and contacts nothing while it does."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.definitions import defs
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.settings import ENV_PREFIX

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


def test_loading_logs_a_misspelled_variable_once(tmp_path: Path) -> None:
    environment = os.environ | {ENV_PREFIX + "CONTCAT": "me@example.org"}
    loaded = subprocess.run(
        [sys.executable, "-c", "import pypi_assets.definitions"], env=environment, cwd=tmp_path, capture_output=True
    )
    assert loaded.stderr.count(b"PYPI_ASSETS_CONTCAT is no setting and has no effect; did you mean") == 1
