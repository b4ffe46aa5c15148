"""The errors of LevelDBs; each message names what to do."""

from pypi_assets.errors import ExpectedError


class LeveldbError(ExpectedError):
    """A LevelDB cannot be built or read as requested; the message names what to do."""


class MissingBindingError(LeveldbError):
    """The library that reads and writes LevelDBs is not installed."""


class LeveldbDamagedError(LeveldbError):
    """A published LevelDB is not what was published: missing, cut, changed or unreadable files."""


class UnknownFormatError(LeveldbError):
    """A LevelDB in a format that this version of the code does not know."""


class NoVersionError(LeveldbError):
    """There is no version that can be read."""


class NotBuiltYetError(NoVersionError):
    """A dataset needs columns that dumps of the cover lack: it is unknown what it holds, which is not the same as
    nothing.
    """
