"""Dagster's storage in SQLite files, over connections that are kept. Loaded by the root's dagster.yaml.

The files and their tables are those of Dagster's own storage, so a home can change from one to the other at any time.
"""

import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import dagster as dg
import sqlalchemy as db
from dagster._core.event_api import EventHandlerFn
from dagster._core.events import ASSET_CHECK_EVENTS, ASSET_EVENTS, EVENT_TYPE_TO_PIPELINE_RUN_STATUS
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
    INDEX_SHARD_NAME,
    SqliteEventLogStorage,
    SqliteEventLogStorageWatchdog,
)
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sqlite import create_db_conn_string
from dagster._core.storage.sqlite_storage import (
    DagsterSqliteStorage,
    _event_logs_directory,
    _runs_directory,
    _schedule_directory,
)
from dagster._serdes import ConfigurableClassData
from watchdog.observers import Observer

from pypi_assets.dagster_instance.kept_engines import BUSY_TIMEOUT_S, ENGINES

EVENTS_IN_ONE_BATCH = 500
_HOME_IN_FOLDER = ".dagster_home"
_MIRRORED = frozenset(ASSET_EVENTS) | frozenset(ASSET_CHECK_EVENTS) | frozenset(EVENT_TYPE_TO_PIPELINE_RUN_STATUS)
"""The types of events that are stored in the file of their run and in the index of all runs."""


class KeptSqliteStorage(DagsterSqliteStorage):
    """Dagster's own storage, with connections and compiled statements that are kept.

    Dagster opens and closes a file for each statement, and compiles the statement again. Here each process keeps them.
    The events of a run's partitions are stored in batches, each in one transaction of a file.
    """

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", str(EVENTS_IN_ONE_BATCH))  # its only switch
        self.base_dir = base_dir
        self._run_storage = KeptRunStorage.from_local(_runs_directory(base_dir))
        self._event_log_storage = KeptEventLogStorage(_event_logs_directory(base_dir))
        self._schedule_storage = KeptScheduleStorage.from_local(_schedule_directory(base_dir))
        self._inst_data = inst_data
        super(DagsterSqliteStorage, self).__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def config_type(cls) -> dict[str, dg.Field]:
        return {"base_dir": dg.Field(dg.StringSource, is_required=False)}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        return cls.from_local(inst_data=inst_data, base_dir=config_value.get("base_dir") or _home())


class KeptRunStorage(SqliteRunStorage):
    """Runs, in one file."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._path = _path(conn_string)
        super().__init__(conn_string, inst_data)

    @classmethod
    def from_local(cls, base_dir: str, inst_data: ConfigurableClassData | None = None) -> Self:
        conn_string = create_db_conn_string(base_dir, "runs")
        if _is_set_up(_path(conn_string), "instance_info"):
            return cls(conn_string, inst_data)
        return super().from_local(base_dir, inst_data)

    @contextmanager
    def connect(self) -> Iterator[db.Connection]:
        with ENGINES.begin(self._path) as connection:
            yield connection


class KeptScheduleStorage(SqliteScheduleStorage):
    """What sensors and schedules did, in one file."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._path = _path(conn_string)
        super().__init__(conn_string, inst_data)

    @classmethod
    def from_local(cls, base_dir: str, inst_data: ConfigurableClassData | None = None) -> "SqliteScheduleStorage":
        conn_string = create_db_conn_string(base_dir, "schedules")
        if _is_set_up(_path(conn_string), "job_ticks"):
            return cls(conn_string, inst_data)
        SqliteScheduleStorage.from_local(base_dir)  # makes the file; the class that it returns is always its own
        return cls(conn_string, inst_data)

    @contextmanager
    def connect(self) -> Iterator[db.Connection]:
        with ENGINES.begin(self._path) as connection:
            yield connection


