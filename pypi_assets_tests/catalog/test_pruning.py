"""A sweep inspects a bounded number of rows in several transactions, and the next sweep continues after it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import Connection, Row, Table, event, func, insert, select, text, update

from pypi_assets.catalog import pruning
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import CatalogProject, find_project
from pypi_assets.catalog.pruning import (
    Sweep,
    forget_dumps,
    forget_versions,
    old_attempts,
    old_visits,
    referring_columns,
    sweep,
    unused_details,
    unused_lists,
)
from pypi_assets.catalog.publications.allocated_names import (
    UnknownVersionError,
    allocate_version,
    allocated_versions,
    attempts,
    begin_build,
)
from pypi_assets.catalog.publications.dump_registry import (
    DumpDroppedError,
    begin_commit,
    mark_committed,
    open_range_dump,
    require_not_dropped,
)
from pypi_assets.catalog.reads.stored_contents import store_lists, store_shared_details
from pypi_assets.catalog.reports.catalog_status import work_done
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.reports.past_visits import compare_visits, deleted_visits, past_visits
from pypi_assets.catalog.tables import (
    audits,
    distribution_data,
    dump_files,
    dumps,
    full_crawls,
    metadata,
    module_roots,
    name_lists,
    read_attempts,
    required_names,
    shared_details,
    visit_statuses,
)
from pypi_assets.dumps.compaction import compact
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog
from pypi_assets_tests.upkeep.simulated_upkeep import Upkeep

AT_A_TIME = 4


@pytest.fixture
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "ROWS_AT_A_TIME", AT_A_TIME)


def add(catalog: Catalog, *ids: int) -> None:
    with catalog.write() as connection:
        rows = [{"id": id_, "sha256": f"{id_}", "content": b"{}"} for id_ in ids]
        connection.execute(insert(shared_details), rows)


def left(catalog: Catalog) -> list[int]:
    with catalog.read() as connection:
        return list(connection.scalars(select(shared_details.c.id).order_by(shared_details.c.id)))


def even(_connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
    return [row.id for row in rows if row.id % 2 == 0]


EVEN = Sweep(shared_details, even)


@pytest.mark.usefixtures("few_at_a_time")
def test_sweep_continues_where_it_ended_and_restarts_after_the_last_row(catalog: Catalog) -> None:
    add(catalog, *range(1, 21))
    assert sweep(catalog, EVEN, most=8) == 4
    assert left(catalog) == [1, 3, 5, 7, *range(9, 21)]
    add(catalog, 2, 22)
    assert sweep(catalog, EVEN, most=8) == 4
    assert left(catalog) == [1, 2, 3, 5, 7, 9, 11, 13, 15, *range(17, 21), 22]  # row 2 was added behind the sweep
    assert sweep(catalog, EVEN) == 3
    assert sweep(catalog, EVEN) == 1
    assert left(catalog) == list(range(1, 21, 2))


@pytest.mark.usefixtures("few_at_a_time")
def test_dry_run_counts_and_changes_nothing(catalog: Catalog) -> None:
    add(catalog, *range(1, 10))
    for _ in range(2):
        assert sweep(catalog, EVEN, dry_run=True) == 4
    assert left(catalog) == list(range(1, 10))


@pytest.mark.usefixtures("few_at_a_time")
def test_sweep_ends_at_the_first_batch_without_old_rows(catalog: Catalog) -> None:
    add(catalog, *range(1, 101))
    looked_at: list[int] = []

    def chosen(_connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        looked_at.extend(row.id for row in rows)
        return [row.id for row in rows if row.id < 7]

    for expected in (6, 0):
        looked_at.clear()
        assert sweep(catalog, Sweep(shared_details, chosen, is_old=lambda row: row.id < 7)) == expected
        assert len(looked_at) <= 3 * AT_A_TIME
    assert left(catalog) == list(range(7, 101))


@pytest.mark.usefixtures("few_at_a_time")
def test_kill_between_two_transactions_loses_nothing(catalog: Catalog) -> None:
    """Each transaction deletes rows and stores its position. The next run repeats at most the one rolled back."""
    add(catalog, *range(1, 21))
    begun = 0

    def killed(_connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        nonlocal begun
        begun += 1
        if begun == 3:
            raise KeyboardInterrupt
        return even(_connection, rows)

    with pytest.raises(KeyboardInterrupt):
        sweep(catalog, Sweep(shared_details, killed))
    assert left(catalog) == [1, 3, 5, 7, *range(9, 21)]
    assert sweep(catalog, EVEN, most=AT_A_TIME) == 2
    assert left(catalog) == [1, 3, 5, 7, 9, 11, *range(13, 21)]


@pytest.mark.usefixtures("few_at_a_time")
def test_statements_per_transaction_do_not_grow_with_the_table(catalog: Catalog) -> None:
    counts, statements = [], list[str]()
    event.listen(catalog.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    for size in (100, 400):
        add(catalog, *range(len(left(catalog)) * 1_000 + 1, len(left(catalog)) * 1_000 + 1 + size))
        statements.clear()
        sweep(catalog, Sweep(shared_details, lambda _connection, _rows: ()), most=20)
        counts.append(len(statements))
    assert counts[0] == counts[1]


DAY = 86_400.0


@pytest.fixture(autouse=True)
def no_first_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "FIRST_VISITS_KEPT", 0)


@pytest.fixture
def small(database_url: str, tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path, database_url)
    for number, project in enumerate(("often", "once", "crawled"), start=1):
        small.add(number, project, "1", f"{project}-1.tar.gz")
    yield small
    small.catalog.close()


def visit(catalog: Catalog, project: CatalogProject, *days: int, workload: str = "range:1-2") -> None:
    for day in days:
        with catalog.write() as connection:
            [visit_id] = begin_visits(connection, [project.id], "range", workload, day * DAY).values()
            row = {"visit_id": visit_id, "at": day * DAY, "status": "failed", "text": "no"}
            connection.execute(insert(visit_statuses), [row])


def project(catalog: Catalog, name: str) -> CatalogProject:
    with catalog.read() as connection:
        found = find_project(connection, name)
    assert found is not None
    return found


def numbers(catalog: Catalog, name: str) -> list[int]:
    with catalog.read() as connection:
        return [one.visit for one in past_visits(connection, project(catalog, name))]


def test_old_visits_and_statuses_are_deleted_except_the_newest_per_project(small: SmallCatalog) -> None:
    catalog = small.catalog
    visit(catalog, project(catalog, "often"), *range(1, 11))
    visit(catalog, project(catalog, "once"), 1)
    assert sweep(catalog, old_visits(8 * DAY), dry_run=True) == 7
    assert sweep(catalog, old_visits(8 * DAY)) == 7
    assert (numbers(catalog, "often"), numbers(catalog, "once")) == ([8, 9, 10], [1])
    with catalog.read() as connection:
        assert len(connection.scalars(select(visit_statuses.c.id)).all()) == 2 * 4
        assert work_done(connection)[0] == 11  # a counter of metrics never falls
    assert deleted_visits(numbers(catalog, "often")) == 7
    assert sweep(catalog, old_visits(100 * DAY)) == 2
    assert numbers(catalog, "often") == [10]
    visit(catalog, project(catalog, "often"), 200)
    assert numbers(catalog, "often") == [10, 11]  # numbering continues after the deleted visits


def test_deleted_visit_is_reported_as_deleted(small: SmallCatalog) -> None:
    catalog = small.catalog
    often = project(catalog, "often")
    visit(catalog, often, 1, 2, 3)
    sweep(catalog, old_visits(3 * DAY))
    with catalog.read() as connection:
        with pytest.raises(CatalogError, match=naming("often", 1)):
            compare_visits(connection, often, 1, 3)
        with pytest.raises(CatalogError, match=naming("often", 4)):
            compare_visits(connection, often, 4, 3)


def test_visits_needed_by_open_crawl_or_audit_stay(small: SmallCatalog) -> None:
    catalog = small.catalog
    with catalog.write() as connection:
        crawl = insert(full_crawls).values(id=7, serial=1, selection="[]", opened_at=0.0, open=1)
        connection.execute(crawl)
        connection.execute(insert(audits).values(id=8, share_percent=1.0, opened_at=0.0, open=1))
    often = project(catalog, "often")
    for day, workload in enumerate(("crawl:7", "audit:8", "crawl:77", "range:1-2")):
        visit(catalog, often, day, workload=workload)
    assert sweep(catalog, old_visits(100 * DAY)) == 1
    assert numbers(catalog, "often") == [1, 2, 4]
    with catalog.write() as connection:
        connection.execute(update(full_crawls).values(open=None, completed_at=1.0))
        connection.execute(update(audits).values(open=None, completed_at=1.0))
    assert sweep(catalog, old_visits(100 * DAY)) == 2


def test_first_visits_stay(small: SmallCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "FIRST_VISITS_KEPT", 2)
    visit(small.catalog, project(small.catalog, "often"), *range(5))
    assert sweep(small.catalog, old_visits(100 * DAY)) == 2
    assert numbers(small.catalog, "often") == [1, 2, 5]


def attempt(catalog: Catalog, filename_id: int, days: Sequence[float | None]) -> None:
    rows = [
        {
            "distribution_id": filename_id,
            "attempt": number,
            "worker": "w",
            "started_at": None if day is None else day * DAY,
            "seconds": 1.0,
            "outcome": "pending",
            "bytes_fetched": 0,
            "requests": 1,
        }
        for number, day in enumerate(days, start=1)
    ]
    with catalog.write() as connection:
        connection.execute(insert(read_attempts), rows)


def test_old_attempts_are_deleted_except_for_unread_files(small: SmallCatalog) -> None:
    catalog = small.catalog
    with catalog.write() as connection:
        read, failed, *_ = connection.scalars(
            select(distribution_data.c.distribution_id).order_by(distribution_data.c.distribution_id)
        )
        connection.execute(
            update(distribution_data)
            .where(distribution_data.c.distribution_id == failed)
            .values(outcome="gave up", error_kind="transient")
        )
    attempt(catalog, read, [1, None, 2, 50, None])
    attempt(catalog, failed, [1, 2, 50])
    with catalog.read() as connection:
        before = list(list_failures(connection, 5))
    assert [one.attempts for one in before] == [3]
    assert sweep(catalog, old_attempts(40 * DAY)) == 3
    with catalog.read() as connection:
        left = connection.execute(select(read_attempts.c.distribution_id, read_attempts.c.started_at)).all()
        assert [row.started_at for row in left if row.distribution_id == read] == [50 * DAY, None]
        assert list(list_failures(connection, 5)) == before
        assert work_done(connection)[1] == 8


def test_recent_attempt_of_dead_worker_at_batch_start_stays(
    small: SmallCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "ROWS_AT_A_TIME", 3)
    with small.catalog.read() as connection:
        read = connection.scalars(select(distribution_data.c.distribution_id)).first()
    attempt(small.catalog, read or 0, [1, 50, 51, None, 52, 53])
    assert sweep(small.catalog, old_attempts(40 * DAY)) == 1
    attempt(small.catalog, read or 0, [54])
    assert sweep(small.catalog, old_attempts(52.5 * DAY)) == 4


def test_newest_attempt_stays(small: SmallCatalog) -> None:
    with small.catalog.read() as connection:
        read = connection.scalars(select(distribution_data.c.distribution_id)).first()
    attempt(small.catalog, read or 0, [1, 2])
    assert sweep(small.catalog, old_attempts(40 * DAY)) == 1
    with small.catalog.read() as connection:
        assert work_done(connection)[1] == 2


@pytest.fixture
def reading(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    """Yield a catalog of two files that share a list of requirements and have different modules."""
    reading = small_catalog(tmp_path, database_url)
    for number in (1, 2):
        reading.add(
            number, "demo", f"{number}", f"demo-{number}.tar.gz", modules=(f"m{number}",), requires_dist=("base",)
        )
    yield reading
    reading.catalog.close()


def count(catalog: Catalog, table: Table) -> int:
    with catalog.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def counts(catalog: Catalog) -> tuple[int, int, int]:
    return count(catalog, name_lists), count(catalog, module_roots), count(catalog, required_names)


def test_unreferenced_list_is_deleted_with_its_search_rows(reading: SmallCatalog) -> None:
    catalog = reading.catalog
    assert counts(catalog) == (3, 2, 1)
    assert sweep(catalog, unused_lists()) == 0
    reading.reprocess("demo-1.tar.gz", ("other",), ())
    assert counts(catalog) == (5, 3, 1)
    assert sweep(catalog, unused_lists(), dry_run=True) == 1
    assert sweep(catalog, unused_lists()) == 1  # the second file still requires base
    assert counts(catalog) == (4, 2, 1)
    reading.reprocess("demo-2.tar.gz", ("other",), ())
    assert sweep(catalog, unused_lists()) == 2
    assert counts(catalog) == (2, 1, 0)


def test_unreferenced_details_are_deleted(reading: SmallCatalog) -> None:
    catalog = reading.catalog
    with catalog.write() as connection:
        kept, _ = store_shared_details(connection, [b'{"summary":"a"}', b'{"summary":"b"}']).values()
        connection.execute(update(distribution_data).values(shared_details_id=kept))
    assert sweep(catalog, unused_details()) == 1
    with catalog.read() as connection:
        assert connection.scalars(select(shared_details.c.id)).all() == [kept]


def test_list_about_to_be_referenced_stays(tmp_path: Path, postgres_database_url: str) -> None:
    """A transaction that found the list and refers to it later must not lose it, and pruning must not wait."""
    reading = small_catalog(tmp_path, postgres_database_url)
    reading.add(1, "demo", "1", "demo-1.tar.gz", modules=("m",))
    reading.reprocess("demo-1.tar.gz", ("other",), None)
    with reading.catalog.write() as connection:
        ids = store_lists(connection, [], [("m",)])
        assert sweep(reading.catalog, unused_lists()) == 1  # only the empty list of requirements
        connection.execute(update(distribution_data).values(modules_id=ids["m",]))
    assert sweep(reading.catalog, unused_lists()) == 1  # the previous list of the file
    with reading.catalog.read() as connection:
        assert connection.scalars(select(name_lists.c.id)).all() == [ids["m",]]
    reading.catalog.close()


def test_list_being_pruned_is_stored_again_by_a_writer(tmp_path: Path, postgres_database_url: str) -> None:
    reading = small_catalog(tmp_path, postgres_database_url)
    reading.add(1, "demo", "1", "demo-1.tar.gz", modules=("m",), requires_dist=None)
    reading.reprocess("demo-1.tar.gz", None, None)
    calls, sweeping, storing = 0, unused_lists(), Thread(target=reading.reprocess, args=("demo-1.tar.gz", ("m",), None))

    def chosen(connection: object, rows: Sequence[object]) -> Sequence[int]:
        nonlocal calls
        calls += 1
        if calls == 2:  # the rows are locked
            storing.start()
            storing.join(0.5)
            assert storing.is_alive()  # it waits for this transaction
        return sweeping.chosen(connection, rows)  # type: ignore[arg-type]

    assert sweep(reading.catalog, replace(sweeping, chosen=chosen)) == 1
    storing.join()
    assert counts(reading.catalog) == (1, 1, 0)
    with reading.catalog.read() as connection:
        assert connection.scalar(select(distribution_data.c.modules_id)) is not None
    reading.catalog.close()


@pytest.mark.parametrize("table", [name_lists, shared_details], ids=lambda table: table.name)
def test_each_column_referring_to_a_pruned_table_has_an_index(table: Table) -> None:
    """Otherwise each deletion would scan the whole referring table."""
    found = referring_columns(table)
    assert found
    for column in found:
        leading = {next(iter(index.columns)).name for index in column.table.indexes}
        assert column.name in leading | {next(iter(column.table.primary_key.columns)).name}, column


def test_all_references_are_found() -> None:
    names = {f"{column.table.name}.{column.name}" for column in referring_columns(name_lists)}
    assert names == {
        "distribution_data.requires_dist_id",
        "distribution_data.modules_id",
        "module_roots.list_id",
        "required_names.list_id",
    }
    assert metadata.tables["distribution_data"] is distribution_data


def test_search_for_unreferenced_rows_scans_no_whole_table(tmp_path: Path) -> None:
    catalog = small_catalog(tmp_path).catalog
    conditions = [~select(1).where(column == name_lists.c.id).exists() for column in referring_columns(name_lists)]
    query = select(name_lists.c.id).where(name_lists.c.id.in_([1, 2]), *conditions)
    with catalog.engine.connect() as connection:
        compiled = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = [str(row[3]) for row in connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"))]
    assert [line for line in plan if line.startswith("SCAN")] == []
    catalog.close()


DAY_HOURS = 24


def count_rows(upkeep: Upkeep) -> tuple[int, int]:
    with upkeep.catalog.read() as connection:
        counts = (connection.scalar(select(func.count()).select_from(table)) for table in (dumps, dump_files))
        return next(counts) or 0, next(counts) or 0


def test_dropped_dumps_are_forgotten_and_their_names_stay_reserved(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "NAMES_AT_A_TIME", 2)
    catalog, storage = upkeep.catalog, upkeep.storage
    for _ in range(5):
        upkeep.dump_range()
    asleep = open_range_dump(catalog, SerialRange(3, 6))
    list(compact(catalog, storage, growth=1))
    upkeep.wait(25)
    upkeep.clean()
    upkeep.dump_range()
    assert count_rows(upkeep) == (9, 8)
    assert forget_dumps(catalog, catalog.clock() - 24 * 3600, ["6-9"]) == 5  # the files of dump 6-9 still exist
    assert count_rows(upkeep) == (4, 4)
    assert forget_dumps(catalog, catalog.clock() - 24 * 3600, []) == 1
    assert forget_dumps(catalog, catalog.clock(), []) == 0  # no other dump is dropped
    assert cover(catalog).directories == ("0-3", "3-18", "18-21")
    for step in (require_not_dropped, mark_committed, begin_commit):
        with pytest.raises(DumpDroppedError):
            step(catalog, asleep)
    again = [write_range(catalog, storage, serials, again=True) for serials in (SerialRange(3, 6), SerialRange(6, 9))]
    assert not {entry.directory for entry in again} & {"3-6", "3-6.2", "6-9"}
    assert write_range(catalog, storage, SerialRange(18, 21), again=True).directory == "18-21.2"
    assert upkeep.dump_range() == "21-24"
    upkeep.assert_whole()


def test_old_versions_are_forgotten_except_newest_and_with_files(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "NAMES_AT_A_TIME", 2)
    catalog = upkeep.catalog
    for number in range(1, 7):
        assert allocate_version(catalog, 3) == number
        for dataset in ("modules", "depgraph"):
            begin_build(catalog, dataset, number)
    assert forget_versions(catalog, catalog.clock() - 3600, []) == 0
    upkeep.wait(2)
    assert forget_versions(catalog, catalog.clock() - 3600, [("depgraph", "00002")]) == 4
    assert [version.version for version in allocated_versions(catalog)] == [2, 6]
    assert set(attempts(catalog, "modules")) == {"00002", "00006"}
    with pytest.raises(UnknownVersionError):
        begin_build(catalog, "modules", 1)
    assert forget_versions(catalog, catalog.clock(), []) == 1
    assert allocate_version(catalog, 3) == 7
