"""Errors that can be expected become failures that name what to do."""

from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.defs.assets.full_crawl import project_listing
from pypi_assets.defs.resources import build_resources
from pypi_assets.defs.sensors import build_sensors
from pypi_assets.settings import Settings, SettingsError, load_settings
from pypi_assets_tests.defs.conftest import failure_text


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
