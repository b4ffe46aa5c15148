"""The assets of dumps: all shards, selected shards, redone dumps, and compactions."""

from itertools import chain
from typing import Any

import dagster as dg
import pytest

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.catalog.publications.dump_registry import committed_dumps, open_full_dump
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.defs.assets.data_dumps import PartitionFiles
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import committed_directories, file_path, read_manifest, shard_key, shard_of
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.served_index import ServedIndex


@pytest.mark.nightly
def test_dumps_of_ranges_are_compacted(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    for number in range(4):
        index.wheel(f"newcomer{number}", "1.0")
        (key,) = pipeline.requested("new_serial_range")
        assert pipeline.run("incremental_crawl", key).success
    (key,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", key).success
    assert pipeline.run("compact_dumps").success
    numbers = pipeline.metadata("compacted_dump")
    assert (numbers["compactions"], numbers["ranges_in_use"], numbers["dagster/row_count"]) == (1, 1, 4)
    assert numbers["directories"] == cover(pipeline.catalog).dumps[1].directory
    pipeline.skipped("new_leveldb_version")
    pipeline.skipped("new_serial_range")
    before = committed_directories(pipeline.storage)
    pipeline.ahead_s = 25 * 3600.0
    assert pipeline.run("clean_up").success
    assert committed_directories(pipeline.storage) == before  # the newest version refers to all of them


@pytest.mark.nightly
def test_one_run_makes_all_dump_shards_and_checks_them(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    result = pipeline.run("full_dump")
    assert result.success
    assert pipeline.marked("full_dump") == [shard_key(shard) for shard in range(256)]
    assert pipeline.metadata("full_dump", shard_key(shard_of("alpha", 256)))["dagster/partition_row_count"] == 2
    (check,) = result.get_asset_check_evaluations()
    assert check.passed
    assert check.metadata["rows"].value == 4
    assert len(committed_dumps(pipeline.catalog)) == 2


def test_partitions_have_all_files_of_any_number_of_shards() -> None:
    for shards, wanted in (
        (1, [0]),
        (16, [0, 1, 15]),
        (256, [0, 17, 255]),
        (1024, [0, 1, 2, 3, *range(68, 72), *range(1020, 1024)]),
    ):
        files = PartitionFiles({0: "00", 17: "11", 255: "ff"}, shards)
        assert files.wanted == wanted
        made = [DumpFile(shard, f"{shard}", shard, 1, "") for shard in wanted]
        found = dict(chain.from_iterable(files.finish(file) for file in reversed(made)))
        assert sorted(found) == ["00", "11", "ff"]
        for name in (*(f"project{number}" for number in range(200)), "requests"):
            of_name = shard_key(shard_of(name, 256))
            if of_name in found:
                assert shard_of(name, shards) in [file.shard for file in found[of_name]]
        assert [file.shard for file in found["ff"]] == wanted[-max(shards // 256, 1) :]


@pytest.mark.nightly
def test_redone_dump_supersedes_and_new_versions_are_requested(pipeline: Pipeline) -> None:
    pipeline.crawled(256)
    (key,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", key).success
    pipeline.skipped("new_leveldb_version")
    left = open_full_dump(pipeline.catalog, 256)
    (before,) = cover(pipeline.catalog).dumps
    assert pipeline.run("redump").success
    (after,) = cover(pipeline.catalog).dumps
    assert after.serials == before.serials
    assert after.sequence > left.sequence > before.sequence
    (following,) = pipeline.requested("new_leveldb_version")
    assert following > key
    assert pipeline.run("update_leveldbs", following).success
    pipeline.skipped("new_leveldb_version")


def test_selected_dump_shards_open_no_dump(pipeline: Pipeline) -> None:
    crawl_full(pipeline.crawler)
    result = pipeline.materialize(pipeline.asset("full_dump"), "03")
    assert failure_text(result)
    assert committed_dumps(pipeline.catalog) == []


def observed(result: dg.ExecuteInProcessResult, key: str) -> dict[str, Any]:
    """Return the metadata of the single observation of a run, which must have this partition."""
    [event] = result.get_asset_observation_events()
    assert event.partition == key
    return {name: value.value for name, value in event.asset_observation_data.asset_observation.metadata.items()}


@pytest.mark.nightly
def test_selected_dump_shards_verify_the_newest_dump(pipeline: Pipeline) -> None:
    pipeline.crawled(shards=256)
    catalog, storage = pipeline.catalog, pipeline.storage
    (dump,) = committed_dumps(catalog)
    shard = shard_of("alpha", 256)
    result = pipeline.materialize(pipeline.asset("full_dump"), shard_key(shard))
    assert result.success
    assert not result.get_asset_materialization_events()
    assert observed(result, shard_key(shard))["written"] is False
    file = read_manifest(storage, dump.directory).files[shard]
    storage.put(file_path(dump.directory, file.name), b"damaged")
    assert failure_text(pipeline.materialize(pipeline.asset("full_dump"), shard_key(shard)))
    assert [one.directory for one in committed_dumps(catalog)] == [dump.directory]


@pytest.mark.nightly
def test_dumps_show_their_location_and_first_rows(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled(shards=256)
    shard = shard_of("alpha", 256)
    full = observed(pipeline.materialize(pipeline.asset("full_dump"), shard_key(shard)), shard_key(shard))
    assert full["first rows"].splitlines()[2:] == [
        "| alpha | 1.0 | alpha-1.0-py3-none-any.whl | data | alpha_module | beta\\>=1 |",
        "| alpha | 1.0 | alpha-1.0.tar.gz | data | alpha_module |  |",
    ]
    for number in range(12):
        index.wheel(f"newcomer{number:02}", "1.0", requires_dist=["beta @ https://evil.example.org/a|b"])
    index.history.remove_project("gamma")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    incremental = pipeline.metadata("incremental_dump", key)
    rows = incremental["first rows"].splitlines()[2:]
    assert len(rows) == 10
    assert rows[0] == "| gamma | 2.0 | gamma-2.0-py3-none-any.whl | gone |  |  |"
    assert rows[1].endswith("| newcomer00_module | `beta @ https://evil.example.org/a\\|b` |")
    for shown in (full, incremental):
        assert read_manifest(pipeline.storage, shown["manifest"].split("/")[-2]).directory
        assert shown["file"].startswith(shown["manifest"].rpartition("/")[0])
        assert pipeline.storage.get(shown["file"].removeprefix(pipeline.storage.uri("")))


@pytest.mark.nightly
def test_compaction_makes_no_downstream_asset_stale(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    for number in range(4):
        index.wheel(f"newcomer{number}", "1.0")
        (key,) = pipeline.requested("new_serial_range")
        assert pipeline.run("incremental_crawl", key).success
    versions = []
    for _ in range(2):
        assert pipeline.run("compact_dumps").success
        [record] = pipeline.instance.fetch_materializations(dg.AssetKey("compacted_dump"), limit=1).records
        assert record.asset_materialization
        versions.append((record.asset_materialization.tags or {})["dagster/data_version"])
        index.wheel("later", f"{len(versions)}.0")
        (key,) = pipeline.requested("new_serial_range")
        assert pipeline.run("incremental_crawl", key).success
    assert versions[0] == versions[1]
