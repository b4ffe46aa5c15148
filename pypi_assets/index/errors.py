"""Errors of an index, a class for each way to react: try again later, believe it, or change a setting."""

from pypi_assets.errors import ExpectedError


class PackageIndexError(ExpectedError):
    """Base of all index errors. `url` is the requested one, without credentials."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message, url)  # as given, so that an error survives pickling between processes
        self.message = message
        self.url = url

    def __str__(self) -> str:
        return f"{self.message} ({self.url})"


class TransientError(PackageIndexError):
    """It may work later: the network, a 5xx, a broken body, too many requests. Try again with growing pauses.

    `retry_after_s` is the pause in seconds that the index requests, where it names one.
    """

    def __init__(self, message: str, url: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, url)
        self.retry_after_s = retry_after_s


class NoAnswerError(TransientError):
    """No whole answer came: the name, the proxy, the connection or TLS failed. Other addresses of a host share that."""


def requested_pause_s(error: BaseException | None) -> float:
    """The pause in seconds that the index requests with `error`; 0 where it requests none."""
    return (error.retry_after_s or 0.0) if isinstance(error, TransientError) else 0.0


class StaleError(TransientError):
    """The answer is older than an event already known (a cache on the way): try again, or judge by events."""


class NotOnIndexError(PackageIndexError):
    """404 or 410: the index does not have it (any more)."""


class RefusedError(PackageIndexError):
    """The failure is permanent: a 4xx, a host that the settings do not allow, content that breaks the protocol."""


class DeniedError(RefusedError):
    """403: the host does not give it to this client. A store that may not be listed says so of what it lacks."""


class LoginError(RefusedError):
    """401 or 407: the index or the proxy demands credentials, or other ones."""


class LeadsElsewhereError(RefusedError):
    """A redirect leads to `target`, on a host that the settings do not allow."""

    def __init__(self, message: str, url: str, target: str = "") -> None:
        super().__init__(message, url)
        self.target = target


class ContentError(RefusedError):
    """The bytes are not those that the page promised: another hash, or more bytes than its `size`."""


class TooLargeError(RefusedError):
    """More bytes than the caller's limit allows, as announced or as they came."""
