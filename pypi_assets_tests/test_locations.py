"""The two settings that a look-up reads have the same rules, values and texts as in all settings."""

import os
from pathlib import Path

import pytest

from pypi_assets.errors import SettingsError
from pypi_assets.locations import Locations, load_locations
from pypi_assets.setting_variables import ENV_PREFIX
from pypi_assets.settings import load_settings
from pypi_assets_tests.environment import clear_settings

VALUES = [
    {},
    {"HOME": ""},
    {"HOME": "relative/folder"},
    {"HOME": "/a/../b"},
    {"HOME": "~/pypi"},
    {"HOME": "/with space/and-ü"},
    {"STORAGE_URL": "file:///data/"},
    {"STORAGE_URL": "file://localhost/data"},
    {"STORAGE_URL": "s3://bucket/prefix/"},
    {"STORAGE_URL": "s3://bucket"},
    {"STORAGE_URL": "memory:///"},
    {"HOME": "/home/me", "STORAGE_URL": "az://container/x"},
    {"HOME": "/home/me", "MAX_CONNECTIONS": "3"},
]
WRONG_URLS = ["ftp://host/path", "file://relative", "s3:///prefix", "gs://", "no url", "bucket/prefix"]


@pytest.fixture(autouse=True)
def _without_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)


def resolved(locations: Locations) -> tuple[Path, Path, str]:
    return locations.resolved_home, locations.leveldbs_dir, locations.resolved_storage_url


def test_they_are_those_of_all_settings(subtests: pytest.Subtests) -> None:
    for lower in [False, True]:
        for values in VALUES:
            with subtests.test(lower=lower, values=values), pytest.MonkeyPatch.context() as monkeypatch:
                for name, value in values.items():
                    variable = f"{ENV_PREFIX}{name}"
                    monkeypatch.setenv(variable.lower() if lower else variable, value)
                settings = load_settings()
                assert resolved(load_locations()) == resolved(settings.locations)
                assert resolved(settings.locations) == (
                    settings.resolved_home,
                    settings.leveldbs_dir,
                    settings.resolved_storage_url,
                )


@pytest.mark.parametrize("url", WRONG_URLS)
def test_what_is_wrong_has_the_same_text(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{ENV_PREFIX}STORAGE_URL", url)
    with pytest.raises(SettingsError) as of_all:
        load_settings()
    with pytest.raises(SettingsError) as of_locations:
        load_locations()
    assert str(of_locations.value) == str(of_all.value)
    assert str(of_locations.value).startswith("PYPI_ASSETS_STORAGE_URL: ")


def test_other_settings_are_not_looked_at() -> None:
    environment = {"PYPI_ASSETS_MAX_CONNECTIONS": "none", "PYPI_ASSETS_HOME": "/data"}
    assert load_locations(environment) == Locations(Path("/data"))


def test_the_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_locations() == Locations()
    monkeypatch.setitem(os.environ, f"{ENV_PREFIX}HOME", "/data")
    assert load_locations() == Locations(Path("/data"))
