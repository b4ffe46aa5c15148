"""The errors of devindex."""


class DevIndexError(Exception):
    """Base of devindex's errors."""


class OperationRefusedError(DevIndexError):
    """The operation is not valid for the present state of the index. The message names the object and the remedy."""


class HistoryError(DevIndexError):
    """The history file has a line that cannot be replayed. The message names the file and the line."""
