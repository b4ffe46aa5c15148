"""A year of serial ranges, one every ten minutes: in a catalog, its storage, and an instance of Dagster.

Dagster runs one range and one LevelDB version. For all others, copies of their rows are inserted in bulk: rows of the
ledger, dumps and versions; partitions, runs, tags, events and checks. The code that the schedules run makes the full
dump, the ranges' dumps and the hourly compactions of the last week, and the last version. Logs of runs, which only the
pages of these runs read, are omitted.
"""

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import dagster as dg
import sqlalchemy as sa
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetEventTagsTable,
    AssetKeyTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.runs.schema import RunsTable, RunTagsTable

from pypi_assets.catalog import tables
from pypi_assets.catalog.coordination.leases import deletion_deadlines
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import last_allocated_serial, read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.allocated_names import allocate_version
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.definitions import build_defs
from pypi_assets.defs.resources import Resources, build_resources
from pypi_assets.dumps.compaction import compact
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.unused_dumps import clean_dumps
from pypi_assets.index.protocol import Observation, Report
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.settings import Settings, load_settings
from pypi_assets.storage.store import Storage
from pypi_assets_tests.served_index import ServedIndex, served_index, shared_readers

ROOT = Path(__file__).parents[1]
PAUSE_S = 600.0
FIRST_SERIAL = 39_000_000
SERIALS = 64
WEEK = 7 * 144
"""The number of ranges in a week. A shorter year has half of its ranges in its last week."""
HOUR = 6
AT_ONCE = 1_000
EVENT_IDS = count(1_000_000)
JOBS = {"new_serial_range": "incremental_crawl", "new_leveldb_version": "update_leveldbs"}

Row = dict[str, Any]


@dataclass
class RestingIndex:
    """An index without any changes."""

    index_url: str
    changelog_url: str
    serial: int
    is_observed: bool = False

    def observe(self, _: Report, **__: bool) -> Observation:
        """Return an empty observation, because this index has its own serials."""
        return Observation()

    def last_serial(self) -> int:
        return self.serial


@dataclass
class Year:
    """The year below a folder.

    `moment`, in unix seconds, is the catalog's clock. `index` replaces the index of the settings.
    """

    settings: Settings
    instance: dg.DagsterInstance
    moment: float = field(default_factory=time.time)
    index: RestingIndex | None = None
    catalog: Catalog = field(init=False)
    resources: Resources = field(init=False)
    defs: dg.Definitions = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = open_catalog(self.settings.resolved_database_url, lambda: self.moment)
        given: Any = {"index": self.index, "catalog": self.catalog, "readers": shared_readers()}
        self.resources = build_resources(self.settings, **given)
        self.defs = build_defs(self.settings, storage=self.resources.storage.get(), **given)

    @property
    def storage(self) -> Storage:
        return self.resources.storage.get()

    def tick(self, sensor: str, cursor: str | None = None) -> Any:
        """Return the sensor's result for the daemon."""
        repository = self.defs.get_repository_def()
        with dg.SensorEvaluationContext(
            self.instance.get_ref(),
            instance=self.instance,
            sensor_name=sensor,
            cursor=cursor,
            repository_def=repository,
            resources=repository.get_top_level_resources(),
        ) as context:
            return self.defs.resolve_sensor_def(sensor).evaluate_tick(context)

    def close(self) -> None:
        self.resources.close()
        self.catalog.close()


@contextmanager
def opened_year(folder: Path, ranges: int) -> Iterator[Year]:
    """Yield the year below `folder`, with `ranges` ranges and as many LevelDB versions. Create it if it is missing."""
    os.environ["DAGSTER_HOME"] = str(folder / "dagster")  # the storage of dagster.yaml keeps its files there
    done = folder / "ranges"
    if not done.exists():
        make_year(folder, ranges)
        done.write_text(str(ranges))
    elif int(done.read_text()) != ranges:
        raise SystemExit(f"{folder} has {done.read_text()} ranges: name another folder, or --ranges {done.read_text()}")
    catalog = open_catalog(load_settings(home=folder / "home").resolved_database_url)
    with catalog.read() as connection:
        url, end = read_state(connection)["index_url"], last_allocated_serial(connection)
        moment = float(connection.scalar(sa.select(sa.func.max(tables.serial_ranges.c.completed_at))) or 0)
    catalog.close()
    with dg.DagsterInstance.from_config(str(folder / "dagster")) as instance:
        settings = load_settings(index_url=url, home=folder / "home")
        year = Year(settings, instance, moment, RestingIndex(url, url, end))
        yield year
        year.close()


