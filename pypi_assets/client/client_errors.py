"""Errors of a client: a type for each kind of problem document of a service (RFC 9457), with the document's fields."""

from collections.abc import Mapping
from typing import Any

from pypi_assets.errors import ExpectedError, InexactMomentError
from pypi_assets.questions.snapshot import OtherSnapshotError


class LocationError(ExpectedError):
    """The location of `connect` is neither a service, nor a home, nor a storage.

    That a URL is no service becomes known with the first question.
    """


class UnreachableError(ExpectedError):
    """The service cannot be reached, or its connection ended within a response."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url} does not answer: {reason}")
        self.url, self.reason = url, reason


class ServiceError(ExpectedError):
    """The service answered with a problem; the attributes are the fields of its document.

    `kind` is the last part of `type`, such as `not-found`. It is empty if the response was not a problem document, for
    example because it came from a proxy. `parameter` is the wrong parameter, and `accepts` describes its valid values.
    `suggestions` are similar names. `first_serial` and `first_time` name the first moment that has answers.
    `retry_after_s` is the wait that the service requests. `serial` and `epoch` belong to the answer, if it names them.
    """

    serial: int | None = None
    epoch: int | None = None

    def __init__(self, url: str, status: int, document: Mapping[str, Any], retry_after_s: float | None = None) -> None:
        self.url, self.status, self.retry_after_s = url, status, retry_after_s
        self.type: str = str(document.get("type") or "")
        self.kind = self.type.rpartition("#")[2]
        self.title: str = str(document.get("title") or "")
        self.detail: str = document.get("detail", "") or f"the answer has the status {status}"
        self.parameter: str | None = document.get("parameter")
        self.accepts: str | None = document.get("accepts")
        self.hints: tuple[str, ...] = _tuple(document.get("hints"))
        self.suggestions: tuple[Mapping[str, str], ...] = _tuple(document.get("suggestions"))
        self.first_serial: int | None = document.get("first_serial")
        self.first_time: str | None = document.get("first_time")
        self.request_id: str | None = document.get("request_id")
        super().__init__(f"{self.detail} ({url})")


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else ()


class BadParameterError(ServiceError):
    """A value of a parameter is not accepted."""


class ConflictError(ServiceError):
    """The parameters cannot be combined."""


class OtherMomentError(ConflictError, OtherSnapshotError):
    """This moment cannot answer the question; the newest answer or an earlier serial can."""


class NotFoundError(ServiceError):
    """Nothing was found."""


class NotExactError(ServiceError, InexactMomentError):
    """The index has no exact answer for this moment."""


class GoneError(ServiceError):
    """The epoch of a serial is over, or the datasets of a cursor are no longer published."""


class UnavailableError(ServiceError):
    """A required component does not respond, is busy or is not built yet. The same request can succeed later."""


KINDS: Mapping[str, type[ServiceError]] = {
    "bad-parameter": BadParameterError,
    "busy": UnavailableError,
    "conflict": ConflictError,
    "gone": GoneError,
    "no-catalog": UnavailableError,
    "not-built-yet": UnavailableError,
    "not-exact": NotExactError,
    "not-found": NotFoundError,
    "not-replayed-yet": UnavailableError,
    "too-slow": UnavailableError,
    "unavailable": UnavailableError,
}
"""The error type of each kind of problem; other kinds have the type ServiceError."""


def service_error(
    url: str, status: int, document: Mapping[str, Any], retry_after_s: float | None = None
) -> ServiceError:
    """Return the error for a response with this status and document."""
    kind = KINDS.get(str(document.get("type", "")).rpartition("#")[2], ServiceError)
    if kind is ConflictError and document.get("parameter") == "at":
        kind = OtherMomentError
    return kind(url, status, document, retry_after_s)
