"""The code location loads with any settings and without connections, and its definitions are described in the docs."""

import os
import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.assets.graph.asset_graph import AssetNode

from pypi_assets.definitions import build_defs, defs
from pypi_assets.defs.assets import GROUPS, group_of
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.settings import ENV_PREFIX, SettingsError, load_settings

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
        "package_index",
        "project_listing",
        "crawled_projects",
        "crawled_distribution_data",
        "changelog",
        "changed_distributions",
        "changed_distribution_data",
        "full_dump",
        "incremental_dump",
        "late_dump",
        "compacted_dump",
        *LEVELDBS,
        "change_journal",
        "parquet_export",
        "iceberg_tables",
        "scope_projects",
        "scope_distribution_data",
    }
    assert graph.get(dg.AssetKey("modules_leveldb")).parent_keys == {
        dg.AssetKey("full_dump"),
        dg.AssetKey("incremental_dump"),
        dg.AssetKey("late_dump"),
        dg.AssetKey("compacted_dump"),
    }
    assert len(defs.get_repository_def().asset_checks_defs_by_key) == 10 + 2 * len(DATASETS)
    checks = {key.name for key in defs.get_repository_def().asset_checks_defs_by_key}
    assert {f"{dataset}_{check}" for dataset in DATASETS for check in ("is_fresh", "matches_input_list")} <= checks
    built = defs.resolve_job_def("update_leveldbs").asset_layer.executable_asset_keys
    assert {key.to_user_string() for key in built} == LEVELDBS
    assert all(
        sensor.default_status == dg.DefaultSensorStatus.STOPPED for sensor in defs.get_repository_def().sensor_defs
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "value"), [("DATABASE_URL", "mysql://wrong"), ("CONTACT", ""), ("SENSOR_INTERVAL_S", "soon")]
)
def test_loading_with_invalid_settings_opens_nothing_and_succeeds(tmp_path: Path, name: str, value: str) -> None:
    home = tmp_path / "home"
    environment = os.environ | {ENV_PREFIX + "HOME": str(home), ENV_PREFIX + name: value}
    loaded = subprocess.run(
        [sys.executable, "-c", _NOTHING_OPENED], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert loaded.stdout == "loaded\n", loaded.stderr
    assert not home.exists()


@pytest.mark.nightly
def test_loading_logs_misspelled_variable_once(tmp_path: Path) -> None:
    environment = os.environ | {ENV_PREFIX + "CONTCAT": "me@example.org"}
    loaded = subprocess.run(
        [sys.executable, "-c", "import pypi_assets.definitions"], env=environment, cwd=tmp_path, capture_output=True
    )
    assert loaded.stderr.count(b"PYPI_ASSETS_CONTCAT") == 1


def test_groups_are_documented_and_sort_in_data_flow_order() -> None:
    flow = ("project_listing", "changelog", "scope_projects", "full_dump", "change_journal", "modules_leveldb")
    flow += ("parquet_export", "solvability")
    graph = build_defs(load_settings(solvability_since=date(2026, 3, 1))).resolve_asset_graph()
    groups = [graph.get(dg.AssetKey(asset)).group_name for asset in flow]
    assert groups == sorted({group.name for group in GROUPS.values()})
    for group in GROUPS.values():
        path, _, anchor = group.page.partition("#")
        headings = re.findall(r"(?m)^#+ (.*)$", (Path(__file__).parent.parent / path).read_text())
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}, group.page


def test_assets_link_to_the_docs_of_their_group() -> None:
    for one in defs.resolve_asset_graph().asset_nodes:
        assert one.metadata["docs"].value in {group.page for group in GROUPS.values()} | {"docs/indexes.md"}


def test_asset_lineage_leads_from_the_index_to_a_dump() -> None:
    graph = defs.resolve_asset_graph()
    index, dump = dg.AssetKey("package_index"), dg.AssetKey("full_dump")
    assert graph.get(index).is_external

    def above(key: dg.AssetKey) -> set[dg.AssetKey]:
        parents = graph.get(key).parent_keys
        return {key, *parents, *(one for parent in parents for one in above(parent))}

    assert all(index in above(one.key) for one in graph.asset_nodes)
    assert {one.key for one in graph.asset_nodes if (one.group_name or "").startswith("crawl_")} < above(dump)


def test_unknown_module_gets_a_separate_group() -> None:
    assert group_of("data_dumps") is GROUPS["data_dumps"]
    assert group_of("my_asset").name == "my_asset"


def test_index_url_is_shown_without_credentials() -> None:
    found = build_defs(load_settings(index_url="https://me:secret@index.example.org/simple/")).resolve_asset_graph()
    assert found.get(dg.AssetKey("package_index")).metadata["url"].value == "https://index.example.org/simple/"


