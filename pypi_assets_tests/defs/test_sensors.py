"""The requests of each sensor's ticks, and the reasons to request no run."""

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import update

from pypi_assets.catalog.coordination.claims import FOLLOWER
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, complete_serial, ledger
from pypi_assets.catalog.observed.index_state import changelog_trouble
from pypi_assets.catalog.publications.allocated_names import allocated_versions
from pypi_assets.catalog.tables import rates
from pypi_assets.crawl.draining import claiming
from pypi_assets.crawl.full_crawl import crawl_full, list_index
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental
from pypi_assets.defs import external_work, resources, sensors
from pypi_assets.defs.policy import PARTITION_TAG, RANGE_END_TAG, RANGE_START_TAG, leveldb_asset
from pypi_assets.devindex.faults import FaultPlan
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.journal.publishing import write_missing
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import version_name
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets_tests.defs.conftest import Pipeline, settings_for
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex, live
from pypi_assets_tests.served_pages import served_pages


def test_range_sensor_waits_for_a_full_crawl(pipeline: Pipeline) -> None:
    assert unnamed(pipeline.skipped("new_serial_range"), "full_crawl") == []
    assert unnamed(pipeline.skipped("first_full_dump"), "full_crawl") == []
    assert unnamed(pipeline.skipped("new_leveldb_version"), "full_dump") == []
    list_index(pipeline.crawler)
    assert unnamed(pipeline.skipped("new_serial_range"), "full_crawl") == []


def test_full_dump_is_requested_after_the_first_full_crawl(index: ServedIndex, pipeline: Pipeline) -> None:
    crawl_full(pipeline.crawler)
    request = pipeline.tick("first_full_dump")
    assert isinstance(request, dg.RunRequest)
    assert request.run_key == f"{index.serial}:1"
    assert request.tags == {RANGE_START_TAG: "00", RANGE_END_TAG: "ff"}
    full_dump(pipeline.catalog, pipeline.storage, 1)
    pipeline.skipped("first_full_dump")


