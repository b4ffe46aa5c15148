"""Dagster loads the default index under its original name, and each other index as a separate location."""

from pathlib import Path

import yaml

from pypi_assets.indexes import read_indexes
from pypi_assets.setting_sources import setting_names
from pypi_assets.workspace import CodeLocation, code_location, name_in_dagster, workspace_yaml

ROOT = Path(__file__).parent.parent


def test_workspace_of_default_index_matches_the_repository() -> None:
    indexes = read_indexes(Path(__file__).parent / "data" / "indexes.toml", setting_names())
    of_default = workspace_yaml([indexes.default])
    assert yaml.safe_load(of_default) == yaml.safe_load((ROOT / "workspace.yaml").read_text())
    assert [code_location(table) for table in indexes.tables] == [
        CodeLocation("pypi-assets"),
        CodeLocation("pypi-assets-company", "index_company"),
    ]
    assert name_in_dagster("our-index") == "our_index"
