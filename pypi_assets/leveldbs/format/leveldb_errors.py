"""The errors of LevelDBs. Each message names the remedy."""

from pypi_assets.errors import ExpectedError


class LeveldbError(ExpectedError):
    """A LevelDB cannot be built or read as requested. The message names the remedy."""


class MissingBindingError(LeveldbError):
    """The library that reads and writes LevelDBs is not installed."""


class LeveldbDamagedError(LeveldbError):
    """A published LevelDB does not match its manifest: files are missing, truncated, changed or unreadable."""


class UnknownFormatError(LeveldbError):
    """A LevelDB has a format that this version of the code does not know."""


class NoVersionError(LeveldbError):
    """A dataset has no version that can be read."""


class NotBuiltYetError(NoVersionError):
    """A dataset cannot be built, since dumps of the cover lack columns that it needs.

    Its content is therefore unknown, which is not the same as empty.
    """
