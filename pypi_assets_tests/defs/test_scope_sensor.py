"""The scopes that a tick requests, and the answers about their projects without a manual step."""

from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.catalog.scopes.stored_scopes import change_scope, find_scope
from pypi_assets.crawl.scope_crawl import start_scope
from pypi_assets.lookup.latest import open_latest
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.root_files import named_roots
from pypi_assets_tests.defs.conftest import Pipeline, settings_for
from pypi_assets_tests.prepared import publish
from pypi_assets_tests.served_index import ServedIndex


def create(pipeline: Pipeline, name: str, *roots: str, **options: object) -> None:
    start_scope(pipeline.crawler, ScopePlan(name, named_roots(roots).extras, **options))  # type: ignore[arg-type]


@pytest.mark.nightly
def test_upload_with_new_requirement_is_answered_through_the_sensors(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.skipped("scope_work")
    create(pipeline, "mine", "alpha")
    assert "follow_scopes" in pipeline.skipped("new_serial_range")
    assert "follow_scopes" in pipeline.skipped("first_full_dump")
    assert pipeline.requested("scope_work") == ["mine"]
    assert pipeline.run("follow_scopes", "mine").success
    pipeline.skipped("scope_work")
    publish(pipeline.catalog, pipeline.storage, "modules", "depgraph")

    index.wheel("alpha", "2.0", requires_dist=["beta", "newcomer"])
    index.wheel("newcomer", "1.0")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    pipeline.skipped("scope_work")
    (version,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", version).success
    with open_latest("modules", pipeline.storage) as reader:
        answer = reader.module("newcomer_module")
    assert ([found["project"] for found in answer.results], answer.followed_projects) == (["newcomer"], 3)


def test_failed_scope_is_requested_again_after_a_pause(index: ServedIndex, pipeline: Pipeline) -> None:
    create(pipeline, "mine", "alpha")
    create(pipeline, "other", "gamma", nice=-5, tag="fast")
    result = pipeline.tick("scope_work")
    assert isinstance(result, dg.SensorResult)
    requests = {str(request.partition_key): request.tags for request in result.run_requests or []}
    assert list(requests) == ["other", "mine"]
    assert requests["mine"].items() & {"dagster/priority": "5"}.items() == set()
    assert requests["other"]["dagster-celery/queue"] == "fast"
    assert requests["other"]["dagster/priority"] == "5"
    assert pipeline.instance.has_dynamic_partition("scopes", "mine")

    with pipeline.catalog.write() as connection:
        scope = find_scope(connection, "mine")
        assert scope is not None
        change_scope(connection, scope, {"concurrency": 0})
    assert not pipeline.run("follow_scopes", "mine", raise_on_error=False).success
    assert pipeline.requested("scope_work") == ["other"]  # a scope with concurrency 0 is paused
    with pipeline.catalog.write() as connection:
        change_scope(connection, scope, {"concurrency": None})
    assert pipeline.requested("scope_work") == ["other"]
    pipeline.ahead_s = 3_601
    assert pipeline.requested("scope_work") == ["other", "mine"]


def test_tick_creates_declared_scopes(index: ServedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "indexes.toml"
    file.write_text(f'[mine]\nurl = "{index.url}"\n[mine.scopes.tools]\nprojects = ["alpha"]\n')
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(file))
    with dg.DagsterInstance.ephemeral() as instance:
        pipeline = Pipeline(settings_for(index.url, tmp_path / "home"), instance)
        for _ in range(2):
            assert pipeline.requested("scope_work") == ["tools"]
        file.write_text(file.read_text().replace("alpha", "unknown==1"))
        with pytest.raises(dg.Failure, match=r"mine.*scopes\.tools.*'unknown==1'"):
            pipeline.tick("scope_work")
        pipeline.close()
