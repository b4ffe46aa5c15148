"""Old snapshots and the files that only they name are deleted after some time, and nothing else is."""

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from pypi_assets.catalog.coordination.leases import lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import events, projects
from pypi_assets.iceberg.snapshots import serial_of, tags_of
from pypi_assets.iceberg.table_catalog import opened_tables
from pypi_assets.iceberg.table_columns import FILES, TABLES
from pypi_assets.storage.store import Storage
from pypi_assets.storage.sweeping import DeletionReason
from pypi_assets.upkeep.deletion import DeletionChain, Kept
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.iceberg.tables import OPTIONS, rows_of, updated
from pypi_assets_tests.small_catalog import SmallCatalog

HOUR_S = 3600.0
NOW = datetime.now(UTC)
"""The time of the newest events. It stays in its day if the tests last beyond midnight."""


def add_event(catalog: Catalog, serial: int, days_ago: int) -> None:
    at = NOW - timedelta(days=days_ago)
    with catalog.write() as connection:
        project = connection.scalar(select(projects.c.id).limit(1))
        row = {"serial": serial, "project_id": project, "name": "Demo.Pkg", "action": "create", "kind": 0}
        connection.execute(insert(events).values(**row, timestamp=int(at.timestamp())))


@pytest.fixture
def tables(small: SmallCatalog, storage: Storage) -> None:
    """Make snapshots of the serials 100, 150 and 200 of two days."""
    add_event(small.catalog, 90, days_ago=3)
    updated(small.catalog, storage)
    for start, days_ago in ((100, 3), (150, 0)):
        add_event(small.catalog, start + 40, days_ago)
        add_range(small, storage, start)
        updated(small.catalog, storage)


def chain(catalog: Catalog, storage: Storage, hours: float, days: float) -> DeletionChain:
    """Return the chain at a time `hours` from now, which keeps snapshots of `days`."""
    later = replace(catalog, clock=lambda: time.time() + hours * HOUR_S)
    kept = Kept(grace_s=24 * HOUR_S, versions=1, exports=1, partition_days=1, table_days=days, tables=OPTIONS)
    return DeletionChain(later, storage, kept)


def state(catalog: Catalog, storage: Storage) -> tuple[list[int | None], set[str]]:
    with opened_tables(catalog, storage, OPTIONS) as opened:
        table = opened.get(FILES)
        return [serial_of(snapshot) for snapshot in table.snapshots()], set(tags_of(table))


@pytest.mark.usefixtures("tables")
def test_snapshots_expire_after_the_grace_time_except_the_last_of_each_day(
    small: SmallCatalog, storage: Storage
) -> None:
    days = [(NOW - timedelta(days=days)).date().isoformat() for days in (3, 0)]
    everything = [100, 150, 200], {"serial-100", "serial-150", "serial-200", *days}
    assert state(small.catalog, storage) == everything
    assert list(chain(small.catalog, storage, 23, 30).clean_tables()) == []
    assert state(small.catalog, storage) == everything
    would = list(chain(small.catalog, storage, 25, 30).clean_tables(dry_run=True))
    assert state(small.catalog, storage) == everything
    done = list(chain(small.catalog, storage, 25, 30).clean_tables())
    assert [one.path for one in done] == [f"tables/pypi/{name}" for name in TABLES]
    assert {one.reason for one in done} == {DeletionReason.SUPERSEDED}
    assert [(one.files, one.size) for one in would] == [(one.files, one.size) for one in done]
    assert state(small.catalog, storage) == ([150, 200], everything[1] - {"serial-100"})
    for name in TABLES:
        for tag in ("serial-150", "serial-200"):
            rows_of(small.catalog, storage, name, tag)
    list(chain(small.catalog, storage, 25, 1).clean_tables())
    assert state(small.catalog, storage) == ([200], {"serial-200", NOW.date().isoformat()})
    assert len(rows_of(small.catalog, storage, FILES)) == 5
    add_range(small, storage, 200)
    assert updated(small.catalog, storage).added == dict.fromkeys(TABLES, 1)


@pytest.mark.usefixtures("tables")
def test_files_of_a_stopped_run_are_deleted_after_a_day_unless_a_lease_is_older(
    small: SmallCatalog, storage: Storage
) -> None:
    orphan = storage.local_path("tables/pypi/files/data/bucket=0/orphan.parquet")
    assert isinstance(orphan, Path)
    orphan.write_bytes(b"half")
    two_days_ago = time.time() - 48 * HOUR_S
    with lease(replace(small.catalog, clock=lambda: two_days_ago - HOUR_S), "publish tables", 100 * HOUR_S):
        os.utime(orphan, (two_days_ago, two_days_ago))
        assert list(chain(small.catalog, storage, 0, 30).clean_tables()) == []
    (removal,) = chain(small.catalog, storage, 0, 30).clean_tables()
    assert (removal.path, removal.files, removal.size) == ("tables/pypi/files", 1, 4)
    assert not orphan.exists()
    assert len(rows_of(small.catalog, storage, FILES)) == 5


@pytest.mark.usefixtures("tables")
def test_table_that_the_catalog_does_not_name_is_kept(small: SmallCatalog, storage: Storage) -> None:
    with opened_tables(small.catalog, storage, OPTIONS) as opened:
        for name in TABLES:
            opened.drop(name)
    before = {stored.path for stored in storage.list("tables")}
    assert list(chain(small.catalog, storage, 1_000, 0).clean_tables()) == []
    assert {stored.path for stored in storage.list("tables")} == before
