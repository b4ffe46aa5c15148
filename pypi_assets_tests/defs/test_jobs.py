"""Jobs use the partitions they are launched with, and the tag of a scope routes its runs."""

import json
from pathlib import Path

import pytest

from pypi_assets.catalog.scopes.stored_scopes import Scope, find_scope
from pypi_assets.crawl.scope_crawl import start_scope
from pypi_assets.definitions import build_defs
from pypi_assets.defs import policy
from pypi_assets.defs.jobs import TagsOfPartition, tags_of
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.policy import RANGE_END_TAG, RANGE_START_TAG, with_tag
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets_tests.defs.conftest import Pipeline


def test_one_job_runs_all_checks_and_nothing_else(pipeline: Pipeline) -> None:
    pipeline.crawled()
    result = pipeline.run("health")
    assert result.success
    assert {evaluation.check_name for evaluation in result.get_asset_check_evaluations()} == {
        "catalog_is_fresh",
        "few_are_given_up",
        "nothing_drifted",
        "modules_is_fresh",
        "depgraph_is_fresh",
        "answers_are_fresh",
        *(f"{dataset}_is_fresh" for dataset in DATASETS),
    }
    assert not result.get_asset_materialization_events()


def test_full_crawl_runs_its_checks_last(pipeline: Pipeline) -> None:
    selected = pipeline.defs.resolve_job_def("full_crawl").asset_layer.asset_graph.asset_check_keys
    assert {key.name for key in selected} == {"catalog_is_fresh", "few_are_given_up", "nothing_drifted"}
    tags = {RANGE_START_TAG: "00", RANGE_END_TAG: "01"}
    result = pipeline.run("full_crawl", tags=tags)
    steps = [event.step_key for event in result.all_events if event.is_step_success]
    assert steps[:3] == ["project_listing", "crawled_projects", "crawled_distribution_data"]
    assert len(result.get_asset_check_evaluations()) == 3


def create(pipeline: Pipeline, **options: object) -> Scope:
    start_scope(pipeline.crawler, ScopePlan("mine", {"alpha": frozenset()}, **options))  # type: ignore[arg-type]
    with pipeline.catalog.read() as connection:
        scope = find_scope(connection, "mine")
    assert scope is not None
    return scope


def test_tag_routes_runs_to_celery_workers_and_pods(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = create(pipeline, tag="fast", match_only=True)
    assert tags_of(scope) == {"dagster-celery/queue": "fast"}
    monkeypatch.setattr(policy, "CRAWLING", {"dagster-k8s/config": '{"container_config": {"resources": {}}}'})
    config = json.loads(tags_of(scope)["dagster-k8s/config"])
    assert config == {
        "container_config": {"resources": {}},
        "pod_template_spec_metadata": {"labels": {"pypi-assets/tag": "fast"}},
        "pod_spec_config": {"node_selector": {"pypi-assets/tag": "fast"}},
    }
    assert "pod_spec_config" not in with_tag("fast", is_match_only=False)["dagster-k8s/config"]


def test_backfill_runs_have_the_tags_of_their_scopes(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Dagster asks the code location for the tags, which has only its settings."""
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "nothing"))
    job = pipeline.defs.resolve_job_def("follow_scopes")
    assert job.partitioned_config is not None
    assert "dagster-celery/queue" not in job.partitioned_config.get_tags_for_partition_key("mine")
    create(pipeline, tag="fast", nice=-5)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(pipeline.settings.home))
    found = job.partitioned_config.get_tags_for_partition_key("mine")
    assert found.items() >= {"dagster-celery/queue": "fast", "dagster/priority": "5"}.items()
    assert "dagster-celery/queue" not in job.partitioned_config.get_tags_for_partition_key("unknown")


def test_job_of_another_index_knows_its_own_scopes(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    create(pipeline, tag="fast")
    file = tmp_path / "indexes.toml"
    url = pipeline.settings.index_url
    database = pipeline.settings.resolved_database_url
    file.write_text(f'[public]\nurl = "{url}"\ndefault = true\n[the-company]\nurl = "{url}"\ndatabase = "{database}"\n')
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(file))
    job = build_defs(pipeline.settings, Naming("the_company")).resolve_job_def("the_company__follow_scopes")
    assert job.partitions_def is not None
    assert job.partitions_def.name == "the_company__scopes"  # type: ignore[attr-defined]
    assert job.partitioned_config is not None
    assert job.partitioned_config.get_tags_for_partition_key("mine")["dagster-celery/queue"] == "fast"
    assert TagsOfPartition()("mine") == {}
