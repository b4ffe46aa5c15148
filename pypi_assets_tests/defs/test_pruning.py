"""Old partitions and runs are removed from Dagster, and do not come back."""

import dagster as dg
import pytest

from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.defs.maintenance_jobs import prune_partitions
from pypi_assets.defs.naming import BARE
from pypi_assets.upkeep.old_partitions import OldPartitions
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.served_index import ServedIndex


@pytest.mark.nightly
def test_old_partitions_are_pruned_and_do_not_come_back(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    keys = []
    for number in range(2):
        index.wheel(f"newcomer{number}", "1.0")
        keys += pipeline.requested("new_serial_range")
        assert pipeline.run("incremental_crawl", keys[-1]).success
        versions = pipeline.requested("new_leveldb_version")
        assert pipeline.run("update_leveldbs", versions[-1]).success
        pipeline.ahead_s += 75 * 24 * 3600.0
    index.wheel("undumped", "1.0")
    (late,) = crawl_incremental(pipeline.crawler)
    assert pipeline.requested("new_serial_range") == [late.serials.key]
    pipeline.instance.add_dynamic_partitions("serial_ranges", ["1-2"])  # added manually, and not in the ledger
    for _ in range(2):
        assert pipeline.run("clean_up").success
        assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [keys[1], late.serials.key, "1-2"]
        assert pipeline.instance.get_dynamic_partitions("leveldb_versions") == ["00002"]
        pipeline.tick("new_serial_range")
        pipeline.tick("new_leveldb_version")
    pipeline.ahead_s += 100 * 24 * 3600.0
    assert pipeline.run("clean_up").success
    assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [late.serials.key, "1-2"]
    assert pipeline.instance.get_dynamic_partitions("leveldb_versions") == ["00002"]


def test_joined_range_is_pruned_once_all_its_ranges_are_old() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("serial_ranges", ["1-2", "2-4", "4-5", "0-9"])
        old = OldPartitions(frozenset({"1-2", "2-3", "3-4"}), frozenset())
        assert prune_partitions(instance, BARE, old) == 2
        assert instance.get_dynamic_partitions("serial_ranges") == ["4-5", "0-9"]


@pytest.mark.nightly
def test_old_runs_are_pruned_except_the_newest_and_failed_ones(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    old, newest = pipeline.run("health"), pipeline.run("health")
    shards = [pipeline.run("full_dump") for _ in range(2)]
    failed = pipeline.run("update_leveldbs", raise_on_error=False)
    assert pipeline.run("clean_up").success
    assert pipeline.instance.get_run_by_id(old.run_id)  # it is not old yet
    pipeline.ahead_s = 100 * 24 * 3600.0
    assert pipeline.run("clean_up").success
    assert pipeline.instance.get_run_by_id(old.run_id) is None
    assert pipeline.instance.all_logs(old.run_id) == []
    assert all(pipeline.instance.get_run_by_id(run.run_id) for run in (newest, *shards, failed))
