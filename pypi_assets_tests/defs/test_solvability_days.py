"""Days of solvability as Dagster makes them: checked, scheduled, repeated, and rejected without an answer."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.definitions import build_defs
from pypi_assets.defs.naming import Naming
from pypi_assets.resolve.solvability import read_day, solvability_path, stored_days
from pypi_assets_tests.defs.conftest import Pipeline, failure_text, settings_for
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.prepared import publish
from pypi_assets_tests.served_index import ServedIndex, served_index

FIRST = datetime(2026, 3, 1, 12, tzinfo=UTC)
SINCE = date(2020, 1, 1)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    """Yield an index that is empty before the first day."""
    with served_index(tmp_path / "served") as served:
        yield served


@pytest.fixture
def pipeline(index: ServedIndex, tmp_path: Path) -> Iterator[Pipeline]:
    """Yield a pipeline whose days start long before the first event."""
    with dg.DagsterInstance.ephemeral() as instance:
        made = Pipeline(settings_for(index.url, tmp_path / "home", solvability_since=SINCE), instance)
        yield made
        made.close()


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).date().isoformat()


def follow(pipeline: Pipeline, index: ServedIndex) -> None:
    """Follow an index on which the requirement of an app is removed on the third day; the fourth day has no event."""
    index.wheel("library", "1.0", at=FIRST)
    index.wheel("app", "1.0", requires_dist=["library"], at=FIRST)
    index.wheel("top", "1.0", requires_dist=["app"], at=FIRST + timedelta(days=1))
    index.wheel("unread", "1.0", at=FIRST + timedelta(days=1))
    crawl_full(pipeline.crawler, with_history=True)
    gone = index.history.remove_release("library", "1.0", at=FIRST + timedelta(days=2))
    assert gone == index.serial
    index.wheel("late", "1.0", at=FIRST + timedelta(days=4))
    crawl_incremental(pipeline.crawler)
    publish(pipeline.catalog, pipeline.storage, "depgraph")


def test_day_is_made_shown_and_checked(pipeline: Pipeline, index: ServedIndex) -> None:
    follow(pipeline, index)
    result = pipeline.run("solve_days", day(2))
    assert result.success
    checks = {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}
    assert {name: one.passed for name, one in checks.items()} == {
        "newly_unsolvable": False,
        "solvability_is_whole": True,
    }
    assert checks["newly_unsolvable"].severity == dg.AssetCheckSeverity.WARN
    numbers = pipeline.metadata("solvability", day(2))
    made = read_day(pipeline.storage, date.fromisoformat(day(2)))
    assert [project.name for project in made.projects] == ["app"]
    assert (numbers["projects"], numbers["solvable"], numbers["unsolvable"], numbers["limit"]) == (1, 0, 4, 0)
    assert (numbers["newly_unsolvable"], numbers["newly_solvable"], numbers["without_search"]) == (4, 0, 0)
    assert (numbers["serial"], numbers["median_closure"], numbers["largest_closure"]) == (made.moment.serial, 0, 0)
    assert numbers["bytes"] == pipeline.storage.head(solvability_path(date.fromisoformat(day(2)))).size
    assert str(numbers["file"]).endswith(f"/solvability/{day(2)}.json.gz")
    assert unnamed(str(numbers["newly unsolvable"]), made.moment.serial, "library") == []
    assert pipeline.run("solve_days", day(1)).success
    assert pipeline.metadata("solvability", day(1))["largest_closure"] == 2
    assert not pipeline.check("newly_unsolvable").passed  # without a partition, the check covers the newest day
    assert pipeline.run("solve_days", day(3)).success
    assert pipeline.check("newly_unsolvable").passed


@pytest.mark.nightly
def test_backfilled_days_equal_single_runs_in_any_order(pipeline: Pipeline, index: ServedIndex) -> None:
    follow(pipeline, index)
    asset = pipeline.asset("solvability")
    for number in (3, 0, 2, 1):
        assert pipeline.materialize(asset, day(number)).success
    single = {
        number: pipeline.storage.get(solvability_path(made))
        for number, made in enumerate(stored_days(pipeline.storage))
    }
    assert list(single) == [0, 1, 2, 3]
    for made in stored_days(pipeline.storage):
        pipeline.storage.delete(solvability_path(made))
    assert pipeline.materialize(asset, day(0), day(3)).success
    assert single == {
        number: pipeline.storage.get(solvability_path(made))
        for number, made in enumerate(stored_days(pipeline.storage))
    }
    assert pipeline.states("solvability", [day(0), day(3), day(4)]) == ["materialized", "materialized", "missing"]


def test_days_without_an_answer_are_rejected_and_stop_no_others(pipeline: Pipeline, index: ServedIndex) -> None:
    follow(pipeline, index)
    asset = pipeline.asset("solvability")
    before = pipeline.materialize(asset, "2020-01-01")
    assert unnamed(failure_text(before), "2020-01-01") == []
    both = pipeline.materialize(asset, day(-3), day(0))
    assert not both.success
    assert unnamed(failure_text(both), day(-3)) == []
    assert pipeline.states("solvability", [day(-3), day(0)]) == ["failed", "materialized"]
    days = asset.partitions_def.get_partition_keys()  # type: ignore[union-attr]
    assert datetime.now(UTC).date().isoformat() not in days


def test_missing_inputs_are_reported(pipeline: Pipeline, index: ServedIndex) -> None:
    asset = pipeline.asset("solvability")
    assert unnamed(failure_text(pipeline.materialize(asset, day(0))), "depgraph") == []
    for name in ("newly_unsolvable", "solvability_is_whole"):
        check = pipeline.check(name)
        assert not check.passed


def test_file_check_finds_corruption_and_later_knowledge(pipeline: Pipeline, index: ServedIndex) -> None:
    follow(pipeline, index)
    assert pipeline.run("solve_days", day(4)).success
    assert pipeline.check("solvability_is_whole").passed
    index.wheel("more", "1.0", at=FIRST + timedelta(days=4, hours=1))
    crawl_incremental(pipeline.crawler)
    check = pipeline.check("solvability_is_whole")
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert unnamed(str(check.description), index.serial) == []
    pipeline.storage.put(solvability_path(date.fromisoformat(day(4))), b"damaged")
    check = pipeline.check("solvability_is_whole")
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)


@pytest.mark.nightly
def test_schedule_requests_due_days(pipeline: Pipeline, index: ServedIndex, tmp_path: Path) -> None:
    follow(pipeline, index)
    repository = pipeline.defs.get_repository_def()
    schedule = repository.get_schedule_def("daily_solvability")

    def ticked(at: datetime) -> list[str] | str | None:
        resources = pipeline.resources.by_name()
        with (
            dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
            dg.build_schedule_context(
                instance, scheduled_execution_time=at, resources=resources, repository_def=repository
            ) as context,
        ):
            data = schedule.evaluate_tick(context)
        return [str(request.partition_key) for request in data.run_requests or []] or data.skip_message

    morning = FIRST + timedelta(days=3) - timedelta(hours=6)
    assert ticked(morning) == [day(0), day(1), day(2)]
    for number in (0, 2):
        assert pipeline.run("solve_days", day(number)).success
    assert ticked(morning) == [day(1)]
    assert pipeline.run("solve_days", day(1)).success
    assert isinstance(ticked(morning), str)


def test_partitions_begin_at_the_first_day_and_need_it(pipeline: Pipeline, subtests: pytest.Subtests) -> None:
    for since in (None, date(2026, 3, 1), datetime.now(UTC).date()):
        with subtests.test(since=since):
            defs = build_defs(pipeline.settings.model_copy(update={"solvability_since": since}))
            found = [one for one in defs.assets or () if dg.AssetKey("solvability") in getattr(one, "keys", ())]
            names = {schedule.name for schedule in defs.get_repository_def().schedule_defs}
            assert [bool(found), "daily_solvability" in names] == [since is not None] * 2
            for asset in found:
                assert isinstance(asset, dg.AssetsDefinition)
                assert isinstance(asset.partitions_def, dg.DailyPartitionsDefinition)
                keys = asset.partitions_def.get_partition_keys(current_time=datetime(2026, 3, 3, 0, 30, tzinfo=UTC))
                assert keys == (["2026-03-01", "2026-03-02"] if since == date(2026, 3, 1) else [])


def test_private_index_has_its_own_days(pipeline: Pipeline) -> None:
    defs = build_defs(pipeline.settings, Naming("company"))
    key = dg.AssetKey(["company", "solvability"])
    [asset] = [one for one in defs.assets or () if key in getattr(one, "keys", ())]
    assert isinstance(asset, dg.AssetsDefinition)
    assert asset.dependency_keys == {dg.AssetKey(["company", "depgraph_leveldb"])}
    assert asset.op.pool == "company__database"
    assert defs.resolve_job_def("company__solve_days").partitions_def == asset.partitions_def
