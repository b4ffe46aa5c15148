"""Turns what can be expected to go wrong into a failure that says what and what to do, instead of a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from sqlalchemy.exc import InterfaceError, OperationalError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.leases import LeaseTakenError
from pypi_assets.catalog.ranges import RangeError
from pypi_assets.distributions.workers import ReaderStartError
from pypi_assets.dumps.rows import DumpDamagedError
from pypi_assets.index.errors import PackageIndexError, TransientError
from pypi_assets.leveldbs.records import LeveldbError
from pypi_assets.parquet.manifest import ParquetError
from pypi_assets.settings import SettingsError
from pypi_assets.storage.store import StorageError

_DATABASE = (OperationalError, InterfaceError)
_MAY_PASS = (TransientError, StorageError, LeaseTakenError, ReaderStartError)
_EXPECTED = (
    SettingsError,
    CatalogError,
    RangeError,
    PackageIndexError,
    StorageError,
    ReaderStartError,
    DumpDamagedError,
    LeveldbError,
    ParquetError,
)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Raises dagster.Failure with the text of an expected error; only what may pass by itself is tried again."""
    try:
        yield
    except _DATABASE as error:
        raise dg.Failure(f"the database failed: {error.orig}", allow_retries=True) from error
    except _EXPECTED as error:
        may_pass = isinstance(error, _MAY_PASS) or isinstance(error.__cause__, (*_MAY_PASS, *_DATABASE))
        raise dg.Failure(str(error), allow_retries=may_pass) from error
