"""Errors about positions in a journal. They import nothing else, so a client can name them."""

from pypi_assets.errors import ExpectedError


class NoJournalError(ExpectedError):
    """The storage has no journal, or the journal does not have the requested serial."""


class BeginsLaterError(NoJournalError):
    """The next records after a cursor are no longer in the journal, or never were."""


class SinceError(ExpectedError, ValueError):
    """A text does not name a position to begin at."""