def test_range_waits_for_its_age_or_enough_events(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    baseline = index.serial
    index.wheel("newcomer", "1.0")
    limits = {"range_min_age_s": 600.0, "range_min_events": index.serial - baseline + 1}
    pipeline.change_settings(**limits)
    assert unnamed(pipeline.skipped("new_serial_range"), baseline) == []
    pipeline.ahead_s = 601
    (first,) = pipeline.requested("new_serial_range")
    assert first == f"{baseline}-{index.serial}"
    assert pipeline.run("incremental_crawl", first).success
    pipeline.skipped("new_serial_range")
    begun = index.serial
    for name in ("second", "third"):
        index.wheel(name, "1.0")
    assert pipeline.requested("new_serial_range") == [f"{begun}-{index.serial}"]


@pytest.fixture
def patient(index: ServedIndex, pipeline: Pipeline, tmp_path: Path) -> Iterator[Pipeline]:
    """Yield a pipeline with the default retries, and a new file on the index."""
    pipeline.crawled()
    index.wheel("newcomer", "3.0")
    options = {"request_attempts": 4, "retry_pause_s": 60.0, "retry_deadline_s": 3_600.0}
    made = Pipeline(settings_for(index.url, tmp_path / "home", **options), pipeline.instance)
    yield made
    made.close()


def failing_tick(pipeline: Pipeline) -> str:
    """Return the message of a tick that must fail soon."""
    started = time.monotonic()
    with pytest.raises(dg.Failure) as failure:
        pipeline.tick("new_serial_range")
    assert time.monotonic() - started < 60.0
    return str(failure.value.description)


def test_tick_does_not_wait_for_a_hanging_index(
    index: ServedIndex, patient: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = index.faults = FaultPlan('[[fault]]\nkind = "hang"\non = ["changelog"]')
    with monkeypatch.context() as patched:
        patched.setattr(resources, "TICK_PATIENCE_S", 0.5)
        assert failing_tick(patient)
    assert hanging.seen == 1
    index.faults = None
    patient.resources.close()  # the next client has the usual patience
    assert len(patient.requested("new_serial_range")) == 1


def test_tick_does_not_wait_for_a_required_pause(index: ServedIndex, patient: Pipeline) -> None:
    index.faults = FaultPlan('[[fault]]\nkind = "status"\nstatus = 429\nretry_after = 100')
    assert failing_tick(patient).startswith("HTTP 429")
    index.faults = FaultPlan("")
    assert failing_tick(patient)
    assert index.faults.seen == 0
    patient.resources.close()
    with patient.catalog.write() as connection:
        connection.execute(update(rates).values(due_at=0))  # the pause is over
    assert len(patient.requested("new_serial_range")) == 1


def test_changelog_hanging_for_many_ticks_is_turned_off(
    index: ServedIndex, patient: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.faults = FaultPlan('[[fault]]\nkind = "hang"\non = ["changelog"]')
    catalog, started = patient.catalog, time.time()
    for patient.ahead_s in (0.0, 1_800.0, 3_500.0):
        with monkeypatch.context() as patched:
            patched.setattr(resources, "TICK_PATIENCE_S", 0.5)
            assert failing_tick(patient)
        with catalog.read() as connection:
            trouble = changelog_trouble(connection, index.url)
        assert trouble is not None
        assert not trouble.is_off
        assert trouble.since == pytest.approx(started, abs=60.0)
    patient.ahead_s = 3_700.0
    patient.resources.close()  # the next client has the usual patience
    assert len(patient.requested("new_serial_range")) == 1
    with catalog.read() as connection:
        assert ledger(connection)[-1].lister == SIMPLE


def test_command_line_ranges_get_partitions(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    (result,) = crawl_incremental(pipeline.crawler)
    # crawled already, but not dumped
    assert pipeline.requested("new_serial_range") == [result.serials.key]
    list(write_missing_ranges(pipeline.catalog, pipeline.storage))
    pipeline.skipped("new_serial_range")
    assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [result.serials.key]


@pytest.mark.nightly
def test_follower_work_is_not_requested_and_shown_in_one_partition(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    list(write_missing(pipeline.catalog, pipeline.storage))
    baseline = index.serial
    sensors_of_it = ("new_serial_range", "new_leveldb_version")

    def follow(name: str) -> int:
        index.wheel(name, "1.0")
        crawl_incremental(pipeline.crawler)
        list(write_missing(pipeline.catalog, pipeline.storage))
        list(write_missing_ranges(pipeline.catalog, pipeline.storage))
        return index.serial

    with claiming(pipeline.crawler, FOLLOWER):
        follow("first")
        through = follow("second")
        version = build_version("modules", storage=pipeline.storage, catalog=pipeline.catalog).version
        for name in sensors_of_it:
            pipeline.skipped(name)
        joined = f"{baseline}-{through}"
        assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [joined]
        for asset in external_work.RANGE_ASSETS:
            assert pipeline.marked(asset) == [joined]
        assert pipeline.metadata("incremental_dump", joined)["ranges"] == 2
        assert pipeline.instance.get_dynamic_partitions("leveldb_versions") == [version_name(version)]
        assert pipeline.marked("modules_leveldb") == [version_name(version)]
        assert pipeline.marked("depgraph_leveldb") == []
        follow("third")
        pipeline.skipped("new_serial_range")
        assert pipeline.marked("changelog") == [joined]  # ten minutes have not passed
        index.wheel("left", "1.0")
        [left] = allocate_next_ranges(pipeline.crawler)
    assert pipeline.requested("new_serial_range") == [left.key]
    assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [joined, left.key]
    pipeline.ahead_s = external_work.REPORT_EVERY_S + 60
    assert pipeline.requested("new_serial_range") == [left.key]
    last = f"{through}-{left.start}"
    assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [joined, left.key, last]
    assert pipeline.marked("change_journal") == [joined, last]
    assert len(pipeline.requested("new_leveldb_version")) == 1


def begun(index: ServedIndex, pipeline: Pipeline) -> tuple[str, str]:
    """Return a range whose run only stored the changelog, and a version whose run did nothing."""
    pipeline.crawled()
    list(write_missing(pipeline.catalog, pipeline.storage))
    index.wheel("first", "1.0")
    (killed,) = pipeline.requested("new_serial_range")
    (unbuilt,) = pipeline.requested("new_leveldb_version")
    pipeline.instance.report_runless_asset_event(dg.AssetMaterialization("changelog", partition=killed))
    return killed, unbuilt


def test_follower_work_on_a_requested_range_is_shown_in_its_partition(index: ServedIndex, pipeline: Pipeline) -> None:
    killed, unbuilt = begun(index, pipeline)
    with claiming(pipeline.crawler, FOLLOWER):
        crawl_incremental(pipeline.crawler)
        pipeline.skipped("new_serial_range")
        assert pipeline.marked("change_journal") == []  # it is neither in the journal nor dumped
        list(write_missing(pipeline.catalog, pipeline.storage))
        list(write_missing_ranges(pipeline.catalog, pipeline.storage))
        version = int(unbuilt)
        build_version("modules", storage=pipeline.storage, catalog=pipeline.catalog, version=version)
        for _ in range(2):
            pipeline.skipped("new_serial_range")
            pipeline.skipped("new_leveldb_version")
    assert pipeline.marked("modules_leveldb") == [unbuilt]
    assert pipeline.marked("depgraph_leveldb") == []
    assert pipeline.instance.get_dynamic_partitions("leveldb_versions") == [unbuilt]
    for asset in external_work.RANGE_ASSETS:
        assert pipeline.marked(asset) == [killed]
    assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [killed]
    assert pipeline.metadata("incremental_dump", killed)["done by"] == "another process"


@pytest.mark.nightly
def test_command_work_after_a_killed_run_is_shown_in_its_partition(index: ServedIndex, pipeline: Pipeline) -> None:
    killed, unbuilt = begun(index, pipeline)
    runs = [
        pipeline.instance.create_run_for_job(
            pipeline.defs.resolve_job_def(job), tags={PARTITION_TAG: key}, status=dg.DagsterRunStatus.STARTED
        )
        for job, key in (("incremental_crawl", killed), ("update_leveldbs", unbuilt))
    ]
    crawl_incremental(pipeline.crawler)
    list(write_missing(pipeline.catalog, pipeline.storage))
    list(write_missing_ranges(pipeline.catalog, pipeline.storage))
    for dataset in DATASETS:
        build_version(dataset, storage=pipeline.storage, catalog=pipeline.catalog, version=int(unbuilt))
    for expected in ([], [killed]):
        pipeline.skipped("new_serial_range")
        pipeline.tick("new_leveldb_version")
        assert pipeline.marked("change_journal") == expected
        assert pipeline.marked("modules_leveldb") == ([unbuilt] if expected else [])
        for run in runs:
            pipeline.instance.report_run_failed(run)
    for _ in range(2):
        pipeline.tick("new_serial_range")
        pipeline.tick("new_leveldb_version")
    for asset in external_work.RANGE_ASSETS:
        assert pipeline.marked(asset) == [killed]
    for dataset in DATASETS:
        assert pipeline.marked(leveldb_asset(dataset)) == [unbuilt]
    assert pipeline.metadata("incremental_dump", killed)["done by"] == "another process"


@pytest.mark.nightly
def test_manually_removed_partitions_return_after_losing_cursors(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    names = ("serial_ranges", "leveldb_versions")
    for number in range(2):
        index.wheel(f"newcomer{number}", "1.0")
        assert pipeline.run("incremental_crawl", *pipeline.requested("new_serial_range")).success
        (version,) = pipeline.requested("new_leveldb_version")
    known = [pipeline.instance.get_dynamic_partitions(name) for name in names]
    assert [len(keys) for keys in known] == [2, 2]
    for name, keys in zip(names, known, strict=True):
        pipeline.instance.delete_dynamic_partition(name, keys[0])
    for cursors, first in ((pipeline.cursors, 1), ({}, 0)):
        pipeline.cursors = cursors
        pipeline.skipped("new_serial_range")
        assert pipeline.requested("new_leveldb_version") == [version]
        assert set(pipeline.instance.get_dynamic_partitions("serial_ranges")) == set(known[0][first:])
        assert pipeline.instance.get_dynamic_partitions("leveldb_versions") == [version]


@pytest.mark.nightly
def test_many_partitions_are_added_in_batches(
    index: ServedIndex, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "KEYS_A_TICK", 2)
    pipeline.crawled()
    keys = []
    for number in range(5):
        index.wheel(f"newcomer{number}", "1.0")
        keys += [serials.key for serials in allocate_next_ranges(pipeline.crawler)]
    for entered in (2, 4, 5, 5):
        pipeline.tick("new_serial_range")
        assert pipeline.instance.get_dynamic_partitions("serial_ranges") == keys[:entered]


def test_version_is_not_requested_while_one_is_being_built(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    assert pipeline.requested("new_leveldb_version") == ["00001"]
    assert pipeline.requested("new_leveldb_version") == ["00001"]  # the tick before led to no run
    job = pipeline.defs.resolve_job_def("update_leveldbs")
    pipeline.instance.create_run_for_job(job, tags={PARTITION_TAG: "00001"}, status=dg.DagsterRunStatus.STARTED)
    assert unnamed(pipeline.skipped("new_leveldb_version"), "00001") == []
    assert len(allocated_versions(pipeline.catalog)) == 1


@pytest.mark.nightly
def test_tick_polls_an_index_without_serials(tmp_path: Path) -> None:
    """The tick polls due projects, which creates the events. The run of the range reads the new files."""
    with served_pages(tmp_path / "served") as pages, dg.DagsterInstance.ephemeral() as instance:
        pages.wheel("demo", "1.0")
        observed = {"lister": "pages", "poll_shortest_s": 0, "poll_confirm_s": 0}
        pipeline = Pipeline(settings_for(pages.url, tmp_path / "home", **observed), instance)
        assert unnamed(pipeline.skipped("new_serial_range"), "full_crawl") == []
        pipeline.crawled()
        with pipeline.catalog.read() as connection:
            first = complete_serial(connection)
        assert unnamed(pipeline.skipped("new_serial_range"), first) == []

        pages.wheel("demo", "2.0")
        pages.wheel("newcomer", "1.0")
        (key,) = pipeline.requested("new_serial_range")
        assert instance.has_dynamic_partition("serial_ranges", key)
        assert pipeline.run("incremental_crawl", key).success
        assert {name for name, _ in live(pipeline.catalog)} == {
            "demo-1.0-py3-none-any.whl",
            "demo-2.0-py3-none-any.whl",
            "newcomer-1.0-py3-none-any.whl",
        }
        pipeline.skipped("new_serial_range")

        pages.answers = lambda _: (503, {}, b"")
        with pytest.raises(dg.Failure, match="HTTP 503"):
            pipeline.tick("new_serial_range")
        pages.answers = lambda _: None
        pipeline.skipped("new_serial_range")
        pipeline.close()


@pytest.mark.nightly
def test_range_sensor_follows_the_list_without_a_request_to_the_changelog(
    index: ServedIndex, pipeline: Pipeline, tmp_path: Path
) -> None:
    requested: list[str] = []
    index.faults = lambda request: requested.append(request.url.path)  # type: ignore[func-returns-value]
    listed = Pipeline(settings_for(index.url, tmp_path / "listed", lister=SIMPLE), pipeline.instance)
    crawl_full(listed.crawler)
    begun = index.serial
    index.wheel("newcomer", "3.0")
    (key,) = listed.requested("new_serial_range")
    assert key == f"{begun}-{index.serial}"
    assert listed.run("incremental_crawl", key).success
    assert live(listed.catalog) == index.shown()
    index.wheel("newcomer", "4.0")
    lists = requested.count("/simple/")
    listed.skipped("new_serial_range")
    assert requested.count("/simple/") == lists  # the list is compared once in half an hour
    listed.ahead_s = 1_801.0
    assert len(listed.requested("new_serial_range")) == 1
    assert [path for path in requested if path.startswith("/pypi")] == []
    listed.close()
