"""The table of events has each stored event once, also if a crawl of the history stores earlier ones."""

from operator import itemgetter

import pytest
from sqlalchemy import insert, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_registry import open_full_dump
from pypi_assets.catalog.tables import catalog_state, events, projects
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.iceberg import event_files
from pypi_assets.iceberg.snapshots import data_files
from pypi_assets.iceberg.table_catalog import opened_tables
from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.iceberg.tables import OPTIONS, rows_of, updated
from pypi_assets_tests.small_catalog import SmallCatalog


def add_events(catalog: Catalog, since: int, *serials: int) -> None:
    with catalog.write() as connection:
        project = connection.scalar(select(projects.c.id).where(projects.c.normalized == "demo-pkg"))
        for serial in serials:
            row = {"serial": serial, "project_id": project, "name": "Demo.Pkg", "action": f"action {serial}", "kind": 0}
            connection.execute(insert(events).values(**row, version=None, timestamp=1_700_000_000 + serial))
        connection.execute(update(catalog_state).values(events_since=since, events_through=10_000))


def found(catalog: Catalog, storage: Storage, tag: str | None = None) -> list[int]:
    return sorted(row["serial"] for row in rows_of(catalog, storage, "events", tag))


def file_sizes(catalog: Catalog, storage: Storage) -> list[int]:
    with opened_tables(catalog, storage, OPTIONS) as tables:
        table = tables.get("events")
        files = data_files(table, table.current_snapshot())
        return sorted(file.record_count for ones in files.values() for file in ones)


def test_events_are_added_by_range_and_small_files_joined(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_files, "ROWS_OF_A_FILE", 4)
    add_events(small.catalog, 80, 90, 95, 100, 120)
    updated(small.catalog, storage)
    assert found(small.catalog, storage) == [90, 95, 100]
    first = min(rows_of(small.catalog, storage, "events"), key=itemgetter("serial"))
    assert {name: first[name] for name in ("project", "normalized", "version", "action")} == {
        "project": "Demo.Pkg",
        "normalized": "demo-pkg",
        "version": None,
        "action": "action 90",
    }
    assert first["at"].timestamp() == 1_700_000_090
    add_range(small, storage, 100)
    updated(small.catalog, storage)
    assert found(small.catalog, storage) == [90, 95, 100, 120]
    assert file_sizes(small.catalog, storage) == [4]
    add_events(small.catalog, 80, 160)
    add_range(small, storage, 150)
    updated(small.catalog, storage)
    assert file_sizes(small.catalog, storage) == [1, 4]
    assert found(small.catalog, storage, "serial-100") == [90, 95, 100]


def test_earlier_events_are_added_with_the_next_range(small: SmallCatalog, storage: Storage) -> None:
    add_events(small.catalog, 80, 90)
    updated(small.catalog, storage)
    add_events(small.catalog, 0, 10, 80)
    add_range(small, storage, 100)
    updated(small.catalog, storage)
    assert found(small.catalog, storage) == [10, 80, 90]
    add_range(small, storage, 150)
    updated(small.catalog, storage)
    assert found(small.catalog, storage) == [10, 80, 90]


@pytest.mark.parametrize("is_older", [True, False])
def test_files_that_begin_again_leave_each_event_once(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch, is_older: bool
) -> None:
    monkeypatch.setattr(event_files, "ROWS_OF_A_FILE", 2)
    add_events(small.catalog, 80, 90, 95, 100, 120, 130, 160)
    open_full_dump(small.catalog, 4, since=small.catalog.clock())
    for start in (100, 150):
        add_range(small, storage, start)
        updated(small.catalog, storage)
    if is_older:
        assert full_dump(small.catalog, storage, 4).serials.end == 100
    else:
        with opened_tables(small.catalog, storage, OPTIONS) as tables:
            tables.drop("files")
    assert updated(small.catalog, storage).added["events"] == 3
    assert found(small.catalog, storage) == [90, 95, 100, 120, 130, 160]
    assert found(small.catalog, storage, "serial-100") == [90, 95, 100]
    assert found(small.catalog, storage, "serial-150") == [90, 95, 100, 120, 130]
