"""Errors of an index, with one class for each reaction: try again later, believe the answer, or change a setting."""

from pypi_assets.errors import ExpectedError


class PackageIndexError(ExpectedError):
    """Base class of all index errors. `url` is the requested URL, without credentials."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message, url)  # pass the arguments on, so that the error survives pickling between processes
        self.message = message
        self.url = url

    def __str__(self) -> str:
        return f"{self.message} ({self.url})"


class TransientError(PackageIndexError):
    """A failure that may pass: a network error, a 5xx, a broken body, too many requests. Retry after growing pauses.

    `retry_after_s` is the pause in seconds that the index asks for, or None if it does not ask for one.
    """

    def __init__(self, message: str, url: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, url)
        self.retry_after_s = retry_after_s


class NoAnswerError(TransientError):
    """No complete answer arrived: the name lookup, the proxy, the connection or TLS failed.

    Other URLs of the same host are likely to fail in the same way.
    """


def requested_pause_s(error: BaseException | None) -> float:
    """Return the pause in seconds that the index asks for with `error`, or 0 if it does not ask for one."""
    return (error.retry_after_s or 0.0) if isinstance(error, TransientError) else 0.0


class StaleError(TransientError):
    """The answer is older than an event already known, probably from a cache. Try again, or decide by events alone."""


class NotOnIndexError(PackageIndexError):
    """404 or 410: the index does not have the resource, or no longer has it."""


class RefusedError(PackageIndexError):
    """A permanent failure: a 4xx, a host that the settings do not allow, or content that breaks the protocol."""


class DeniedError(RefusedError):
    """403: the host denies access to this client.

    Object stores that forbid listing also answer 403 for missing objects.
    """


class LoginError(RefusedError):
    """401 or 407: the index or the proxy requires credentials, or rejects the given ones."""


class LeadsElsewhereError(RefusedError):
    """A redirect to `target`, on a host that the settings do not allow."""

    def __init__(self, message: str, url: str, target: str = "") -> None:
        super().__init__(message, url)
        self.target = target


class ContentError(RefusedError):
    """The received bytes differ from the page's entry: another hash, or another size."""


class TooLargeError(RefusedError):
    """The file or answer has more bytes than the caller's limit, as announced or as received."""
