"""Following the index as the sensors do: ranges, dumps, LevelDB versions, and what goes wrong on the way."""

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import update

from pypi_assets.catalog.ledger.range_ledger import SIMPLE, ledger
from pypi_assets.catalog.observed.lister_states import changelog_trouble
from pypi_assets.catalog.publications.dump_files import DumpKind
from pypi_assets.catalog.publications.dump_registry import committed_dumps
from pypi_assets.catalog.publications.leveldb_versions import allocated_versions
from pypi_assets.catalog.tables import rates
from pypi_assets.crawl.full_crawl import crawl_full, list_index
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental
from pypi_assets.defs import resources, sensors
from pypi_assets.defs.assets.incremental_crawl import changed_distributions, changelog
from pypi_assets.defs.attempts import FIRST_PAUSE_S
from pypi_assets.defs.partitions import PARTITION_TAG, RANGE_END_TAG, RANGE_START_TAG
from pypi_assets.devindex.faults import FaultPlan
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import committed_directories
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.versions.leveldb_paths import input_list_path
from pypi_assets.lookup.latest import open_latest
from pypi_assets_tests.defs.conftest import Pipeline, failure_text, lose_state, restore_state, settings_for
from pypi_assets_tests.served_index import ServedIndex, live


def test_from_a_new_file_to_the_lookup(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "3.0")
    index.history.remove_project("gamma")
    (key,) = pipeline.requested("new_serial_range")
    result = pipeline.run("incremental_crawl", key)
    assert result.success
    assert all(check.passed for check in result.get_asset_check_evaluations())
    assert len(result.get_asset_check_evaluations()) == 2
    assert live(pipeline.catalog) == index.shown()
    for asset in ("changelog", "changed_distributions", "changed_distribution_data", "incremental_dump"):
        assert pipeline.marked(asset) == [key]
    assert pipeline.metadata("changed_distributions", key)["projects"] == 2
    told = pipeline.metadata("incremental_dump", key)
    assert (told["dagster/partition_row_count"], told["changes: add file"], told["changes: remove project"]) == (
        2,
        1,
        1,
    )
    assert told["preview"].splitlines()[2:] == [
        f"| {index.serial - 1} | add file | newcomer | 3.0 | newcomer-3.0-py3-none-any.whl |",
        f"| {index.serial} | remove project | gamma | 2.0 | gamma-2.0-py3-none-any.whl |",
    ]
    assert "nothing is new" in pipeline.skipped("new_serial_range")

    assert pipeline.requested("new_leveldb_version") == ["00001"]
    built = pipeline.run("update_leveldbs", "00001")
    assert built.success
    assert [check.passed for check in built.get_asset_check_evaluations()] == [True, True]
    assert pipeline.marked("modules_leveldb") == pipeline.marked("depgraph_leveldb") == ["00001"]
    assert pipeline.metadata("modules_leveldb", "00001")["bytes"] > 0
    assert "hold all dumps" in pipeline.skipped("new_leveldb_version")
    with open_latest("modules", pipeline.storage) as reader:
        assert [found["project"] for found in reader.module("newcomer_module").results] == ["newcomer"]
        assert reader.module("gamma_module").results == ()


