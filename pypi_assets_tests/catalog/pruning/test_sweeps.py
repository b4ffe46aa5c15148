"""A sweep looks at a bounded number of rows, some in each transaction, and the next one goes on where it ended."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, Row, event, insert, select

from pypi_assets.catalog import pruning
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.pruning import Sweep, sweep
from pypi_assets.catalog.tables import shared_details

AT_A_TIME = 4


@pytest.fixture(autouse=True)
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


def test_it_goes_on_where_it_ended_and_begins_again_after_the_last_row(catalog: Catalog) -> None:
    add(catalog, *range(1, 21))
    assert sweep(catalog, EVEN, most=8) == 4
    assert left(catalog) == [1, 3, 5, 7, *range(9, 21)]
    add(catalog, 2, 22)
    assert sweep(catalog, EVEN, most=8) == 4
    assert left(catalog) == [1, 2, 3, 5, 7, 9, 11, 13, 15, *range(17, 21), 22]  # 2 came behind it
    assert sweep(catalog, EVEN) == 3
    assert sweep(catalog, EVEN) == 1
    assert left(catalog) == list(range(1, 21, 2))


def test_a_dry_run_counts_and_changes_nothing(catalog: Catalog) -> None:
    add(catalog, *range(1, 10))
    for _ in range(2):
        assert sweep(catalog, EVEN, dry_run=True) == 4
    assert left(catalog) == list(range(1, 10))


def test_it_ends_at_the_first_rows_of_which_none_is_old(catalog: Catalog) -> None:
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


def test_a_kill_between_two_transactions_loses_nothing(catalog: Catalog) -> None:
    """Each transaction deletes and stores how far it came, so the next run repeats at most one that was rolled back."""
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


def test_a_transaction_takes_as_many_statements_however_long_the_table_is(catalog: Catalog) -> None:
    counts, statements = [], list[str]()
    event.listen(catalog.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    for size in (100, 400):
        add(catalog, *range(len(left(catalog)) * 1_000 + 1, len(left(catalog)) * 1_000 + 1 + size))
        statements.clear()
        sweep(catalog, Sweep(shared_details, lambda _connection, _rows: ()), most=20)
        counts.append(len(statements))
    assert counts[0] == counts[1]
