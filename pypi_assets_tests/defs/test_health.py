"""Health checks: each level of each check."""

import dagster as dg
import pytest
from sqlalchemy import delete, insert
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.tables import audits
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.scope_crawl import run_scope, start_scope
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.root_files import named_roots
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

PASSED, WARNED, FAILED = "passed", "warned", "failed"


def result_of(pipeline: Pipeline, name: str) -> tuple[str, str]:
    """Return the level and the description of the check of that name."""
    result = pipeline.check(name)
    level = WARNED if result.severity == dg.AssetCheckSeverity.WARN else FAILED
    return PASSED if result.passed else level, str(result.description)


def test_freshness_level_depends_on_the_age_of_missing_events(index: ServedIndex, pipeline: Pipeline) -> None:
    level, text = result_of(pipeline, "catalog_is_fresh")
    assert (level, unnamed(text, "full_crawl")) == (WARNED, [])
    pipeline.crawled()
    pipeline.ahead_s = 1e6  # no event is missing, however old the last one is
    assert result_of(pipeline, "catalog_is_fresh")[0] == PASSED
    pipeline.ahead_s = 0
    index.wheel("alpha", "2.0")
    assert result_of(pipeline, "catalog_is_fresh")[0] == PASSED
    pipeline.ahead_s = 1_860
    level, text = result_of(pipeline, "catalog_is_fresh")
    assert level == WARNED
    assert unnamed(text[:-2], "0:31") == []
    pipeline.ahead_s = 7_260
    assert result_of(pipeline, "catalog_is_fresh")[0] == FAILED
    index.faults = lambda request: Response(status_code=503)
    assert result_of(pipeline, "catalog_is_fresh")[0] == WARNED


