"""Pages of a long answer, and the cursors that state where the next page begins.

The service and the Python client share cursors, so a list that began over HTTP can continue from the files.
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


_WRONG = "the cursor does not come from this service: start again without a cursor"


class CursorError(ExpectedError):
    """A text that is not a cursor. If `is_of_another_list`, it is a cursor of a question with other parameters."""

    def __init__(self, message: str, *, is_of_another_list: bool = False) -> None:
        super().__init__(message)
        self.is_of_another_list = is_of_another_list


class PageCursor(msgspec.Struct, array_like=True, frozen=True):
    """The position of the next page of an answer.

    `set` is the id of a set of datasets, or a serial with its epoch. `question` is the digest of the question and its
    parameters. The page begins after the sort key `after`. `count` is the number of all results, or None if it is
    unknown.
    """

    set: str
    question: str
    after: list[str]
    count: Annotated[int, Meta(ge=0)] | None = None

    @property
    def serial(self) -> int | None:
        """Return the serial if the list comes from the catalog, or None if it comes from a set of datasets."""
        named = re.fullmatch(r"([0-9]{1,18})\.[0-9]{1,18}", self.set)
        return int(named[1]) if named else None

    def text(self) -> str:
        """Return the cursor as text for a client."""
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def list_digest(*parts: object) -> str:
    """Return a digest of a question's name and parameters. It ties a cursor to its list."""
    return hashlib.sha256(msgspec.json.encode(list(map(str, parts)))).hexdigest()[:12]


def digest_of(question: Question[Any], asked: Parameters) -> str:
    """Return the digest of a question with these parameters. Different spellings of a value have the same digest."""
    return list_digest(question.name, *(one.canonical(getattr(asked, one.name)) for one in question.takes))


def parse_cursor(text: str, question: Question[Any], asked: Parameters) -> PageCursor:
    """Return the cursor in a text. Raises CursorError."""
    try:
        cursor = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=PageCursor)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise CursorError(_WRONG) from None
    if cursor.question != digest_of(question, asked):
        detail = "the cursor belongs to another list: repeat the parameters of the page before"
        raise CursorError(detail, is_of_another_list=True)
    if len(cursor.after) != question.key_size:
        raise CursorError(_WRONG)
    return cursor


def page_of(question: Question[Any], found: Found[Any], after: After, limit: int | None) -> tuple[list[Any], After]:
    """Return the results of one page, and the sort key of its last result, or None if no page follows.

    Without a limit, an answer that is whole in memory is one page, unless the question `is_paged`. One result more than
    the page has is read, to know whether another page follows.
    """
    key = question.sort_key
    if key is None:
        raise TypeError(f"question {question.name} has no sort_key, so it has no pages")
    if limit is None and (question.is_paged or isinstance(found, Stream)):
        limit = PAGE_LIMIT
    rest = (one for one in found.results if after is None or key(one) > after)
    results = list(rest if limit is None else islice(rest, limit + 1))
    if limit is None or len(results) <= limit:
        return results, None
    return results[:limit], key(results[limit - 1])
