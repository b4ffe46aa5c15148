"""Problems of requests, as documents of RFC 9457.

Handlers raise a ProblemError, or the errors of the parts that they call, which become problems here. No problem has a
stack trace, or anything of an error that was not meant for people.
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
from pypi_assets.questions.question import ParameterError
from pypi_assets.service.responses import Lasting, WholeAnswer, to_json
from pypi_assets.storage.store import StorageError

MEDIA_TYPE = "application/problem+json"
_LONGEST_DETAIL = 2_000
_RETRY_AFTER_S = 5


class Suggestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A name that may have been meant: its `kind` is `project`, `import`, `command`, or `release`, with the version."""

    kind: str
    name: str
    version: str | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem document. `parameter` is the one that is wrong, and `accepts` what it takes; `hints` are what may have
    been meant, in sentences, and `suggestions` the names in them. `first_serial` and `first_time` (in UTC) are the
    first moment that has answers. `request_id` is also in the log of the service.
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
    "bad-parameter": "A value is not accepted",
    "bad-request": "The request cannot be read",
    "conflict": "Parameters do not go together",
    "not-found": "Nothing was found",
    "not-exact": "There is no exact answer for this moment",
    "no-method": "The method is not offered here",
    "not-acceptable": "No form of the answer is accepted",
    "gone": "This address has expired",
    "too-large": "The request is too large",
    "http-version": "The answer needs HTTP/1.1",
    "busy": "Too many requests at once",
    "refused": "This is refused",
    "not-built-yet": "The dataset is not built yet",
    "no-catalog": "There is no catalog",
    "not-replayed-yet": "The mirror has not come that far yet",
    "unavailable": "A part that is needed does not answer",
    "too-slow": "The answer took too long",
    "internal": "The service has a defect",
}
"""Of each kind of problem, which is the last part of its type."""


class ProblemError(Exception):
    """Ends a request with a problem of a kind of `TITLES`. `headers` are added to the answer's."""

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
    """Return the error for a value that `parameter` does not accept."""
    return ProblemError(400, "bad-parameter", detail, parameter=parameter, accepts=accepts)


def conflict(parameter: str, detail: str, accepts: str | None = None) -> ProblemError:
    """Return the error for a value of `parameter` that conflicts with another parameter."""
    return ProblemError(409, "conflict", detail, parameter=parameter, accepts=accepts)


def not_found(detail: str, *, hints: Sequence[str] = (), parameter: str | None = None) -> ProblemError:
    """Return the error for a missing thing."""
    return ProblemError(404, "not-found", detail, hints=hints, parameter=parameter)


def unavailable(detail: str, kind: str = "unavailable") -> ProblemError:
    """Return the error of a request that can be answered later."""
    return ProblemError(503, kind, detail, headers=[("Retry-After", str(_RETRY_AFTER_S))])


def problem_of(error: Exception) -> ProblemError | None:
    """Return the problem that an error of the parts below means; None for a defect, whose text is for the log alone."""
    match error:
        case ProblemError():
            return error
        case LookupNameError():
            return ProblemError(400, "bad-parameter", str(error))
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
    """Return the answer to a request that ended with `error`."""
    return WholeAnswer(
        to_json(msgspec.structs.replace(error.problem, request_id=request_id)),
        MEDIA_TYPE,
        status=error.problem.status,
        serial=serial,
        lasting=Lasting.NO_STORE,
        headers=error.headers,
    )


def defect() -> ProblemError:
    """Return the error of a request that failed by a defect of the service."""
    return ProblemError(500, "internal", "the request failed; the log of the service has the reason")


def status_phrase(status: int) -> str:
    """Return the phrase of a status: `Not Found`."""
    return HTTPStatus(status).phrase