def make_year(folder: Path, ranges: int) -> None:
    dagster_home = folder / "dagster"
    dagster_home.mkdir(parents=True)
    shutil.copy(ROOT / "dagster.yaml", dagster_home)
    with (
        served_index(folder / "served") as served,
        dg.DagsterInstance.from_config(str(dagster_home)) as instance,
    ):
        year = Year(load_settings(index_url=served.url, home=folder / "home", requests_per_second=10_000), instance)
        _run_once(year, served)
        keys = [serials.key for serials in _enter_ranges(year, ranges)]
        _enter_runs(year, keys)
        year.close()


def _run_once(year: Year, served: ServedIndex) -> None:
    served.wheel("alpha", "1.0")
    crawl_full(year.resources.crawler.get())
    full_dump(year.catalog, year.storage, 1)
    served.wheel("newcomer", "1.0")
    for sensor, job in JOBS.items():
        result = year.tick(sensor)
        for request in result.dynamic_partitions_requests:
            year.instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
        [request] = result.run_requests
        result = year.defs.resolve_job_def(job).execute_in_process(
            instance=year.instance, partition_key=request.partition_key, tags={"dagster/sensor_name": sensor}
        )
        assert result.success


def _enter_ranges(year: Year, ranges: int) -> list[SerialRange]:
    """Insert the catalog's rows of all ranges before the last week, then process that week in order."""
    now = year.moment
    real = _row(year.catalog, sa.select(tables.serial_ranges).where(tables.serial_ranges.c.start > 0))
    start = FIRST_SERIAL
    entered = [SerialRange(real["end"], start)]  # from the served index's serials to large ones
    entered += [SerialRange(start + at * SERIALS, start + (at + 1) * SERIALS) for at in range(ranges - 1)]
    born = {serials: now - (ranges - at) * PAUSE_S for at, serials in enumerate(entered)}
    week = min(WEEK, ranges // 2)
    older, last_week = entered[:-week], entered[-week:]
    year.moment = born[older[-1]]
    _enter_ledger(year, real, older, born)
    _enter_old_dumps(year, older, born)
    full_dump(year.catalog, year.storage, 1)
    _enter_ledger(year, real, last_week, born)
    for at, serials in enumerate(last_week):
        year.moment = born[serials]
        write_range(year.catalog, year.storage, serials)
        if at % HOUR == 0:
            list(compact(year.catalog, year.storage, held=[serials.end]))
    _enter_versions(year, entered[:-1], born)
    year.moment = now
    version = allocate_version(year.catalog, entered[-1].end)
    for dataset in DATASETS:
        build_version(dataset, storage=year.storage, catalog=year.catalog, version=version)
    list(clean_dumps(year.catalog, year.storage, deletion_deadlines(year.catalog, 24 * 3600), ()))
    return entered


def _enter_ledger(year: Year, real: Row, ranges: Sequence[SerialRange], born: dict[SerialRange, float]) -> None:
    """Insert each range as complete, with one visited project and one changed distribution."""
    shifted = ("requested_at", "begun_at", "completed_at")
    changed = _row(year.catalog, sa.select(tables.changes).order_by(sa.desc(tables.changes.c.id)))
    with year.catalog.write() as connection:
        at = [born[serials] - real["requested_at"] for serials in ranges]
        for table, rows in {
            tables.serial_ranges: [
                real
                | {"start": serials.start, "end": serials.end, "sealed": False}
                | {name: real[name] + shift for name in shifted}
                for serials, shift in zip(ranges, at, strict=True)
            ],
            tables.changes: [changed | {"serial": serials.end, "logged_serial": serials.end} for serials in ranges],
        }.items():
            connection.execute(sa.insert(table), rows)
        connection.execute(sa.update(tables.catalog_state).values(events_through=ranges[-1].end))


def _enter_old_dumps(year: Year, ranges: Sequence[SerialRange], born: dict[SerialRange, float]) -> None:
    """Insert the dumps of ranges before the full dump, dropped by clean-ups, with a compaction of every four."""
    compactions = [
        SerialRange(part[0].start, part[-1].end) for part in (ranges[at : at + 4] for at in range(0, len(ranges), 4))
    ]
    kinds = [("incremental", one) for one in ranges] + [("compacted", one) for one in compactions if one not in born]
    last = max(_scalar(year.catalog, sa.func.max(tables.dumps.c.id)), 1)
    with year.catalog.write() as connection:
        connection.execute(
            sa.insert(tables.dumps),
            [
                {
                    "id": last + at,
                    "kind": kind,
                    "start": serials.start,
                    "end": serials.end,
                    "directory": serials.key,
                    "sequence": last + at,
                    "shards": 1,
                    "columns": "[]",
                    "state": "dropped",
                    "inputs": "[]",
                    "opened_at": born.get(serials, year.moment),
                    "committed_at": born.get(serials, year.moment),
                }
                for at, (kind, serials) in enumerate(kinds, start=1)
            ],
        )
        file = {"shard": 0, "name": "python_distribution_data0000.json.gz", "rows": 1, "size": 500, "frozen": True}
        connection.execute(
            sa.insert(tables.dump_files),
            [file | {"dump_id": last + at, "sha256": f"{at:064x}"} for at in range(1, len(kinds) + 1)],
        )
        connection.execute(sa.update(tables.catalog_state).values(next_dump_sequence=last + len(kinds) + 1))


def _enter_versions(year: Year, ranges: Sequence[SerialRange], born: dict[SerialRange, float]) -> None:
    first = _scalar(year.catalog, sa.func.max(tables.leveldb_versions.c.version)) + 1
    allocated = [
        {"version": first + at, "requested_at": born[serials], "serial": serials.end}
        for at, serials in enumerate(ranges)
    ]
    built = [
        {
            "dataset": dataset,
            "version": one["version"],
            "directory": f"{one['version']:05d}",
            "started_at": one["requested_at"],
            "published_at": one["requested_at"],
            "serial": one["serial"],
        }
        for one in allocated
        for dataset in DATASETS
    ]
    with year.catalog.write() as connection:
        connection.execute(sa.insert(tables.leveldb_versions), allocated)
        connection.execute(sa.insert(tables.leveldb_builds), built)


def _scalar(catalog: Catalog, what: Any) -> int:
    with catalog.read() as connection:
        return int(connection.scalar(sa.select(what)) or 0)


def _row(catalog: Catalog, query: Any) -> Row:
    """Return the first row of the result, without its id, by the columns' names in Python."""
    with catalog.read() as connection:
        row = next(iter(connection.execute(query)))
    return {column.key: value for column, value in zip(query.selected_columns, row, strict=True) if column.key != "id"}


def _enter_runs(year: Year, ranges: Sequence[str]) -> None:
    """Insert a run of each job for each range, the oldest first, with its partition."""
    found = [year.instance.get_runs(dg.RunsFilter(job_name=job)) for job in JOBS.values()]
    copies = [_copied(year.instance, run.run_id, run.tags["dagster/partition"]) for [run] in found]
    end, total = year.moment, len(ranges)
    numbers = count(1)
    for at in range(0, total, AT_ONCE):
        keys = [ranges[at : at + AT_ONCE], [f"{one + 2:05d}" for one in range(at, min(at + AT_ONCE, total))]]
        for name, added in zip(("serial_ranges", "leveldb_versions"), keys, strict=True):
            year.instance.add_dynamic_partitions(name, added)
        entered = [
            copied.entered(key, str(UUID(int=next(numbers), version=4)), end - (total - at - place) * PAUSE_S)
            for place, pair in enumerate(zip(*keys, strict=True))
            for copied, key in zip(copies, pair, strict=True)
        ]
        with year.instance.event_log_storage.index_connection() as connection:  # type: ignore[attr-defined]
            for table in (SqlEventLogStorageTable, AssetEventTagsTable, AssetCheckExecutionsTable):
                connection.execute(table.insert(), [row for one in entered for row in one[table]])
            for row in [row for one in entered[-2:] for row in one[AssetKeyTable]]:
                is_same = AssetKeyTable.c.asset_key == row["asset_key"]
                connection.execute(AssetKeyTable.update().where(is_same).values(**row))
        with year.instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
            for table in (RunsTable, RunTagsTable):
                connection.execute(table.insert(), [row for one in entered for row in one[table]])


@dataclass(frozen=True)
class _Copied:
    """The rows of one run in each table, with the texts split at the run's id, its partition and times."""

    rows: dict[sa.Table, list[Row]]
    run_id: str
    key: str
    began: float
    ids: Iterator[int]

    def entered(self, key: str, run_id: str, began: float) -> dict[sa.Table, list[Row]]:
        """Return the rows of another run, of the partition `key`."""
        shift = began - self.began
        replaced = {self.run_id: run_id, self.key: key}
        made = {table: [self._moved(row, replaced, shift) for row in rows] for table, rows in self.rows.items()}
        events = {row.pop("was"): row.setdefault("id", next(self.ids)) for row in made[SqlEventLogStorageTable]}
        for row in made[AssetEventTagsTable]:
            row["event_id"] = events[row["event_id"]]
        for row in made[AssetCheckExecutionsTable]:
            for name in ("evaluation_event_storage_id", "materialization_event_storage_id"):
                row[name] = events.get(row[name])
        return made

    def _moved(self, row: Row, replaced: dict[str, str], shift: float) -> Row:
        return {name: _moved_value(value, replaced, shift) for name, value in row.items()}


def _moved_value(value: Any, replaced: dict[str, str], shift: float) -> Any:
    if isinstance(value, list):
        return "".join(
            repr(piece + shift) if isinstance(piece, float) else replaced.get(piece, piece) for piece in value
        )
    if isinstance(value, datetime):
        return datetime.fromtimestamp(value.replace(tzinfo=UTC).timestamp() + shift, UTC).replace(tzinfo=None)
    return value + shift if isinstance(value, float) else value


def _copied(instance: dg.DagsterInstance, run_id: str, key: str) -> _Copied:
    rows: dict[sa.Table, list[Row]] = {}
    with instance.event_log_storage.index_connection() as connection:  # type: ignore[attr-defined]
        events = list(_rows(connection, SqlEventLogStorageTable, SqlEventLogStorageTable.c.run_id == run_id))
        ids = [row["id"] for row in events]
        assets = {row["asset_key"] for row in events if row["asset_key"]}
        rows[SqlEventLogStorageTable] = events
        tags = AssetEventTagsTable.c.event_id.in_(ids)
        rows[AssetEventTagsTable] = list(_rows(connection, AssetEventTagsTable, tags))
        rows[AssetCheckExecutionsTable] = list(
            _rows(connection, AssetCheckExecutionsTable, AssetCheckExecutionsTable.c.run_id == run_id)
        )
        rows[AssetKeyTable] = list(_rows(connection, AssetKeyTable, AssetKeyTable.c.asset_key.in_(assets)))
    with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
        rows[RunsTable] = list(_rows(connection, RunsTable, RunsTable.c.run_id == run_id))
        rows[RunTagsTable] = list(_rows(connection, RunTagsTable, RunTagsTable.c.run_id == run_id))
    began = rows[RunsTable][0]["start_time"]
    for table, some in rows.items():
        for row in some:
            was = row.pop("id")
            if table is SqlEventLogStorageTable:
                row["was"] = was
            for name, value in row.items():
                if isinstance(value, str):
                    row[name] = _cut(value, run_id, key)
    return _Copied(rows, run_id, key, began, EVENT_IDS)


def _rows(connection: Any, table: sa.Table, condition: Any) -> Iterable[Row]:
    return (dict(row._mapping) for row in connection.execute(sa.select(table).where(condition).order_by(table.c.id)))


def _cut(text: str, run_id: str, key: str) -> list[str | float] | str:
    pattern = rf"({re.escape(run_id)}|(?<![\w.-]){re.escape(key)}(?![\w.-])|(?<=\"timestamp\": )\d{{10}}\.\d+)"
    pieces: list[str | float] = [
        float(piece) if re.fullmatch(r"\d{10}\.\d+", piece) else piece for piece in re.split(pattern, text)
    ]
    return pieces if len(pieces) > 1 else text
