"""Decide which errors are transient: errors of the index, the storage, the database and Kafka, and taken leases.

Dagster's sensors and runs and the follower retry after transient errors. All other errors need a person.
"""

from sqlalchemy.exc import InterfaceError, OperationalError

from pypi_assets.catalog.coordination.leases import LeaseTakenError
from pypi_assets.distributions.reader_pool import ReaderStartError
from pypi_assets.index.errors import TransientError
from pypi_assets.journal.kafka import KafkaTransientError
from pypi_assets.storage.store import StorageError

DATABASE = (OperationalError, InterfaceError)
_TRANSIENT = (TransientError, StorageError, LeaseTakenError, ReaderStartError, KafkaTransientError, *DATABASE)


def is_transient(error: BaseException) -> bool:
    """Check whether an error, or its cause, is transient.

    Other work that needs the same database or service is likely to fail with the same error.
    """
    return isinstance(error, _TRANSIENT) or isinstance(error.__cause__, _TRANSIENT)