def test_index_unavailable_for_long_is_an_error(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.faults = lambda request: Response(status_code=503)
    with pytest.raises(dg.Failure, match="503"):
        pipeline.tick("new_serial_range")
    assert result_of(pipeline, "catalog_is_fresh")[0] == WARNED
    pipeline.ahead_s = 7_260
    level, text = result_of(pipeline, "catalog_is_fresh")
    assert level == FAILED
    assert unnamed(text, "2:01") == []
    index.faults = None
    pipeline.tick("new_serial_range")
    assert result_of(pipeline, "catalog_is_fresh")[0] == PASSED


def test_catalog_ages_while_the_list_is_not_fetched(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.change_settings(lister="simple")
    pipeline.crawled()
    pipeline.tick("new_serial_range")
    for ahead_s, level in ((0.0, PASSED), (2_400.0, PASSED), (3_660.0, WARNED), (7_260.0, FAILED)):
        pipeline.ahead_s = ahead_s
        assert result_of(pipeline, "catalog_is_fresh")[0] == level
    pipeline.tick("new_serial_range")
    assert result_of(pipeline, "catalog_is_fresh")[0] == PASSED


def test_missing_version_names_the_next_job(index: ServedIndex, pipeline: Pipeline) -> None:
    def assert_warned(job: str) -> None:
        level, text = result_of(pipeline, "modules_is_fresh")
        assert (level, unnamed(text, "modules", job)) == (WARNED, [])

    assert_warned("full_crawl")
    crawl_full(pipeline.crawler)
    assert_warned("full_dump")
    full_dump(pipeline.catalog, pipeline.storage, 1)
    assert_warned("update_leveldbs")


def test_scoped_catalog_needs_no_full_crawl_or_audit(index: ServedIndex, pipeline: Pipeline) -> None:
    start_scope(pipeline.crawler, ScopePlan("mine", named_roots(["alpha"]).extras))
    level, text = result_of(pipeline, "catalog_is_fresh")
    assert (level, unnamed(text, "follow_scopes")) == (WARNED, [])
    assert unnamed(result_of(pipeline, "modules_is_fresh")[1], "follow_scopes") == []
    run_scope(pipeline.crawler, "mine")
    assert result_of(pipeline, "catalog_is_fresh")[0] == PASSED
    assert result_of(pipeline, "nothing_drifted")[0] == PASSED


@pytest.mark.nightly
def test_leveldb_freshness_is_relative_to_catalog_events(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    assert unnamed(result_of(pipeline, "modules_is_fresh")[1], "modules", "update_leveldbs") == []
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    assert result_of(pipeline, "modules_is_fresh")[0] == PASSED
    index.wheel("alpha", "2.0")
    crawl_incremental(pipeline.crawler)
    pipeline.ahead_s = 7_260
    assert result_of(pipeline, "catalog_is_fresh")[0] == PASSED
    assert [result_of(pipeline, f"{dataset}_is_fresh")[0] for dataset in ("modules", "depgraph")] == [FAILED, FAILED]


@pytest.mark.nightly
def test_answers_are_compared_with_the_index(index: ServedIndex, pipeline: Pipeline) -> None:
    assert unnamed(result_of(pipeline, "answers_are_fresh")[1], "full_crawl") == []
    pipeline.crawled()
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    assert result_of(pipeline, "answers_are_fresh")[0] == PASSED
    built = index.serial
    index.wheel("alpha", "2.0")
    pipeline.ahead_s = 1_860  # the index has an event that the catalog lacks
    assert result_of(pipeline, "answers_are_fresh")[0] == WARNED
    crawl_incremental(pipeline.crawler)
    pipeline.ahead_s = 7_260  # the catalog has the event, and look-ups lack it
    assert result_of(pipeline, "catalog_is_fresh")[0] == PASSED
    level, text = result_of(pipeline, "answers_are_fresh")
    assert level == FAILED
    assert unnamed(text[:-2], "2:01") == []
    numbers = pipeline.check("answers_are_fresh").metadata
    assert numbers["lag_serials"].value == index.serial - built
    assert 7_260 <= float(str(numbers["lag_seconds"].value)) < 7_320


def test_abandoned_work_counts_and_broken_files_do_not(index: ServedIndex, pipeline: Pipeline) -> None:
    def fail_beta(request: Request) -> Response | None:
        return Response(status_code=503) if "beta-1.0" in request.url.path else None

    index.faults = fail_beta
    index.raw("broken-1.0.tar.gz", b"no archive")
    pipeline.crawled()
    level, text = result_of(pipeline, "few_are_given_up")
    assert level == FAILED
    assert unnamed(text.partition(";")[0], "11.11", "1") == []
    index.faults = None
    assert pipeline.run("retry_failures").success
    assert result_of(pipeline, "few_are_given_up")[0] == PASSED


def test_drift_is_reported_until_an_audit_finds_none(index: ServedIndex, pipeline: Pipeline) -> None:
    assert result_of(pipeline, "nothing_drifted")[0] == WARNED
    pipeline.crawled()
    assert result_of(pipeline, "nothing_drifted")[0] == PASSED
    pipeline.ahead_s = 9 * 24 * 3600
    assert result_of(pipeline, "nothing_drifted")[0] == WARNED
    pipeline.ahead_s = 0
    audit_index(pipeline.crawler, 0)
    level, text = result_of(pipeline, "nothing_drifted")
    assert (level, unnamed(text, index.serial)) == (PASSED, [])
    catalog = pipeline.catalog
    with catalog.write() as connection:
        findings = '{"counts": {"serial ahead": 2}, "examples": {}}'
        connection.execute(
            insert(audits).values(share_percent=0, opened_at=0, serial=7, findings=findings, completed_at=1)
        )
    level, text = result_of(pipeline, "nothing_drifted")
    assert (level, unnamed(text, 7, "2 serial ahead")) == (WARNED, [])
    with catalog.write() as connection:
        connection.execute(delete(audits).where(audits.c.serial == 7))
    assert result_of(pipeline, "nothing_drifted")[0] == PASSED
