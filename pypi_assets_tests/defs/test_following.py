"""Following the index through the sensors: ranges, dumps, LevelDB versions, and failures on the way."""

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.lookup.latest import open_latest
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.served_index import ServedIndex, live


def test_new_file_reaches_the_lookup(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "3.0")
    index.history.remove_project("gamma")
    (key,) = pipeline.requested("new_serial_range")
    result = pipeline.run("incremental_crawl", key)
    assert result.success
    assert all(check.passed for check in result.get_asset_check_evaluations())
    made = {check.check_name for check in result.get_asset_check_evaluations()}
    assert made == {
        "ranges_without_gap_or_overlap",
        "incremental_dump_rows_match_catalog",
        "catalog_is_fresh",
        "few_are_given_up",
        "nothing_drifted",
    }
    assert live(pipeline.catalog) == index.shown()
    for asset in ("changelog", "changed_distributions", "changed_distribution_data", "incremental_dump"):
        assert pipeline.marked(asset) == [key]
    assert pipeline.metadata("changed_distributions", key)["projects"] == 2
    numbers = pipeline.metadata("incremental_dump", key)
    assert (
        numbers["dagster/partition_row_count"],
        numbers["changes: add file"],
        numbers["changes: remove project"],
    ) == (
        2,
        1,
        1,
    )
    assert numbers["preview"].splitlines()[2:] == [
        f"| {index.serial - 1} | add file | newcomer | 3.0 | newcomer-3.0-py3-none-any.whl |",
        f"| {index.serial} | remove project | gamma | 2.0 | gamma-2.0-py3-none-any.whl |",
    ]
    pipeline.skipped("new_serial_range")

    assert pipeline.requested("new_leveldb_version") == ["00001"]
    built = pipeline.run("update_leveldbs", "00001")
    assert built.success
    checks = built.get_asset_check_evaluations()
    assert [check.check_name for check in checks if not check.passed] == []
    names = {f"{dataset}_{what}" for dataset in DATASETS for what in ("matches_input_list", "is_fresh")}
    assert {check.check_name for check in checks} == {*names, "answers_are_fresh"}
    [answers] = [check for check in checks if check.check_name == "answers_are_fresh"]
    assert (answers.metadata["lag_serials"].value, answers.metadata["lag_seconds"].value) == (0, 0.0)
    assert pipeline.marked("modules_leveldb") == pipeline.marked("depgraph_leveldb") == ["00001"]
    assert pipeline.metadata("modules_leveldb", "00001")["bytes"] > 0
    pipeline.skipped("new_leveldb_version")
    with open_latest("modules", pipeline.storage) as reader:
        assert [found["project"] for found in reader.module("newcomer_module").results] == ["newcomer"]
        assert reader.module("gamma_module").results == ()
