"""Which errors can disappear by themselves."""

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from pypi_assets.catalog.coordination.leases import LeaseTakenError
from pypi_assets.catalog.database import CatalogError
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.storage.store import StorageError
from pypi_assets.upkeep.transient import is_transient

TRANSIENT = [
    TransientError("down", "url"),
    StorageError("down"),
    LeaseTakenError("taken"),
    OperationalError("SELECT 1", {}, Exception("gone")),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: type(error).__name__)
def test_what_others_may_repair_is_transient(error: Exception):
    assert is_transient(error)
    wrapped = CatalogError("that failed")
    wrapped.__cause__ = error
    assert is_transient(wrapped)


@pytest.mark.parametrize(
    "error",
    [CatalogError("gone backwards"), RefusedError("403", "url"), IntegrityError("INSERT", {}, Exception()), KeyError()],
    ids=lambda error: type(error).__name__,
)
def test_what_needs_a_person_is_not(error: Exception):
    assert not is_transient(error)
