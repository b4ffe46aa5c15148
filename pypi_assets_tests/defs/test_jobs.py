"""The job of the checks of `health` makes them all, and nothing else."""

from pypi_assets.defs.partitions import RANGE_END_TAG, RANGE_START_TAG
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets_tests.defs.conftest import Pipeline


def test_one_job_makes_all_checks_without_anything_else(pipeline: Pipeline) -> None:
    pipeline.crawled()
    result = pipeline.run("health")
    assert result.success
    assert {one.check_name for one in result.get_asset_check_evaluations()} == {
        "catalog_is_fresh",
        "few_are_given_up",
        "nothing_drifted",
        "modules_is_fresh",
        "depgraph_is_fresh",
        "answers_are_fresh",
        *(f"{dataset}_is_fresh" for dataset in DATASETS),
    }
    assert not result.get_asset_materialization_events()


def test_a_full_crawl_makes_the_checks_of_what_it_changes_and_makes_them_last(pipeline: Pipeline) -> None:
    selected = pipeline.defs.resolve_job_def("full_crawl").asset_layer.asset_graph.asset_check_keys
    assert {key.name for key in selected} == {"catalog_is_fresh", "few_are_given_up", "nothing_drifted"}
    tags = {RANGE_START_TAG: "00", RANGE_END_TAG: "01"}
    result = pipeline.run("full_crawl", tags=tags)
    steps = [event.step_key for event in result.all_events if event.is_step_success]
    assert steps[:3] == ["project_listing", "crawled_projects", "crawled_distribution_data"]
    assert len(result.get_asset_check_evaluations()) == 3
