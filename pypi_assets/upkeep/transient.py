"""Which errors can disappear by themselves: of the index, the storage, the database, Kafka, and of what others work on.

Sensors and runs of Dagster, and the follower, try again what failed so. All other errors need a person.
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
    """Whether an error can disappear by itself. Whatever else needs the same database or service meets it too."""
    return isinstance(error, _TRANSIENT) or isinstance(error.__cause__, _TRANSIENT)
