"""The job of the checks of `health` makes them all, and nothing else."""

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
        *(f"{dataset}_is_fresh" for dataset in DATASETS),
    }
    assert not result.get_asset_materialization_events()
