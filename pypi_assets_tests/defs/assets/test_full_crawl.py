"""The full crawl and full dump as Dagster runs them: all shards in one run, selected shards, and a failing shard."""

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.observed.projects import project_part_key, project_shard
from pypi_assets.catalog.work.full_crawls import find_open_crawl, last_completed_crawl
from pypi_assets.crawl.full_crawl import list_index
from pypi_assets.defs.assets.full_crawl import crawled_distribution_data, crawled_projects
from pypi_assets_tests.defs.conftest import Pipeline, failure_text, lose_state, restore_state
from pypi_assets_tests.served_index import ServedIndex, live

ALL_PARTS = [f"{part:02d}" for part in range(100)]


@pytest.mark.nightly
def test_one_run_makes_all_parts_and_marks_each_once(index: ServedIndex, pipeline: Pipeline) -> None:
    assert pipeline.run("full_crawl").success
    assert live(pipeline.catalog) == index.shown()
    for asset in ("crawled_projects", "crawled_distribution_data"):
        assert pipeline.marked(asset) == ALL_PARTS
    alpha = project_part_key(project_shard("alpha"))
    assert pipeline.metadata("crawled_projects", alpha)["projects"] == 1
    data = pipeline.metadata("crawled_distribution_data", alpha)
    assert (data["read"], data["failed"], data["dagster/partition_row_count"]) == (2, 0, 2)
    assert data["bytes_fetched"] > 0
    assert pipeline.metadata("project_listing")["projects"] == 3


def test_shards_join_the_open_crawl_and_the_last_completes_it(pipeline: Pipeline) -> None:
    list_index(pipeline.crawler)
    for done, name in enumerate(("alpha", "beta", "gamma"), 1):
        for asset in (crawled_projects, crawled_distribution_data):
            assert pipeline.materialize(asset, project_part_key(project_shard(name))).success
        with pipeline.catalog.read() as connection:
            assert (find_open_crawl(connection) is None) == (done == 3)


def test_failure_keeps_finished_parts_marked(
    index: ServedIndex, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypi_assets.crawl.full_crawl._GROUP_PROJECTS", 1)  # each shard with projects is its own group
    names: dict[int, str] = {}
    for number in range(10_000):
        name = f"near-{number}"
        if 520 <= project_shard(name) < 600 and len(names) < 3 and project_shard(name) not in names:
            names[project_shard(name)] = name
            index.wheel(name, "1.0")
    list_index(pipeline.crawler)
    first, second, _ = sorted(names)

    def break_catalog(request: Request) -> None:
        if names[second] in request.url.path:
            lose_state(pipeline.catalog)

    index.faults = break_catalog
    result = pipeline.materialize(crawled_projects, "50", "59")
    index.faults = None
    assert failure_text(result)
    assert pipeline.marked("crawled_projects") == ALL_PARTS[50 : (first + 1) // 10]
    restore_state(pipeline.catalog)
    assert pipeline.materialize(crawled_projects, "50", "59").success
    assert sorted(set(pipeline.marked("crawled_projects"))) == ALL_PARTS[50:60]


def test_part_without_open_crawl_revisits_its_projects(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    with pipeline.catalog.read() as connection:
        before = last_completed_crawl(connection)
    requested: list[str] = []

    def listen(request: Request) -> None:
        requested.append(request.url.path)

    index.faults = listen
    key = project_part_key(project_shard("alpha"))
    assert pipeline.materialize(crawled_projects, key).success
    assert pipeline.materialize(crawled_distribution_data, key).success
    assert "/simple/alpha/" in requested
    assert not {"/simple/beta/", "/simple/gamma/"} & set(requested)
    with pipeline.catalog.read() as connection:
        assert last_completed_crawl(connection) == before
    assert live(pipeline.catalog) == index.shown()


def test_failures_are_counted_by_kind(index: ServedIndex, pipeline: Pipeline) -> None:
    index.raw("alpha-1.1-py3-none-any.whl", b"no archive")
    index.raw("alpha-1.2-py3-none-any.whl", b"no archive either")
    lost = index.wheel("alpha", "1.3")
    index.faults = lambda request: PlainTextResponse("", 500) if request.url.path.endswith(lost) else None
    list_index(pipeline.crawler)
    key = project_part_key(project_shard("alpha"))
    assert pipeline.materialize(crawled_projects, key).success
    assert pipeline.materialize(crawled_distribution_data, key).success
    numbers = pipeline.metadata("crawled_distribution_data", key)
    assert {name: count for name, count in numbers.items() if name.startswith("failed")} == {
        "failed": 3,
        "failed: corrupt archive": 2,
        "failed: transient": 1,
    }
    assert numbers["read"] == 2


def test_shards_are_rejected_before_the_first_listing(pipeline: Pipeline) -> None:
    result = pipeline.materialize(crawled_projects, "07")
    assert failure_text(result)
    assert pipeline.marked("crawled_projects") == []
