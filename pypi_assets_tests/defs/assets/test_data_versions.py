"""Data versions, by which Dagster detects stale assets, change with the data and only then."""

import dagster as dg
import pytest

from pypi_assets.catalog.observed.projects import project_part_key, project_shard
from pypi_assets.crawl.full_crawl import list_index
from pypi_assets.defs.assets.full_crawl import crawled_distribution_data, crawled_projects
from pypi_assets.defs.policy import leveldb_asset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets_tests.defs.conftest import Pipeline, failure_text, lose_state, restore_state
from pypi_assets_tests.served_index import ServedIndex


def versions(pipeline: Pipeline, asset: str, key: str | None = None) -> list[str | None]:
    """Return the data version of each materialization of one partition, oldest first."""
    records = pipeline.instance.fetch_materializations(dg.AssetKey(asset), limit=5_000).records
    events = [record.asset_materialization for record in records if record.partition_key == key]
    return [(event.tags or {}).get("dagster/data_version") for event in events if event][::-1]


def test_full_crawl_parts_have_its_serial_as_version(index: ServedIndex, pipeline: Pipeline) -> None:
    part = project_part_key(project_shard("alpha"))
    crawl, _ = list_index(pipeline.crawler)
    for _ in range(2):
        for asset in (crawled_projects, crawled_distribution_data):
            assert pipeline.materialize(asset, part).success
    for name in ("crawled_projects", "crawled_distribution_data"):
        assert versions(pipeline, name, part) == [str(crawl.serial)] * 2
    index.wheel("alpha", "2.0")
    pipeline.crawled()
    assert pipeline.materialize(pipeline.asset("project_listing")).success
    assert versions(pipeline, "project_listing") == [str(index.serial)]


@pytest.mark.nightly
def test_finished_parts_of_a_failed_run_have_a_version(
    index: ServedIndex, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypi_assets.crawl.full_crawl._GROUP_PROJECTS", 1)
    crawl, _ = list_index(pipeline.crawler)
    last = max(("alpha", "beta", "gamma"), key=project_shard)
    index.faults = lambda request: lose_state(pipeline.catalog) if last in request.url.path else None
    result = pipeline.materialize(crawled_projects, "00", "99")
    index.faults = None
    assert failure_text(result)
    restore_state(pipeline.catalog)
    assert versions(pipeline, "crawled_projects", "00") == [str(crawl.serial)]


def test_export_and_dataset_versions_change_only_with_dumps(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    (first,) = pipeline.requested("new_leveldb_version")
    for _ in range(2):
        assert pipeline.run("update_leveldbs", first).success
        assert pipeline.run("export_parquet").success
    index.wheel("newcomer", "1.0", entry_points="[console_scripts]\nnew = newcomer:main\n")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    (second,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", second).success
    assert pipeline.run("export_parquet").success
    for dataset in DATASETS:
        one, again = versions(pipeline, leveldb_asset(dataset), first)
        [after] = versions(pipeline, leveldb_asset(dataset), second)
        assert one is not None
        assert (again == one, after == one) == (True, False), dataset
    one, again, after = versions(pipeline, "parquet_export")
    assert one == again
    assert after not in {None, one}


@pytest.mark.nightly
def test_all_shards_of_a_dump_have_one_version(pipeline: Pipeline) -> None:
    pipeline.crawled(256)
    assert pipeline.run("redump").success
    [first] = versions(pipeline, "full_dump", "00")
    assert first is not None
    assert versions(pipeline, "full_dump", "ff") == [first]
    assert pipeline.run("redump").success
    assert versions(pipeline, "full_dump", "00")[-1] not in {None, first}