def test_dump_readers_depend_on_late_and_compacted_dumps() -> None:
    late, compacted = dg.AssetKey("late_dump"), dg.AssetKey("compacted_dump")
    for reader in (*LEVELDBS, "parquet_export", "iceberg_tables"):
        assert {late, compacted} <= node(reader).parent_keys
    assert node("compacted_dump").parent_keys == {dg.AssetKey("incremental_dump"), late}


def test_owners_come_from_the_settings() -> None:
    owned = build_defs(load_settings(owners="me@example.org team:data")).resolve_asset_graph()
    assert {tuple(one.owners) for one in owned.asset_nodes} == {("me@example.org", "team:data")}
    assert all(one.owners == ["team:pypi-assets"] for one in defs.resolve_asset_graph().asset_nodes)
    broken = build_defs(SettingsError("wrong")).resolve_asset_graph()
    assert all(one.owners == ["team:pypi-assets"] for one in broken.asset_nodes)


def test_freshness_policies_of_ranges_and_versions_follow_the_settings() -> None:
    assert not any(one.freshness_policy for one in defs.resolve_asset_graph().asset_nodes)
    followed = build_defs(load_settings(freshness_hours=2)).resolve_asset_graph()
    expected = {
        node.key.to_user_string()
        for node in followed.asset_nodes
        if isinstance(node.partitions_def, dg.DynamicPartitionsDefinition) and node.partitions_def.name != "scopes"
    }
    policies = {one.key.to_user_string(): one.freshness_policy for one in followed.asset_nodes if one.freshness_policy}
    assert policies.keys() == expected >= {"changelog", "incremental_dump", "change_journal", "modules_leveldb"}
    assert set(policies.values()) == {dg.FreshnessPolicy.time_window(timedelta(hours=2))}


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"database_url": "sqlite:////data/catalog.sqlite"}, None),
        ({"database_url": "postgresql://host/catalog"}, 10),
        ({"database_url": "postgresql://host/catalog", "projects": "requests idna"}, None),
    ],
)
def test_crawl_backfill_is_one_run_unless_machines_can_share_it(given: dict[str, str], most: int | None) -> None:
    graph = build_defs(load_settings(**given)).resolve_asset_graph()
    sizes = {
        asset: graph.get(dg.AssetKey(asset)).backfill_policy
        for asset in ("crawled_projects", "crawled_distribution_data", "full_dump", "incremental_dump")
    }
    assert sizes == {
        "crawled_projects": dg.BackfillPolicy(most),
        "crawled_distribution_data": dg.BackfillPolicy(most),
        "full_dump": dg.BackfillPolicy.single_run(),
        "incremental_dump": dg.BackfillPolicy.multi_run(20),
    }


def node(asset: str) -> AssetNode:
    return defs.resolve_asset_graph().get(dg.AssetKey(asset))


def test_dagster_page_lists_all_assets_jobs_sensors_schedules_and_checks() -> None:
    everything = load_settings(solvability_since=date(2026, 3, 1), kafka_bootstrap_servers="127.0.0.1:9092")
    repository = build_defs(everything, is_private=True).get_repository_def()
    made = {job.name for job in repository.get_all_jobs() if job.name != "__ASSET_JOB"}
    made |= {one.name for one in (*repository.sensor_defs, *repository.schedule_defs)}
    made |= {key.to_user_string() for key in repository.asset_graph.materializable_asset_keys}
    made |= {
        key.name
        for key in repository.asset_checks_defs_by_key
        if not re.match(f"({'|'.join(set(DATASETS) - {'modules'})})_(is_fresh|matches_input_list)", key.name)
    }
    sections = (Path(__file__).parent.parent / "docs" / "dagster.md").read_text().split("\n## ")
    tables = ("Assets and their partitions", "Jobs", "Sensors and schedules", "Checks")
    rows = [line for one in sections if one.startswith(tables) for line in one.splitlines() if line.startswith("| ")]
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)`", "|".join(row.split("|")[:3]))}
    assert sorted(made - named) == []


@pytest.mark.parametrize("asset", ["crawled_projects", "full_dump"])
def test_dagster_page_names_first_and_last_partition(asset: str) -> None:
    partitions = defs.resolve_asset_graph().get(dg.AssetKey(asset)).partitions_def
    assert partitions is not None
    keys = partitions.get_partition_keys()
    text = (Path(__file__).parent.parent / "docs" / "dagster.md").read_text()
    assert re.search(rf"(?m)^\| .*\| `{asset}` \| `{keys[0]}` to `{keys[-1]}`", text)
