"""The lock order is documented, and breaches of it and requests within transactions are reported."""

import re
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, update
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import HTTPError

from pypi_assets.catalog.database import Catalog, insert_missing, open_catalog
from pypi_assets.catalog.tables import catalog_state, projects, visit_queue, visit_statistics
from pypi_assets_tests.lock_order import LOCK_ORDER, NEW_PROJECTS, LockOrder, locked_tables, owned_tables
from pypi_assets_tests.waiting_transactions import WaitingTransactions

DESIGN = Path(__file__).parents[1] / "docs" / "design.md"
STATE = select(catalog_state).with_for_update()
QUEUED = select(visit_queue).where(visit_queue.c.project_id == 1)


def test_design_lists_the_same_lock_order():
    section = DESIGN.read_text(encoding="utf-8").partition("### The order of locks")[2].partition("\n#")[0]
    listed = re.findall(r"^\d+\. (.+)$", section, re.MULTILINE)
    assert [name for line in listed for name in re.findall(r"`([^`]+)`", line)] == [
        name.removesuffix(", new ones") for name in LOCK_ORDER
    ]


@pytest.mark.parametrize(
    ("statement", "locked"),
    [
        (STATE, ["catalog_state"]),
        (select(catalog_state), []),
        (QUEUED.with_for_update(skip_locked=True), []),
        (QUEUED.join(projects, projects.c.id == 1).with_for_update(of=visit_queue), ["visit_queue"]),
        (select(QUEUED.with_for_update().subquery()), ["visit_queue"]),
        (update(projects).values(status="x"), ["projects"]),
        (insert(projects).values(name="x"), []),
    ],
)
def test_locked_tables_of_a_statement(statement, locked: list[str]):
    assert locked_tables(statement) == locked


def test_owned_tables_of_a_statement():
    assert owned_tables(insert(projects).values(name="x")) == {"projects"}
    assert owned_tables(QUEUED.with_for_update(skip_locked=True)) == {"visit_queue"}
    assert owned_tables(QUEUED.with_for_update()) == owned_tables(QUEUED) == set()


def work(connection: Connection, *steps: str) -> None:
    for step in steps:
        if step == NEW_PROJECTS:
            row = {"normalized": "a", "name": "a", "bucket": 0, "shard": 0, "known_since": 0}
            insert_missing(connection, projects, [row])
        elif step == "catalog_state":
            connection.execute(STATE)
        else:
            table = {"projects": projects, "visit_statistics": visit_statistics}[step]
            connection.execute(select(table).with_for_update())


@pytest.mark.parametrize(
    ("steps", "breaches"),
    [
        ([NEW_PROJECTS, "projects", "catalog_state", "visit_statistics", "projects"], 0),
        (["catalog_state", "projects"], 1),
        (["catalog_state", NEW_PROJECTS], 1),
        (["visit_statistics", "catalog_state", "projects"], 2),
    ],
)
def test_transaction_in_wrong_order_is_reported(
    postgres_database_url: str, lock_order: LockOrder, steps: list[str], breaches: int
):
    catalog = open_catalog(postgres_database_url)
    catalog.transact(lambda connection: work(connection, *steps))
    found = [breach.splitlines()[0] for breach in lock_order.breaches]
    lock_order.breaches.clear()
    assert len(found) == breaches
    assert all("LOCK_ORDER" in breach for breach in found)
    catalog.close()


def test_only_transactions_of_transact_are_watched(catalog: Catalog, lock_order: LockOrder):
    with catalog.write() as connection:
        work(connection, "catalog_state", "projects")
    assert not lock_order.breaches


def request() -> None:
    with HTTPConnectionPool("127.0.0.1", 9, timeout=1) as pool, pytest.raises(HTTPError):
        pool.urlopen("GET", "/simple/", retries=False)


def test_request_within_a_transaction_is_reported(catalog: Catalog, waiting_transactions: WaitingTransactions):
    with catalog.read():
        request()
    with catalog.write():
        thread = threading.Thread(target=request)
        thread.start()
        thread.join()
    request()
    [found] = waiting_transactions.requests
    waiting_transactions.forget()
    assert found.startswith("GET /simple/ ")


def test_rolled_back_transaction_is_over(catalog: Catalog, waiting_transactions: WaitingTransactions):
    with pytest.raises(ZeroDivisionError), catalog.write():
        raise ZeroDivisionError
    request()
    assert not waiting_transactions.requests
