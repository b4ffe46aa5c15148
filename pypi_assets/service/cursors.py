"""Reads cursors of requests: a wrong one is a problem, and each leads to the datasets that its list began with."""

from typing import Any

from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.questions.paging import Cursor, CursorError, parse_cursor
from pypi_assets.questions.question import Parameters, Question
from pypi_assets.service.problems import ProblemError, conflict, not_found
from pypi_assets.service.service import Service

_ACCEPTS = "`next` of the page before"


def read_cursor(text: str, question: Question[Any], asked: Parameters) -> Cursor:
    """Return the cursor that was sent. Raises a ProblemError: 404 for no cursor, 409 for one of another list."""
    try:
        return parse_cursor(text, question, asked)
    except CursorError as error:
        if error.is_of_another_list:
            raise conflict("cursor", str(error), _ACCEPTS) from None
        raise not_found(str(error), parameter="cursor") from None


def set_of(service: Service, cursor: Cursor | None) -> OpenSet:
    """Return the datasets that a page is read from: those of its cursor, or the present ones.

    Raises a ProblemError with 410 if they are not published any more.
    """
    if cursor is None:
        return service.datasets()
    found = service.named_set(cursor.set)
    if found is None:
        raise ProblemError(
            410, "gone", "the datasets of this cursor are not published any more: begin again", parameter="cursor"
        )
    return found
