"""Partition keys, pools, and the sizes of pods."""

import json
import os
import subprocess
import sys

import pytest

from pypi_assets.catalog.observed.projects import PROJECT_SHARDS, SHARDS_IN_A_PART, project_part_key
from pypi_assets.definitions import defs
from pypi_assets.defs.policy import (
    DUMP_PARTITIONS,
    RANGE_END_TAG,
    RANGE_START_TAG,
    all_of,
    dump_shards,
    is_on_kubernetes,
    leveldb_versions,
    parse_shards,
    project_parts,
    serial_ranges,
    shards_of_parts,
)
from pypi_assets.leveldbs.datasets.registry import DATASETS


def test_steps_with_index_requests_or_large_catalog_reads_have_a_pool() -> None:
    nodes = [node for job in defs.get_repository_def().get_all_jobs() for node in job.nodes]
    pools = {pool for node in nodes for pool in node.definition.pools}
    crawled = {"project_listing", "crawled_projects", "crawled_distribution_data", "retry_given_up", "audit_catalog"}
    crawled.add("make_requested_visits")
    of_scopes = {"scope_projects", "scope_distribution_data"}
    assert {pool: {node.name for node in nodes if pool in node.definition.pools} for pool in pools} == {
        "index": crawled | {"follow_ranges"} | of_scopes,
        "database": {"write_full_dump", "late_dump"},
        **{f"{dataset}_leveldb": {f"{dataset}_leveldb"} for dataset in DATASETS},
    }


def test_shard_keys_sort_as_numbers() -> None:
    for partitions, count in ((project_parts, PROJECT_SHARDS // SHARDS_IN_A_PART), (dump_shards, DUMP_PARTITIONS)):
        keys = list(partitions.get_partition_keys())
        assert (len(keys), set(keys[0]), keys) == (count, {"0"}, sorted(keys))
        assert list(parse_shards(partitions, reversed(keys)).items()) == list(enumerate(keys))
    assert list(all_of(project_parts).values()) == ["00", "99"]
    assert all_of(dump_shards) == {RANGE_START_TAG: "00", RANGE_END_TAG: "ff"}


def test_shard_keys_are_parsed_in_order() -> None:
    assert list(parse_shards(dump_shards, ["10", "02", "00"]).items()) == [(0, "00"), (2, "02"), (16, "10")]
    assert parse_shards(dump_shards, ["ec", "0a"]) == {10: "0a", 236: "ec"}
    with pytest.raises(KeyError):
        parse_shards(dump_shards, ["nonsense"])


def test_project_parts_have_each_shard_once() -> None:
    keys = project_parts.get_partition_keys()
    assert shards_of_parts(reversed(keys)) == list(range(PROJECT_SHARDS))
    for key in keys:
        assert {project_part_key(shard) for shard in shards_of_parts([key])} == {key}
    with pytest.raises(KeyError):
        shards_of_parts(["007"])


def test_partition_set_names_are_stable_since_dagster_stores_them() -> None:
    assert (serial_ranges.name, leveldb_versions.name) == ("serial_ranges", "leveldb_versions")


_SIZED = """
import json
from pypi_assets.definitions import defs
print(json.dumps(sorted(job.name for job in defs.jobs or [] if "dagster-k8s/config" in (job.tags or {}))))
"""
LARGE = {
    *("full_crawl", "incremental_crawl", "follow_scopes", "retry_failures", "audit"),
    *("full_dump", "redump", "update_leveldbs", "export_parquet", "verify_leveldbs", "reprocess_distributions"),
    *("update_tables", "solve_days", "visit_requested"),
}


@pytest.mark.nightly
@pytest.mark.parametrize(("variables", "sized"), [({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, LARGE), ({}, set())])
def test_large_jobs_set_pod_sizes_on_kubernetes_only(variables: dict[str, str], sized: set[str]) -> None:
    elsewhere = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_")}
    command = [sys.executable, "-c", _SIZED]
    found = subprocess.run(
        command,
        env=elsewhere | variables | {"PYPI_ASSETS_SOLVABILITY_SINCE": "2026-03-01"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(found.stdout)) == sized


def test_pod_is_detected_by_the_kubernetes_variable() -> None:
    assert is_on_kubernetes({"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert not is_on_kubernetes({})
