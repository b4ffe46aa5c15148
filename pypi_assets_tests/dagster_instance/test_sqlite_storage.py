"""Dagster's storage over kept connections stores what Dagster's own does, from any process, thread and fork."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent, StepMaterializationData
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.sql import get_alembic_config, run_alembic_downgrade

from pypi_assets.dagster_instance import kept_engines
from pypi_assets_tests.dagster_instance.instances import anything, open_files

ROOT = Path(__file__).parent.parent.parent
ASSET = dg.AssetKey("anything")


@pytest.fixture(autouse=True)
def _dagster_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))


@contextmanager
def kept(home: Path) -> Iterator[dg.DagsterInstance]:
    """An instance with the storage of the root's dagster.yaml."""
    storage = yaml.safe_load((ROOT / "dagster.yaml").read_text())["storage"]
    (home / "dagster.yaml").write_text(yaml.safe_dump({"storage": storage, "telemetry": {"enabled": False}}))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@contextmanager
def own(home: Path) -> Iterator[dg.DagsterInstance]:
    """An instance with Dagster's own storage."""
    (home / "dagster.yaml").write_text(yaml.safe_dump({"telemetry": {"enabled": False}}))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


def materialize(instance: dg.DagsterInstance, *partitions: str) -> list[str]:
    """Materializes the partitions, each in a run; returns the runs."""
    instance.add_dynamic_partitions("ranges", list(partitions))
    runs = [dg.materialize([anything], instance=instance, partition_key=partition) for partition in partitions]
    assert all(run.success for run in runs)
    return [run.run_id for run in runs]


