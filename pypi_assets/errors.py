"""The base class of expected errors, and the error of wrong settings. It imports nothing, so any module can use it."""


class ExpectedError(Exception):
    """An error that can occur without a bug. The message is for people, and names the object and the remedy.

    The command line prints the message without a traceback. To recognize the error, it imports nothing else.
    """


class NotAnsweredError(ExpectedError):
    """A project has no answers yet at the requested serial. The message has the first serial with answers."""


class InexactMomentError(ExpectedError):
    """There is no exact answer at a moment. The message has the serials or times with answers, if they are known."""


class SettingsError(ExpectedError):
    """A setting has a wrong value; the message names its variable and what it accepts."""


FIRST_COMMANDS = "run `pypi-assets crawl full`, `pypi-assets dump full` and `pypi-assets leveldb update`, in this order"
"""The commands that create a catalog, a storage and the first LevelDBs."""
