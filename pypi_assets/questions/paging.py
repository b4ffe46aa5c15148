"""Pages of a long answer, and the cursor that names where the next page begins.

The service and the Python client share cursors, so a list that was begun over HTTP can be completed from the files.
"""

import binascii
import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pypi_assets.errors import ExpectedError
from pypi_assets.lookup.answers import Stream
from pypi_assets.questions.question import Parameters, Question
from pypi_assets.questions.snapshot import After, Found

MOST_PER_PAGE = 10_000
PAGE_LIMIT = 1_000
"""The number of results in a page if no limit is given."""


_WRONG = "the cursor is none of this service: begin again"


class CursorError(ExpectedError):
    """The text is not a cursor; or, if `is_of_another_list`, it belongs to a question with other parameters."""

    def __init__(self, message: str, *, is_of_another_list: bool = False) -> None:
        super().__init__(message)
        self.is_of_another_list = is_of_another_list


class PageCursor(msgspec.Struct, array_like=True, frozen=True):
    """`set` is the ID of a set of datasets, or a serial with its epoch. `question` is the digest of the list.

    The page begins after the sort key `after`; `count` is the number of all results, None: it is not known.
    """

    set: str
    question: str
    after: list[str]
    count: Annotated[int, Meta(ge=0)] | None = None

    @property
    def serial(self) -> int | None:
        """The serial of a list from the catalog; None: it is from a set of datasets."""
        named = re.fullmatch(r"([0-9]{1,18})\.[0-9]{1,18}", self.set)
        return int(named[1]) if named else None

    def text(self) -> str:
        """Return the text of the cursor for a client."""
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def list_digest(*parts: object) -> str:
    """Return the digest of a question's name and parameters, which ties a cursor to its list."""
    return hashlib.sha256(msgspec.json.encode(list(map(str, parts)))).hexdigest()[:12]


def digest_of(question: Question[Any], asked: Parameters) -> str:
    """Return the digest of what is asked, in which spellings of one value are the same."""
    return list_digest(question.name, *(one.canonical(getattr(asked, one.name)) for one in question.takes))


def parse_cursor(text: str, question: Question[Any], asked: Parameters) -> PageCursor:
    """Return the cursor in a text. Raises CursorError."""
    try:
        cursor = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=PageCursor)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise CursorError(_WRONG) from None
    if cursor.question != digest_of(question, asked):
        detail = "the cursor is of another list: parameters differ from the page before"
        raise CursorError(detail, is_of_another_list=True)
    if len(cursor.after) != question.key_size:
        raise CursorError(_WRONG)
    return cursor


def page_of(question: Question[Any], found: Found[Any], after: After, limit: int | None) -> tuple[list[Any], After]:
    """Return the results of one page, and the sort key that the next page begins after; None if there is none.

    Without a limit, an answer that is whole in memory is one page, unless the question `is_paged`. One result more than
    the page has is read.
    """
    key = question.sort_key
    if key is None:
        raise TypeError(f"the question {question.name} has no sort_key, so it has no pages")
    if limit is None and (question.is_paged or isinstance(found, Stream)):
        limit = PAGE_LIMIT
    rest = (one for one in found.results if after is None or key(one) > after)
    results = list(rest if limit is None else islice(rest, limit + 1))
    if limit is None or len(results) <= limit:
        return results, None
    return results[:limit], key(results[limit - 1])