def test_without_a_home_everything_is_in_a_folder_of_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As in `dagster dev` in a clone, whose processes have no other folder in common."""
    monkeypatch.delenv("DAGSTER_HOME")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    with kept(tmp_path / "other") as instance:
        [run] = materialize(instance, "1-2")
    assert (tmp_path / ".dagster_home" / "history" / "runs" / f"{run}.db").exists()
    with kept(tmp_path / "other") as instance:
        assert instance.has_run(run)


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def index_of(home: Path) -> Path:
    return home / "history" / "runs" / "index.db"


def assert_whole(home: Path) -> None:
    for path in [*home.glob("history/*.db"), *home.glob("history/runs/*.db"), *home.glob("schedules/*.db")]:
        assert rows(path, "PRAGMA integrity_check") == [("ok",)], path
        assert rows(path, "PRAGMA journal_mode") == [("wal",)], path


def test_connections_are_kept_until_the_instance_is_disposed_of(tmp_path: Path):
    with kept(tmp_path) as instance:
        materialize(instance, "0-5")
        assert open_files(tmp_path / "history")
        with kept(tmp_path) as other:  # as for a tick, in the same process
            assert other.get_runs_count() == 1
        assert open_files(tmp_path / "history")
    assert not open_files(tmp_path)
    assert_whole(tmp_path)


@pytest.mark.nightly
def test_a_home_can_change_from_one_storage_to_the_other_and_back(tmp_path: Path):
    with own(tmp_path) as instance:
        [first] = materialize(instance, "0-5")
    with kept(tmp_path) as instance:
        [second] = materialize(instance, "5-9")
        assert instance.get_materialized_partitions(ASSET) == {"0-5", "5-9"}
        events_of_first = len(instance.all_logs(first))
    with own(tmp_path) as instance:
        assert instance.get_materialized_partitions(ASSET) == {"0-5", "5-9"}
        assert len(instance.all_logs(second)) == events_of_first > 5
        materialize(instance, "9-12")
    with kept(tmp_path) as instance:
        assert instance.get_runs_count() == 3
        assert instance.get_latest_materialization_event(ASSET)


def test_the_file_of_a_run_has_the_tables_that_dagster_makes(tmp_path: Path):
    made = "SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"
    found = []
    for storage in (own, kept):
        with storage(tmp_path) as instance:
            [run] = materialize(instance, "0-5")
        path = tmp_path / "history" / "runs" / f"{run}.db"
        found.append((rows(path, made), rows(path, "SELECT * FROM alembic_version")))
    assert found[0] == found[1]
    assert found[0][1]


def events_of(run: str, count: int, start: float) -> list[dg.EventLogEntry]:
    """Planned and materialized partitions of two assets, as a run logs them."""
    events = []
    for number in range(count):
        asset, partition = dg.AssetKey(f"asset_{number % 2}"), str(number)
        planned = DagsterEvent.build_asset_materialization_planned_event(
            "job", "step", AssetMaterializationPlannedData(asset, partition=partition)
        )
        done = DagsterEvent(
            "ASSET_MATERIALIZATION",
            "job",
            event_specific_data=StepMaterializationData(
                dg.AssetMaterialization(asset, partition=partition, tags={"dagster/data_version": f"v{number}"})
            ),
        )
        events += [
            dg.EventLogEntry(None, "info", "", run, start + number, dagster_event=event) for event in (planned, done)
        ]
    return events


@pytest.mark.nightly
@pytest.mark.parametrize("together", [1, 3, 40])
def test_a_batch_stores_what_single_events_store(tmp_path: Path, together: int):
    events = events_of("a-run", 20, 1_700_000_000.0)
    stored = []
    for name, storage in (("own", own), ("kept", kept)):
        home = tmp_path / name
        home.mkdir()
        os.environ["DAGSTER_HOME"] = str(home)
        with storage(home) as instance:
            for begin in range(0, len(events), together):
                instance.event_log_storage.store_event_batch(events[begin : begin + together])
            assert instance.get_materialized_partitions(dg.AssetKey("asset_1")) == {str(n) for n in range(1, 20, 2)}
        columns = "id, run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition"
        stored.append(
            [
                rows(home / "history" / "runs" / "a-run.db", f"SELECT {columns} FROM event_logs"),
                rows(index_of(home), f"SELECT {columns} FROM event_logs"),
                rows(
                    index_of(home),
                    "SELECT asset_key, last_materialization, last_run_id, last_materialization_timestamp"
                    " FROM asset_keys ORDER BY asset_key",
                ),
                rows(index_of(home), "SELECT event_id, asset_key, key, value FROM asset_event_tags ORDER BY event_id"),
            ]
        )
    assert stored[0] == stored[1]
    assert [len(table) for table in stored[0]] == [40, 40, 2, 20]


def test_where_the_index_cannot_be_written_the_file_of_the_run_has_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kept_engines, "BUSY_TIMEOUT_S", 0.2)
    with kept(tmp_path) as instance, closing(sqlite3.connect(index_of(tmp_path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Exception, match="locked"):
            instance.event_log_storage.store_event_batch(events_of("a-run", 3, 1_700_000_000.0))
        other.execute("ROLLBACK")
        assert instance.all_logs("a-run") == []


WRITER = """
import sys
import dagster as dg
with dg.DagsterInstance.get() as instance:
    for number in range(int(sys.argv[2])):
        partition = f"{sys.argv[1]}-{number}"
        instance.report_runless_asset_event(dg.AssetMaterialization("anything", partition=partition))
        print(partition, flush=True)
