"""Cursors: where the next page of a list begins, in which set of datasets, and for which question."""

import binascii
import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.service.problems import ProblemError, conflict, not_found
from pypi_assets.service.service import Service

_ACCEPTS = "`next` of the page before"


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """`set` is the id of a set of datasets, or a serial with its epoch; `question` is a digest of what is listed. The
    page begins after the names `after`; `count` is that of all results.
    """

    set: str
    question: str
    after: list[str]
    count: int

    def text(self) -> str:
        """The cursor as it is sent."""
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def question(*parts: object) -> str:
    """The digest of what is listed, so that a cursor of one list is not taken for another."""
    return hashlib.sha256(msgspec.json.encode(list(map(str, parts)))).hexdigest()[:12]


def read_cursor(text: str, of_question: str) -> Cursor:
    """The cursor that was sent. Raises a ProblemError where it is none (404), or one of another list (409)."""
    try:
        cursor = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Cursor)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise not_found("the cursor is none of this service: begin again", parameter="cursor") from None
    if cursor.question != of_question:
        raise conflict("cursor", "the cursor is of another list: parameters differ from the page before", _ACCEPTS)
    return cursor


def set_of(service: Service, cursor: Cursor | None) -> OpenSet:
    """The datasets that a page is read from: those of its cursor, or the present ones. Raises a ProblemError with 410
    where they are not published any more.
    """
    if cursor is None:
        return service.datasets()
    found = service.named_set(cursor.set)
    if found is None:
        raise ProblemError(
            410, "gone", "the datasets of this cursor are not published any more: begin again", parameter="cursor"
        )
    return found
