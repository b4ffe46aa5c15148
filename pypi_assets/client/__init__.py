"""The Python client, for a service or for files: `connect` returns a client with a method for each question.

The methods are in `methods.py`, which is generated from the registry of questions. `http_source.py` and
`local_sources.py` have the sources of the answers.
"""

from pypi_assets.client.change_iterator import ChangeIterator
from pypi_assets.client.client_errors import (
    BadParameterError,
    ConflictError,
    GoneError,
    LocationError,
    NotExactError,
    NotFoundError,
    OtherMomentError,
    ServiceError,
    UnavailableError,
    UnreachableError,
)
from pypi_assets.client.connecting import Client, connect
from pypi_assets.client.results import ResultIterator
from pypi_assets.errors import InexactMomentError
from pypi_assets.journal.change_types import Change
from pypi_assets.journal.journal_errors import NoJournalError, SinceError
from pypi_assets.questions.paging import CursorError
from pypi_assets.questions.question import ParameterError
from pypi_assets.questions.snapshot import OtherSnapshotError

__all__ = [
    "BadParameterError",
    "Change",
    "ChangeIterator",
    "Client",
    "ConflictError",
    "CursorError",
    "GoneError",
    "InexactMomentError",
    "LocationError",
    "NoJournalError",
    "NotExactError",
    "NotFoundError",
    "OtherMomentError",
    "OtherSnapshotError",
    "ParameterError",
    "ResultIterator",
    "ServiceError",
    "SinceError",
    "UnavailableError",
    "UnreachableError",
    "connect",
]
