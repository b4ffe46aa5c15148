"""Lists and details go once no file has them, and never while one gets them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import Table, func, select, text, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.pruning import referring_columns, sweep, unused_details, unused_lists
from pypi_assets.catalog.reads.stored_contents import store_lists, store_shared_details
from pypi_assets.catalog.tables import (
    distribution_data,
    metadata,
    module_roots,
    name_lists,
    required_names,
    shared_details,
)
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    """Two files that share a list of requirements, and have modules of their own."""
    small = small_catalog(tmp_path, database_url)
    for number in (1, 2):
        small.add(
            number, "demo", f"{number}", f"demo-{number}.tar.gz", modules=(f"m{number}",), requires_dist=("base",)
        )
    yield small
    small.catalog.close()


def count(catalog: Catalog, table: Table) -> int:
    with catalog.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def counts(catalog: Catalog) -> tuple[int, int, int]:
    return count(catalog, name_lists), count(catalog, module_roots), count(catalog, required_names)


def test_a_list_goes_with_what_finds_it_once_no_file_has_it(small: SmallCatalog) -> None:
    catalog = small.catalog
    assert counts(catalog) == (3, 2, 1)
    assert sweep(catalog, unused_lists()) == 0
    small.reprocess("demo-1.tar.gz", ("other",), ())
    assert counts(catalog) == (5, 3, 1)
    assert sweep(catalog, unused_lists(), dry_run=True) == 1
    assert sweep(catalog, unused_lists()) == 1  # the second file still requires base
    assert counts(catalog) == (4, 2, 1)
    small.reprocess("demo-2.tar.gz", ("other",), ())
    assert sweep(catalog, unused_lists()) == 2
    assert counts(catalog) == (2, 1, 0)


def test_details_go_once_no_file_has_them(small: SmallCatalog) -> None:
    catalog = small.catalog
    with catalog.write() as connection:
        kept, _ = store_shared_details(connection, [b'{"summary":"a"}', b'{"summary":"b"}']).values()
        connection.execute(update(distribution_data).values(shared_details_id=kept))
    assert sweep(catalog, unused_details()) == 1
    with catalog.read() as connection:
        assert connection.scalars(select(shared_details.c.id)).all() == [kept]


def test_a_list_that_a_file_is_getting_stays(tmp_path: Path, postgres_database_url: str) -> None:
    """A transaction that has found the list and refers to it later is not robbed of it, nor is pruning held up."""
    small = small_catalog(tmp_path, postgres_database_url)
    small.add(1, "demo", "1", "demo-1.tar.gz", modules=("m",))
    small.reprocess("demo-1.tar.gz", ("other",), None)
    with small.catalog.write() as connection:
        ids = store_lists(connection, [], [("m",)])
        assert sweep(small.catalog, unused_lists()) == 1  # the empty list of requirements alone
        connection.execute(update(distribution_data).values(modules_id=ids["m",]))
    assert sweep(small.catalog, unused_lists()) == 1  # the one that it had
    with small.catalog.read() as connection:
        assert connection.scalars(select(name_lists.c.id)).all() == [ids["m",]]
    small.catalog.close()


def test_who_wants_a_list_that_is_being_pruned_stores_it_again(tmp_path: Path, postgres_database_url: str) -> None:
    small = small_catalog(tmp_path, postgres_database_url)
    small.add(1, "demo", "1", "demo-1.tar.gz", modules=("m",), requires_dist=None)
    small.reprocess("demo-1.tar.gz", None, None)
    calls, sweeping, storing = 0, unused_lists(), Thread(target=small.reprocess, args=("demo-1.tar.gz", ("m",), None))

    def chosen(connection: object, rows: Sequence[object]) -> Sequence[int]:
        nonlocal calls
        calls += 1
        if calls == 2:  # the rows are locked
            storing.start()
            storing.join(0.5)
            assert storing.is_alive()  # it waits for this transaction
        return sweeping.chosen(connection, rows)  # type: ignore[arg-type]

    assert sweep(small.catalog, replace(sweeping, chosen=chosen)) == 1
    storing.join()
    assert counts(small.catalog) == (1, 1, 0)
    with small.catalog.read() as connection:
        assert connection.scalar(select(distribution_data.c.modules_id)) is not None
    small.catalog.close()


@pytest.mark.parametrize("table", [name_lists, shared_details], ids=lambda table: table.name)
def test_each_column_that_refers_to_what_is_pruned_has_an_index(table: Table) -> None:
    """Or else each deletion would read the other table whole."""
    found = referring_columns(table)
    assert found
    for column in found:
        leading = {next(iter(index.columns)).name for index in column.table.indexes}
        assert column.name in leading | {next(iter(column.table.primary_key.columns)).name}, column


def test_every_reference_is_found() -> None:
    names = {f"{column.table.name}.{column.name}" for column in referring_columns(name_lists)}
    assert names == {
        "distribution_data.requires_dist_id",
        "distribution_data.modules_id",
        "module_roots.list_id",
        "required_names.list_id",
    }
    assert metadata.tables["distribution_data"] is distribution_data


def test_the_look_for_what_nothing_has_reads_no_table_whole(tmp_path: Path) -> None:
    catalog = small_catalog(tmp_path).catalog
    conditions = [~select(1).where(column == name_lists.c.id).exists() for column in referring_columns(name_lists)]
    query = select(name_lists.c.id).where(name_lists.c.id.in_([1, 2]), *conditions)
    with catalog.engine.connect() as connection:
        compiled = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = [str(row[3]) for row in connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"))]
    assert [line for line in plan if line.startswith("SCAN")] == []
    catalog.close()