def test_the_failures_of_a_range_are_counted_by_kind(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.raw("newcomer-1.0-py3-none-any.whl", b"no archive")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    told = pipeline.metadata("changed_distribution_data", key)
    assert (told["read"], told["failed"], told["failed: corrupt archive"]) == (0, 1, 1)
    assert told["bytes_fetched"] > 0


def test_the_range_sensor_waits_for_a_full_crawl_and_says_so(pipeline: Pipeline) -> None:
    assert pipeline.skipped("new_serial_range") == "no full crawl is complete yet: run the job full_crawl first"
    assert pipeline.skipped("first_full_dump") == "no full crawl is complete yet: run the job full_crawl first"
    assert "run the job full_dump" in pipeline.skipped("new_leveldb_version")
    list_index(pipeline.crawler)
    assert "is not complete yet: run the job full_crawl to continue it" in pipeline.skipped("new_serial_range")


def test_a_full_crawl_whose_run_failed_is_gone_on_with(index: ServedIndex, pipeline: Pipeline) -> None:
    job = pipeline.defs.resolve_job_def("full_crawl")

    def launched(status: dg.DagsterRunStatus) -> None:
        pipeline.instance.create_run_for_job(job, status=status)

    assert "has not failed" in pipeline.skipped("failed_full_crawl")
    launched(dg.DagsterRunStatus.FAILURE)
    launched(dg.DagsterRunStatus.CANCELED)
    assert "has not failed" in pipeline.skipped("failed_full_crawl")
    launched(dg.DagsterRunStatus.FAILURE)  # before it could open a crawl
    assert "1 runs of it ended without success" in pipeline.skipped("failed_full_crawl")
    list_index(pipeline.crawler)
    launched(dg.DagsterRunStatus.FAILURE)
    assert "2 runs of it ended without success" in pipeline.skipped("failed_full_crawl")
    pipeline.ahead_s = 2 * FIRST_PAUSE_S + 5
    request, again = pipeline.tick("failed_full_crawl"), pipeline.tick("failed_full_crawl")
    assert isinstance(request, dg.RunRequest)
    assert request.tags == {RANGE_START_TAG: "000", RANGE_END_TAG: "999"}
    assert again == request
    launched(dg.DagsterRunStatus.STARTED)
    assert "its run is under way" in pipeline.skipped("failed_full_crawl")
    crawl_full(pipeline.crawler)
    assert "has been completed since" in pipeline.skipped("failed_full_crawl")


def test_a_full_dump_is_asked_for_after_the_first_full_crawl(index: ServedIndex, pipeline: Pipeline) -> None:
    crawl_full(pipeline.crawler)
    request = pipeline.tick("first_full_dump")
    assert isinstance(request, dg.RunRequest)
    assert request.run_key == f"{index.serial}:1"
    assert request.tags == {RANGE_START_TAG: "000", RANGE_END_TAG: "255"}
    full_dump(pipeline.catalog, pipeline.storage, 1)
    assert pipeline.skipped("first_full_dump") == "there is a full dump"


def test_a_range_waits_for_its_age_or_for_as_many_events(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    baseline = index.serial
    index.wheel("newcomer", "1.0")
    limits = {"range_min_age_s": 600.0, "range_min_events": index.serial - baseline + 1}
    pipeline.change_settings(**limits)
    assert f"what is new beyond serial {baseline} waits" in pipeline.skipped("new_serial_range")
    pipeline.ahead_s = 601
    (first,) = pipeline.requested("new_serial_range")
    assert first == f"{baseline}-{index.serial}"
    assert pipeline.run("incremental_crawl", first).success
    assert "nothing is new" in pipeline.skipped("new_serial_range")
    begun = index.serial
    for name in ("second", "third"):
        index.wheel(name, "1.0")
    assert pipeline.requested("new_serial_range") == [f"{begun}-{index.serial}"]


@pytest.fixture
def patient(
    index: ServedIndex, pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pipeline]:
    """As patient as by default, with a new file to be found, and ticks that wait for half a second."""
    pipeline.crawled()
    index.wheel("newcomer", "3.0")
    monkeypatch.setattr(resources, "TICK_PATIENCE_S", 0.5)
    options = {"request_attempts": 4, "retry_pause_s": 60.0, "retry_deadline_s": 3_600.0}
    made = Pipeline(settings_for(index.url, tmp_path / "home", **options), pipeline.instance)
    yield made
    made.close()


def failing_tick(pipeline: Pipeline) -> str:
    """What a tick that fails says, soon."""
    started = time.monotonic()
    with pytest.raises(dg.Failure) as failure:
        pipeline.tick("new_serial_range")
    assert time.monotonic() - started < 20.0
    return str(failure.value.description)


def test_a_tick_does_not_wait_for_an_index_that_hangs(index: ServedIndex, patient: Pipeline) -> None:
    hanging = index.faults = FaultPlan('[[fault]]\nkind = "hang"\non = ["changelog"]')
    assert failing_tick(patient).startswith("timed out")
    assert hanging.seen == 1
    index.faults = None
    assert len(patient.requested("new_serial_range")) == 1


def test_a_tick_does_not_wait_where_the_index_asks_for_a_pause(index: ServedIndex, patient: Pipeline) -> None:
    index.faults = FaultPlan('[[fault]]\nkind = "status"\nstatus = 429\nretry_after = 100')
    assert failing_tick(patient).startswith("HTTP 429")
    index.faults = FaultPlan("")
    assert failing_tick(patient).startswith("no request is allowed for another ")
    assert index.faults.seen == 0
    patient.resources.close()
    with patient.catalog.write() as connection:
        connection.execute(update(rates).values(due_at=0))  # the pause is over
    assert len(patient.requested("new_serial_range")) == 1


def test_a_changelog_that_hangs_for_many_ticks_is_off_in_the_end(index: ServedIndex, patient: Pipeline) -> None:
    index.faults = FaultPlan('[[fault]]\nkind = "hang"\non = ["changelog"]')
    catalog, started = patient.catalog, time.time()
    for patient.ahead_s in (0.0, 1_800.0, 3_500.0):
        assert failing_tick(patient).startswith("timed out")
        with catalog.read() as connection:
            trouble = changelog_trouble(connection, index.url)
        assert trouble is not None
        assert not trouble.is_off
        assert trouble.since == pytest.approx(started, abs=60.0)
    patient.ahead_s = 3_700.0
    assert len(patient.requested("new_serial_range")) == 1
    with catalog.read() as connection:
        assert ledger(connection)[-1].lister == SIMPLE


def test_a_range_is_asked_for_again_until_a_run_of_it_is_there(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    first = pipeline.tick("new_serial_range")
    again = pipeline.tick("new_serial_range")  # the daemon was killed between the tick and the run
    assert isinstance(first, dg.SensorResult)
    assert isinstance(again, dg.SensorResult)
    assert [request.run_key for request in first.run_requests or []] == [
        request.run_key for request in again.run_requests or []
    ]
    job = pipeline.defs.resolve_job_def("incremental_crawl")
    (request,) = first.run_requests or []
    pipeline.instance.create_run_for_job(
        job, tags={PARTITION_TAG: str(request.partition_key)}, status=dg.DagsterRunStatus.STARTED
    )
    assert "its run is under way" in pipeline.skipped("new_serial_range")


def test_a_failed_range_is_asked_for_again_after_a_growing_pause(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    (key,) = pipeline.requested("new_serial_range")
    lose_state(pipeline.catalog)
    failed = pipeline.run("incremental_crawl", key, raise_on_error=False)
    assert "the catalog is empty" in failure_text(failed)
    pipeline.run("incremental_crawl", key, raise_on_error=False)
    restore_state(pipeline.catalog)
    assert f"{key}: 2 runs of it ended without success" in pipeline.skipped("new_serial_range")
    pipeline.ahead_s = FIRST_PAUSE_S + 5
    assert f"{key}: 2 runs of it ended without success" in pipeline.skipped("new_serial_range")
    pipeline.ahead_s = 2 * FIRST_PAUSE_S + 5
    result = pipeline.tick("new_serial_range")
    assert isinstance(result, dg.SensorResult)
    (request,) = result.run_requests or []
    assert (request.partition_key, request.run_key) == (key, f"{key}:3")
    assert pipeline.run("incremental_crawl", key).success
    assert "nothing is new" in pipeline.skipped("new_serial_range")


def test_ranges_of_the_command_line_get_their_partitions(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    (result,) = crawl_incremental(pipeline.crawler)
    # crawled already, and its dump is missing
    assert pipeline.requested("new_serial_range") == [result.serials.key]
    list(write_missing_ranges(pipeline.catalog, pipeline.storage))
    assert "nothing is new" in pipeline.skipped("new_serial_range")
    assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [result.serials.key]


def test_partitions_that_were_taken_out_by_hand_come_back_once_the_cursors_are_lost(
    index: ServedIndex, pipeline: Pipeline
) -> None:
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
        assert "nothing is new" in pipeline.skipped("new_serial_range")
        assert pipeline.requested("new_leveldb_version") == [version]
        found = [set(pipeline.instance.get_dynamic_partitions(name)) for name in names]
        assert found == [set(keys[first:]) for keys in known]


def test_partitions_are_brought_in_by_parts_where_they_are_many(
    index: ServedIndex, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "KEYS_A_TICK", 2)
    pipeline.crawled()
    keys = []
    for number in range(5):
        index.wheel(f"newcomer{number}", "1.0")
        keys += [result.serials.key for result in crawl_incremental(pipeline.crawler)]
    list(write_missing_ranges(pipeline.catalog, pipeline.storage))
    for entered in (2, 4, 5, 5):
        assert "nothing is new" in pipeline.skipped("new_serial_range")
        assert pipeline.instance.get_dynamic_partitions("serial_ranges") == keys[:entered]


def test_dumps_of_ranges_are_compacted(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    for number in range(4):
        index.wheel(f"newcomer{number}", "1.0")
        (key,) = pipeline.requested("new_serial_range")
        assert pipeline.run("incremental_crawl", key).success
    (key,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", key).success
    assert pipeline.run("compact_dumps").success
    told = pipeline.metadata("compacted_dump")
    assert (told["compactions"], told["ranges_in_use"], told["dagster/row_count"]) == (1, 1, 4)
    assert told["directories"] == cover(pipeline.catalog).dumps[1].directory
    assert "hold all dumps" in pipeline.skipped("new_leveldb_version")
    assert "nothing is new" in pipeline.skipped("new_serial_range")
    before = committed_directories(pipeline.storage)
    pipeline.ahead_s = 25 * 3600.0
    assert pipeline.run("clean_up").success
    assert committed_directories(pipeline.storage) == before  # the newest version names them all


def test_old_partitions_are_pruned_and_do_not_come_back(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    keys = []
    for number in range(2):
        index.wheel(f"newcomer{number}", "1.0")
        keys += pipeline.requested("new_serial_range")
        assert pipeline.run("incremental_crawl", keys[-1]).success
        versions = pipeline.requested("new_leveldb_version")
        assert pipeline.run("update_leveldbs", versions[-1]).success
        pipeline.ahead_s += 75 * 24 * 3600.0
    index.wheel("undumped", "1.0")
    (late,) = crawl_incremental(pipeline.crawler)
    assert pipeline.requested("new_serial_range") == [late.serials.key]
    pipeline.instance.add_dynamic_partitions("serial_ranges", ["1-2"])  # by hand, and not of the ledger
    for _ in range(2):
        assert pipeline.run("clean_up").success
        assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [keys[1], late.serials.key, "1-2"]
        assert pipeline.instance.get_dynamic_partitions("leveldb_versions") == ["00002"]
        pipeline.tick("new_serial_range")
        pipeline.tick("new_leveldb_version")
    pipeline.ahead_s += 100 * 24 * 3600.0
    assert pipeline.run("clean_up").success
    assert pipeline.instance.get_dynamic_partitions("serial_ranges") == [late.serials.key, "1-2"]
    assert pipeline.instance.get_dynamic_partitions("leveldb_versions") == ["00002"]


def test_old_runs_go_with_their_events_but_for_the_newest_of_a_job_and_those_that_failed(
    index: ServedIndex, pipeline: Pipeline
) -> None:
    pipeline.crawled()
    old, newest = pipeline.run("health"), pipeline.run("health")
    shards = [pipeline.run("full_dump") for _ in range(2)]
    failed = pipeline.run("update_leveldbs", raise_on_error=False)
    assert pipeline.run("clean_up").success
    assert pipeline.instance.get_run_by_id(old.run_id)  # it is not old yet
    pipeline.ahead_s = 100 * 24 * 3600.0
    assert pipeline.run("clean_up").success
    assert pipeline.instance.get_run_by_id(old.run_id) is None
    assert pipeline.instance.all_logs(old.run_id) == []
    assert all(pipeline.instance.get_run_by_id(run.run_id) for run in (newest, *shards, failed))


def test_unknown_ranges_and_versions_are_refused(pipeline: Pipeline) -> None:
    pipeline.crawled()
    pipeline.instance.add_dynamic_partitions("serial_ranges", ["7-9", "nonsense"])
    pipeline.instance.add_dynamic_partitions("leveldb_versions", ["00007"])
    assert "7-9 is not a range of the ledger" in failure_text(pipeline.materialize(changelog, "7-9"))
    assert "not the key of a serial range" in failure_text(pipeline.materialize(changelog, "nonsense"))
    modules_leveldb = pipeline.asset("modules_leveldb")
    assert "version 00007 was never allocated" in failure_text(pipeline.materialize(modules_leveldb, "00007"))
    assert pipeline.marked("changelog") == pipeline.marked("modules_leveldb") == []


def test_ranges_that_are_refused_stop_none_of_the_others_in_their_run(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    keys = []
    for number in range(2):
        index.wheel(f"newcomer{number}", "1.0")
        keys += [serials.key for serials in allocate_next_ranges(pipeline.crawler)]
    unknown = f"{index.serial}-{index.serial + 5}"
    pipeline.instance.add_dynamic_partitions("serial_ranges", [keys[0], unknown, "nonsense", keys[1]])
    result = pipeline.materialize(changed_distributions, keys[0], keys[1])
    assert failure_text(result).startswith("2 of 4 partitions failed: ")
    assert f"{unknown}: {unknown} is not a range of the ledger" in failure_text(result)
    assert "nonsense: not the key of a serial range" in failure_text(result)
    assert pipeline.marked("changed_distributions") == keys


def test_no_second_version_is_asked_for_while_one_is_being_built(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    assert pipeline.requested("new_leveldb_version") == ["00001"]
    assert pipeline.requested("new_leveldb_version") == ["00001"]  # the tick before came to no run
    job = pipeline.defs.resolve_job_def("update_leveldbs")
    pipeline.instance.create_run_for_job(job, tags={PARTITION_TAG: "00001"}, status=dg.DagsterRunStatus.STARTED)
    assert "version 00001 is being built" in pipeline.skipped("new_leveldb_version")
    assert len(allocated_versions(pipeline.catalog)) == 1


def test_the_check_of_the_ledger_fails_on_a_gap(pipeline: Pipeline) -> None:
    pipeline.crawled()
    assert pipeline.check("ranges_without_gap_or_overlap").passed
    with pipeline.catalog.engine.connect() as connection:
        connection.exec_driver_sql("UPDATE serial_ranges SET start = 3")
        connection.commit()
    check = pipeline.check("ranges_without_gap_or_overlap")
    assert not check.passed
    assert "gap: no range holds the serials 1 to 3" in str(check.description)


def test_the_check_of_range_dumps_fails_where_the_catalog_counts_otherwise(
    index: ServedIndex, pipeline: Pipeline
) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    crawl_incremental(pipeline.crawler)
    list(write_missing_ranges(pipeline.catalog, pipeline.storage))
    assert pipeline.check("incremental_dump_rows_match_catalog").passed
    (dump,) = [one for one in committed_dumps(pipeline.catalog) if one.kind == DumpKind.INCREMENTAL]
    with pipeline.catalog.engine.connect() as connection:
        connection.exec_driver_sql(f"DELETE FROM changes WHERE logged_serial > {dump.serials.start}")
        connection.commit()
    check = pipeline.check("incremental_dump_rows_match_catalog")
    assert not check.passed
    assert "has 1 rows, and the catalog counts 0" in str(check.description)


def test_the_check_of_a_leveldb_fails_where_its_input_list_names_other_files(pipeline: Pipeline) -> None:
    pipeline.crawled()
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    storage = pipeline.storage
    assert pipeline.check("modules_matches_input_list").passed
    path = input_list_path("modules", 1)
    storage.put(path, storage.get(path).replace(b"# serial: ", b"# serial: 9"))
    broken = pipeline.check("modules_matches_input_list")
    assert not broken.passed
    assert "serial differ" in str(broken.description)
