"""Problems of requests, as documents of RFC 9457.

Handlers raise a ProblemError, or the errors of the code that they call, which are converted to problems here. A problem
never contains a stack trace, nor text of an error that is not meant for people.
"""

from collections.abc import Iterable, Sequence
from http import HTTPStatus

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.errors import ExpectedError, NotAnsweredError
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError, NotBuiltYetError
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.lookup.hints import Hint
from pypi_assets.questions.question import CombinationError, ParameterError
from pypi_assets.service.responses import Lasting, WholeAnswer, to_json
from pypi_assets.storage.store import StorageError

MEDIA_TYPE = "application/problem+json"
_LONGEST_DETAIL = 2_000
_RETRY_AFTER_S = 5


class Suggestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A suggested name. Its `kind` is `project`, `import`, `command`, or `release`, which has a version."""

    kind: str
    name: str
    version: str | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem document.

    `parameter` is the invalid parameter, and `accepts` describes its valid values. `hints` are sentences that may help,
    and `suggestions` are the names in them. `first_serial` and `first_time` (in UTC) are the first moment with answers.
    `request_id` also appears in the log of the service.
    """

    type: str
    title: str
    status: int
    detail: str
    parameter: str | None = None
    accepts: str | None = None
    hints: Sequence[str] = ()
    suggestions: Sequence[Suggestion] = ()
    first_serial: int | None = None
    first_time: str | None = None
    request_id: str | None = None


TITLES = {
    "bad-parameter": "A value is invalid",
    "bad-request": "The request cannot be parsed",
    "conflict": "The parameters cannot be combined",
    "not-found": "Nothing was found",
    "not-exact": "There is no exact answer for this moment",
    "no-method": "This route does not have this method",
    "not-acceptable": "No accepted format is available",
    "gone": "This address has expired",
    "too-large": "The request is too large",
    "http-version": "The answer needs HTTP/1.1",
    "busy": "Too many requests at once",
    "refused": "The request is rejected",
    "unauthorized": "The request needs a token",
    "not-built-yet": "The dataset is not built yet",
    "no-catalog": "There is no catalog",
    "not-replayed-yet": "The mirror has not replayed this serial yet",
    "unavailable": "A required part does not answer",
    "too-slow": "The answer took too long",
    "internal": "The service has a defect",
}
"""The title of each kind of problem. The kind is the last part of a problem's type."""


class ProblemError(Exception):
    """Ends a request with a problem of a kind in `TITLES`. `headers` are added to the response."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        parameter: str | None = None,
        accepts: str | None = None,
        hints: Sequence[str] = (),
        headers: Sequence[tuple[str, str]] = (),
        first_serial: int | None = None,
        first_time: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(
            type=f"/docs#{kind}",
            title=TITLES[kind],
            status=status,
            detail=detail[:_LONGEST_DETAIL],
            parameter=parameter,
            accepts=accepts,
            hints=tuple(map(str, hints)),
            suggestions=suggestions_in(hints),
            first_serial=first_serial,
            first_time=first_time,
        )
        self.headers = tuple(headers)


def suggestions_in(hints: Iterable[str]) -> tuple[Suggestion, ...]:
    """Return the names that hints suggest, each once."""
    found = [meaning for hint in hints if isinstance(hint, Hint) for meaning in hint.meanings]
    return tuple(Suggestion(kind.value, name, version) for kind, name, version in dict.fromkeys(found))


def bad_parameter(parameter: str, detail: str, accepts: str | None = None) -> ProblemError:
    """Return the error for an invalid value of `parameter`."""
    return ProblemError(400, "bad-parameter", detail, parameter=parameter, accepts=accepts)


def conflict(parameter: str, detail: str, accepts: str | None = None) -> ProblemError:
    """Return the error for a value of `parameter` that cannot be combined with another parameter."""
    return ProblemError(409, "conflict", detail, parameter=parameter, accepts=accepts)


def not_found(detail: str, *, hints: Sequence[str] = (), parameter: str | None = None) -> ProblemError:
    """Return the error for something that does not exist."""
    return ProblemError(404, "not-found", detail, hints=hints, parameter=parameter)


def unavailable(detail: str, kind: str = "unavailable") -> ProblemError:
    """Return the error for a request that may succeed later."""
    return ProblemError(503, kind, detail, headers=[("Retry-After", str(_RETRY_AFTER_S))])


def problem_of(error: Exception) -> ProblemError | None:
    """Return the problem for an error of the code below, or None for a defect, whose text belongs only in the log."""
    match error:
        case ProblemError():
            return error
        case LookupNameError():
            return ProblemError(400, "bad-parameter", str(error))
        case CombinationError():
            return conflict(error.name, str(error), error.accepts)
        case ParameterError():
            return bad_parameter(error.name, str(error), error.accepts)
        case NotAnsweredError():
            return ProblemError(404, "not-exact", str(error))
        case NotBuiltYetError():
            return unavailable(str(error), "not-built-yet")
        case LeveldbError() | StorageError() | CatalogError():
            return unavailable(str(error))
        case TimeoutError():
            return unavailable("the answer took too long", "too-slow")
        case SQLAlchemyError():
            return unavailable("the catalog does not answer")
        case ExpectedError():
            return ProblemError(400, "bad-request", str(error))
    return None


def problem_answer(error: ProblemError, serial: int | None = None, request_id: str | None = None) -> WholeAnswer:
    """Return the response to a request that ended with `error`."""
    return WholeAnswer(
        to_json(msgspec.structs.replace(error.problem, request_id=request_id)),
        MEDIA_TYPE,
        status=error.problem.status,
        serial=serial,
        lasting=Lasting.NO_STORE,
        headers=error.headers,
    )


def defect() -> ProblemError:
    """Return the error for a request that failed because of a defect in the service."""
    return ProblemError(500, "internal", "the request failed; the log of the service has the reason")


def status_phrase(status: int) -> str:
    """Return the phrase of a status, such as `Not Found`."""
    return HTTPStatus(status).phrase
