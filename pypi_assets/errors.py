"""The base of errors that are expected, and the error of wrong settings. Imports nothing, so any module can use it."""


class ExpectedError(Exception):
    """What can go wrong without a mistake in the code; the text is for people: it names the thing and what to do.

    The command line prints the text without a traceback, and needs to import nothing to recognize it.
    """


class NotAnsweredError(ExpectedError):
    """A question about a project at a serial before the first one with answers about it; the text has that serial."""


class SettingsError(ExpectedError):
    """A setting has a wrong value; the message names its variable and what it accepts."""


FIRST_COMMANDS = "run `pypi-assets crawl full`, `pypi-assets dump full` and `pypi-assets leveldb update`, in this order"
"""What makes a catalog, a storage and its first LevelDBs."""
