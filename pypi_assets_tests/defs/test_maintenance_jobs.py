"""Retries of abandoned work, periodic work, and a clean-up with a failing part."""

from typing import Any

import dagster as dg
import pytest
from sqlalchemy import update
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reads.stored_contents import store_lists
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.tables import distribution_data
from pypi_assets.definitions import build_defs
from pypi_assets.defs import reporting
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.dumps.dump_manifest import committed_directories
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.extracts.packs import EXTRACTS
from pypi_assets.leveldbs.versions.input_lists import leveldb_path
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex, shared_readers


def test_abandoned_work_is_retried_and_broken_archives_only_on_request(index: ServedIndex, pipeline: Pipeline) -> None:
    index.raw("broken-1.0.tar.gz", b"no archive")
    requested: list[str] = []

    def fail_beta(request: Request) -> Response | None:
        return Response(status_code=503) if "beta-1.0" in request.url.path else None

    def listen(request: Request) -> None:
        requested.append(request.url.path.rpartition("/")[2])

    index.faults = fail_beta
    pipeline.crawled()
    assert _outcomes(pipeline, ReadOutcome.EXHAUSTED, ReadOutcome.ERROR) == [1, 1]
    index.faults = listen
    assert pipeline.run("retry_failures").success
    assert _outcomes(pipeline, ReadOutcome.EXHAUSTED, ReadOutcome.ERROR) == [0, 1]
    assert [name for name in requested if name.endswith((".whl", ".gz"))] == ["beta-1.0-py3-none-any.whl"]
    config = {"ops": {"retry_given_up": {"config": {"kinds": []}}}}
    assert pipeline.run("retry_failures", run_config=config).success
    assert "broken-1.0.tar.gz" in requested


def test_reprocess_needs_no_index_and_reports_changes(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    catalog = pipeline.catalog
    with catalog.write() as connection:
        lists = store_lists(connection, [("old", "a|b")])
        connection.execute(
            update(distribution_data).values(extractor_version=0, record_digest=None, modules_id=lists["old", "a|b"])
        )
    settings = pipeline.settings.model_copy(update={"index_url": "https://index.example.org/simple/", "contact": ""})
    defs = build_defs(settings, catalog=catalog, storage=pipeline.storage, readers=shared_readers())

    def reported(**config: object) -> dict[str, Any]:
        result = defs.resolve_job_def("reprocess_distributions").execute_in_process(
            instance=pipeline.instance, run_config={"ops": {"reprocess_extracts": {"config": config}}}
        )
        [output] = [event for event in result.all_events if event.is_successful_output]
        return {name: value.value for name, value in output.step_output_data.metadata.items()}

    alpha = reported(project="Alpha")
    assert (alpha["looked_at"], alpha["changed"], alpha["gained_modules"], alpha["unread"]) == (2, 2, 2, 0)
    assert "| modules | alpha-1.0-py3-none-any.whl: +alpha_module, -a\\|b, -old |" in alpha["examples"]
    assert reported()["changed"] == 2
    assert reported(older_than_version=EXTRACTOR_VERSION + 1)["looked_at"] == 4


def test_audit_reports_its_drift(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.history.archive("beta")
    config = {"ops": {"audit_catalog": {"config": {"share_percent": 100.0}}}}
    result = pipeline.run("audit", run_config=config)
    [output] = [event for event in result.all_events if event.is_successful_output]
    reported = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert (reported["drift"], reported["status changed"], reported["gave_up"]) == (1, 1, 0)
    assert "| status changed | beta |" in reported["examples"].lower()
    key = dg.AssetCheckKey(dg.AssetKey("changed_distributions"), "nothing_drifted")
    [made] = _check_results(pipeline, key)
    assert (made.passed, made.metadata["drift"].value) == (False, 1)


@pytest.mark.nightly
def test_long_jobs_log_their_progress(index: ServedIndex, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "PROGRESS_EVERY_S", 0.0)
    pipeline.crawled()
    index.wheel("newcomer", "3.0")
    (key,) = pipeline.requested("new_serial_range")
    assert any(not unnamed(line, key, 1) for line in _logged(pipeline, "incremental_crawl", key))
    full_dump(pipeline.catalog, pipeline.storage, 1)
    pipeline.ahead_s = 90 * 86_400.0
    assert "deletions: 1" in _logged(pipeline, "clean_up")
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    verified = _logged(pipeline, "verify_leveldbs")
    assert any(not unnamed(line, "version 1 of modules", 5) for line in verified)
    assert sum(not unnamed(line, "version 1 of modules", 0) for line in verified) >= 2


def _check_results(pipeline: Pipeline, key: dg.AssetCheckKey) -> list[dg.AssetCheckEvaluation]:
    """Return the results of a check, newest first."""
    records = pipeline.instance.event_log_storage.get_asset_check_execution_history(key, limit=5)
    return [record.event.get_dagster_event().asset_check_evaluation_data for record in records if record.event]


def _logged(pipeline: Pipeline, job: str, key: str | None = None) -> set[str]:
    """Run a job, and return its log messages."""
    result = pipeline.run(job, key)
    assert result.success
    return {entry.user_message for entry in pipeline.instance.all_logs(result.run_id)}


def _outcomes(pipeline: Pipeline, *outcomes: ReadOutcome) -> list[int]:
    counts = catalog_status(pipeline.catalog).outcomes
    return [counts[outcome] for outcome in outcomes]


def test_weekly_verification_fails_if_a_version_differs_from_its_rebuild(pipeline: Pipeline) -> None:
    assert pipeline.run("verify_leveldbs").success  # no version exists yet
    pipeline.crawled()
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    assert pipeline.run("verify_leveldbs").success
    storage = pipeline.storage
    table = next(one.path for one in storage.list(leveldb_path("depgraph", name)) if one.path.endswith(".ldb"))
    storage.put(table, storage.get(table)[:-1] + b"x")
    assert "depgraph" in failure_text(pipeline.run("verify_leveldbs", raise_on_error=False))
    for dataset, results in {"depgraph": [False, True, True], "modules": [True, True, True]}.items():
        key = dg.AssetCheckKey(dg.AssetKey(f"{dataset}_leveldb"), f"{dataset}_matches_input_list")
        assert [made.passed for made in _check_results(pipeline, key)] == results  # the first is from the build itself


@pytest.mark.nightly
def test_clean_up_continues_after_failing_parts_and_reports_them(pipeline: Pipeline) -> None:
    pipeline.crawled()
    old, newest = pipeline.run("health"), pipeline.run("health")
    for stored in list(pipeline.storage.list(EXTRACTS)):
        pipeline.storage.delete(stored.path)
    [superseded] = committed_directories(pipeline.storage)
    full_dump(pipeline.catalog, pipeline.storage, 1)
    pipeline.ahead_s = 100 * 24 * 3600.0
    result = pipeline.run("clean_up", raise_on_error=False)
    assert not result.success
    text = failure_text(result)
    assert unnamed(text, "packs") == []
    assert unnamed(text, "1") == []
    assert "dumps" not in text
    assert superseded not in committed_directories(pipeline.storage)
    assert pipeline.instance.get_run_by_id(old.run_id) is None
    assert pipeline.instance.get_run_by_id(newest.run_id)
    [event] = [event for event in result.all_events if event.is_step_failure]
    assert event.step_failure_data.user_failure_data
    shown = {name: value.value for name, value in event.step_failure_data.user_failure_data.metadata.items()}
    assert (shown["superseded"], shown["runs"], shown["partitions"], "packs" in shown) == (1, 1, 0, False)