class KeptEventLogStorage(SqliteEventLogStorage):
    """Events: one file for each run, and an index of what is queried over all runs."""

    _obs: Any  # watchdog's observer, once something is watched

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._folder = Path(base_dir).absolute()
        self._found: set[str] = set()
        # Dagster disposes of this one in any case; it then closes what all three have open
        home = self._folder.parent.parent
        ENGINES.hold(home)
        self._release = weakref.finalize(self, ENGINES.release, home)
        super().__init__(base_dir, inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[db.Connection]:
        path = self._folder / f"{shard}.db"
        if shard not in self._initialized_dbs:
            with self._db_lock:
                self._set_up(shard, path)
                self._initialized_dbs.add(shard)
        with ENGINES.begin(path) as connection:
            yield connection

    def _set_up(self, shard: str, path: Path) -> None:
        """Makes the file of a run, if it is missing, with the tables of the index. Another process may do so too."""
        if _is_set_up(path, "event_logs"):
            return
        if shard != INDEX_SHARD_NAME and not path.exists():
            with suppress(OSError):  # of a file system without hard links
                _copy_tables(self._folder / f"{INDEX_SHARD_NAME}.db", path)
                return
        engine = db.create_engine(f"sqlite:///{path}", poolclass=db.NullPool, connect_args={"timeout": BUSY_TIMEOUT_S})
        self._initdb(engine)

    def store_event(self, event: dg.EventLogEntry) -> None:
        self.store_event_batch([event])

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """Stores events, those of a run that follow each other in one transaction of each file."""
        for run_id, of_run in groupby(events, key=lambda event: event.run_id):
            self._store(run_id, list(of_run))

    def _store(self, run_id: str, events: list[dg.EventLogEntry]) -> None:
        rows = [self._event_to_row(event) for event in events]
        mirrored = [
            (event, row) for event, row in zip(events, rows, strict=True) if event.dagster_event_type in _MIRRORED
        ]
        if not mirrored:
            with self.run_connection(run_id) as connection:
                connection.execute(SqlEventLogStorageTable.insert(), rows)
            return
        # both are written before the first is committed: where the index cannot be written, the run's file has nothing
        with self.index_connection() as index, self.run_connection(run_id) as connection:
            connection.execute(SqlEventLogStorageTable.insert(), rows)
            index.execute(SqlEventLogStorageTable.insert(), [row for _, row in mirrored])
            newest = index.exec_driver_sql("SELECT last_insert_rowid()").scalar_one()
            # consecutive, since no other process writes until this is committed
            first = newest - len(mirrored) + 1
            self._store_in_index(index, {first + number: event for number, (event, _) in enumerate(mirrored)})

    def _store_in_index(self, index: db.Connection, events: dict[int, dg.EventLogEntry]) -> None:
        """Stores what the index has of assets and checks, from `events` by their id."""
        of_assets = {number: event for number, event in events.items() if event.dagster_event_type in ASSET_EVENTS}
        self._store_asset_event_tags(index, [*of_assets.values()], [*of_assets])
        last = {
            (event.get_dagster_event().asset_key, event.dagster_event_type): number
            for number, event in of_assets.items()
        }
        for number in sorted(last.values()):  # an asset shows the last event of each type
            self._store_asset_event(index, events[number], number)
        for number, event in events.items():
            if event.dagster_event_type in ASSET_CHECK_EVENTS:
                self.store_asset_check_event(event, number)

    def has_table(self, table_name: str) -> bool:
        return self._is_known(f"table {table_name}") or self._know(
            f"table {table_name}", table_name in _tables(self._folder / f"{INDEX_SHARD_NAME}.db")
        )

    def has_secondary_index(self, name: str) -> bool:
        return self._is_known(f"index {name}") or self._know(f"index {name}", super().has_secondary_index(name))

    def _has_asset_key_col_on_connection(self, conn: db.Connection, column_name: str) -> bool:
        return self._is_known(f"column {column_name}") or self._know(
            f"column {column_name}", super()._has_asset_key_col_on_connection(conn, column_name)
        )

    def _is_known(self, what: str) -> bool:
        return what in self._found

    def _know(self, what: str, found: bool) -> bool:
        """What was found stays: migrations of Dagster only add."""
        if found:
            self._found.add(what)
        return found

    def watch(self, run_id: str, cursor: str | None, callback: EventHandlerFn) -> None:
        if self._obs is None:
            self._obs = Observer()
            self._obs.start()
        watchdog = _Watchdog(self, run_id, callback, cursor)
        self._watchers[run_id][callback] = (watchdog, self._obs.schedule(watchdog, str(self._folder)))

    def wipe(self) -> None:
        ENGINES.close_files(self._folder)
        super().wipe()

    def dispose(self) -> None:
        super().dispose()
        self._release()


class _Watchdog(SqliteEventLogStorageWatchdog):
    """Sees events when they are committed, which is to the write-ahead log while connections are kept."""

    def __init__(self, storage: KeptEventLogStorage, run_id: str, callback: EventHandlerFn, cursor: str | None) -> None:
        super().__init__(storage, run_id, callback, cursor)
        self._patterns = [self._log_path, f"{self._log_path}-wal"]

    def on_modified(self, event: object) -> None:  # noqa: ARG002
        self._process_log()


def _home() -> str:
    """`$DAGSTER_HOME`; where it is not set, as in a first `dagster dev`, a folder that its processes share."""
    return os.environ.get("DAGSTER_HOME") or str(Path(_HOME_IN_FOLDER).absolute())


def _path(conn_string: str) -> Path:
    return Path(str(db.make_url(conn_string).database))


def _is_set_up(path: Path, table: str) -> bool:
    """Whether the file has its tables, and the revision of them that Dagster wrote last."""
    return path.exists() and {table, "alembic_version"} <= _tables(path)


def _tables(path: Path) -> set[str]:
    with ENGINES.begin(path) as connection:
        return set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())


def _copy_tables(source: Path, target: Path) -> None:
    """Makes `target` with the empty tables of `source` and their revision, at once: no process sees half of it."""
    with ENGINES.begin(source) as connection:
        statements = list(_statements(connection))
        revisions = list(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars())
    made = target.with_suffix(f".made-{os.getpid()}-{id(target)}")
    try:
        with closing(sqlite3.connect(made, isolation_level=None)) as copy:
            copy.execute("PRAGMA journal_mode = WAL")
            copy.execute("BEGIN")
            for statement in statements:
                copy.execute(statement)
            copy.executemany("INSERT INTO alembic_version VALUES (?)", ((revision,) for revision in revisions))
            copy.execute("COMMIT")
        with suppress(FileExistsError):  # another process was first
            os.link(made, target)
    finally:
        made.unlink(missing_ok=True)


def _statements(connection: db.Connection) -> Iterable[str]:
    """What makes the tables, then the indexes."""
    found = connection.exec_driver_sql(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC"
    )
    return found.scalars()
