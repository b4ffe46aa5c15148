"""Turns errors that can be expected into failures that name what went wrong and what to do, without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from sqlalchemy.exc import InterfaceError, OperationalError

from pypi_assets.catalog.coordination.leases import LeaseTakenError
from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.ledger.serial_range import RangeError
from pypi_assets.distributions.reader_pool import ReaderStartError
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.index.errors import PackageIndexError, TransientError
from pypi_assets.leveldbs.format.errors import LeveldbError
from pypi_assets.parquet.export_manifest import ParquetError
from pypi_assets.settings import SettingsError
from pypi_assets.storage.store import StorageError

_DATABASE = (OperationalError, InterfaceError)
_TRANSIENT = (TransientError, StorageError, LeaseTakenError, ReaderStartError)
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
def expected_errors_as_failures() -> Iterator[None]:
    """Raises dagster.Failure with the text of an expected error. Only transient errors are tried again."""
    try:
        yield
    except (*_DATABASE, *_EXPECTED) as error:
        raise dg.Failure(describe_error(error), allow_retries=is_transient(error)) from error


def is_transient(error: BaseException) -> bool:
    """Whether an error can disappear by itself. Whatever else needs the same database or service meets it too."""
    return isinstance(error, (*_TRANSIENT, *_DATABASE)) or isinstance(error.__cause__, (*_TRANSIENT, *_DATABASE))


def describe_error(error: BaseException) -> str:
    """An error as a sentence for people."""
    if isinstance(error, _DATABASE):
        return f"the database failed: {error.orig}"
    return str(error) if isinstance(error, _EXPECTED) else f"{type(error).__name__}: {error}"
