"""The errors of devindex."""


class DevIndexError(Exception):
    """Base of devindex's errors."""


class OperationRefusedError(DevIndexError):
    """The operation makes no sense on the index as it is; the text names the thing and what to do."""


class HistoryError(DevIndexError):
    """The history file holds a line that cannot be replayed; the text names the file and the line."""