"""


@pytest.mark.nightly
def test_processes_write_at_once_and_what_was_acknowledged_survives_a_kill(tmp_path: Path):
    with kept(tmp_path):
        pass
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", WRITER, str(number), "10000" if number == 0 else "60"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    killed = writers[0]
    assert killed.stdout
    acknowledged = [killed.stdout.readline().strip() for _ in range(30)]
    killed.send_signal(signal.SIGKILL)
    with killed.stdout as output:
        acknowledged += output.read().split()  # what readline() has read ahead, too
    for writer in writers[1:]:
        acknowledged += writer.communicate(timeout=120)[0].split()
    killed.wait(timeout=120)
    assert [writer.returncode for writer in writers] == [-signal.SIGKILL, 0, 0, 0]
    assert len(acknowledged) >= 30 + 3 * 60
    assert_whole(tmp_path)
    with own(tmp_path) as instance:
        stored = instance.get_materialized_partitions(ASSET)
    assert set(acknowledged) <= stored
    assert len(stored) <= len(acknowledged) + 1  # the one that was being stored


def test_threads_write_at_once(tmp_path: Path):
    with kept(tmp_path) as instance:

        def write(name: int) -> None:
            for number in range(25):
                instance.report_runless_asset_event(dg.AssetMaterialization("anything", partition=f"{name}-{number}"))

        threads = [threading.Thread(target=write, args=(name,)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(instance.get_materialized_partitions(ASSET)) == 150
    assert not open_files(tmp_path)


def test_a_forked_process_writes_too(tmp_path: Path):
    with kept(tmp_path) as instance:
        materialize(instance, "0-5")
        child = os.fork()
        if child == 0:
            instance.report_runless_asset_event(dg.AssetMaterialization("anything", partition="5-9"))
            os._exit(0)
        instance.report_runless_asset_event(dg.AssetMaterialization("anything", partition="9-12"))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert instance.get_materialized_partitions(ASSET) == {"0-5", "5-9", "9-12"}
    assert_whole(tmp_path)


@pytest.mark.nightly
def test_a_home_of_an_older_dagster_is_migrated(tmp_path: Path):
    with own(tmp_path) as instance:
        [run] = materialize(instance, "0-5")
        heads = revisions(tmp_path, run)
        runs, events = instance.run_storage, instance.event_log_storage
        assert isinstance(runs, SqliteRunStorage)
        assert isinstance(events, SqliteEventLogStorage)
        runs._alembic_downgrade("-1")
        config = get_alembic_config(sys.modules[SqliteEventLogStorage.__module__].__file__ or "")
        for shard in (run, "index"):
            with events.run_connection(shard) as connection:
                run_alembic_downgrade(config, connection, "-1", shard)
    assert all(now != head for now, head in zip(revisions(tmp_path, run), heads, strict=True))
    with kept(tmp_path) as instance:
        instance.upgrade()
        materialize(instance, "5-9")
    assert revisions(tmp_path, run) == heads


def revisions(home: Path, run: str) -> list[Any]:
    files = [home / "history" / "runs.db", home / "history" / "runs" / f"{run}.db", index_of(home)]
    return [rows(path, "SELECT version_num FROM alembic_version") for path in files]


def test_a_run_is_watched_while_its_connections_stay_open(tmp_path: Path):
    with kept(tmp_path) as instance:
        [run] = materialize(instance, "0-5")
        seen: list[dg.EventLogEntry] = []
        arrived = threading.Event()

        def callback(event: dg.EventLogEntry, _cursor: str) -> None:
            seen.append(event)
            arrived.set()

        cursor = instance.get_records_for_run(run).cursor
        instance.watch_event_logs(run, cursor, callback)
        instance.report_engine_event("something new", instance.get_run_by_id(run))
        assert arrived.wait(20)
        instance.end_watch_event_logs(run, callback)
        assert [event.message for event in seen] == ["something new"]


def test_few_files_are_open_however_many_runs_are_read(tmp_path: Path):
    with kept(tmp_path) as instance:
        for number in range(60):
            instance.event_log_storage.store_event(events_of(f"run-{number}", 1, 1_700_000_000.0)[0])
        assert len(open_files(tmp_path)) < 110
        assert len(instance.all_logs("run-0")) == 1


def test_all_events_can_be_wiped(tmp_path: Path):
    with kept(tmp_path) as instance:
        [run] = materialize(instance, "0-5")
        instance.event_log_storage.wipe()
        assert not instance.get_materialized_partitions(ASSET)
        assert instance.all_logs(run) == []
        materialize(instance, "5-9")
        assert instance.get_materialized_partitions(ASSET) == {"5-9"}
