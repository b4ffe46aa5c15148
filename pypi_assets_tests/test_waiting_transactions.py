"""A request that is sent within a transaction is found, in the thread that has it open."""

import threading

import pytest
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import HTTPError

from pypi_assets.catalog.database import Catalog
from pypi_assets_tests.waiting_transactions import WaitingTransactions


def request() -> None:
    with HTTPConnectionPool("127.0.0.1", 9, timeout=1) as pool, pytest.raises(HTTPError):
        pool.urlopen("GET", "/simple/", retries=False)


def test_a_request_within_a_transaction_is_found(catalog: Catalog, waiting_transactions: WaitingTransactions):
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


def test_a_transaction_that_was_rolled_back_is_over(catalog: Catalog, waiting_transactions: WaitingTransactions):
    with pytest.raises(ZeroDivisionError), catalog.write():
        raise ZeroDivisionError
    request()
    assert not waiting_transactions.requests
