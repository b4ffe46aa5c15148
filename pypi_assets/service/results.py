"""The format of lookup answers: whole, as pages of JSON with a cursor, or as JSON lines."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.questions.paging import PAGE_LIMIT as PAGE_LIMIT
from pypi_assets.service.parameters import CursorText, Limit, OperationParameters
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import Suggestion, conflict
from pypi_assets.service.responses import JSON, NDJSON, WholeAnswer, quality, to_json

Result = TypeVar("Result")
_FIRST_LINES, _LINES = 100, 2_000
"""The number of results in a chunk of a stream. The first chunk is small, so that the stream starts early."""
_CHUNK_S = 1.0
"""The time after which a smaller chunk is sent."""


class Results(msgspec.Struct, Generic[Result], frozen=True, kw_only=True, omit_defaults=True):
    """Results as of `serial`. If there are none, `hints` may help, and `suggestions` are the names in them.

    `set` is the published set of datasets that the answer comes from. `epoch` is the epoch of the serial if the answer
    comes from the catalog. `followed_projects` is the number of followed projects, unless the whole index is followed.
    `next` is the cursor of the next page, if there is one. `count` is the number of results on all pages, if it is
    known.
    """

    serial: int
    set: str | None = None
    epoch: int | None = None
    followed_projects: int | None = None
    hints: Sequence[str] = ()
    suggestions: Sequence[Suggestion] = ()
    results: Sequence[Result]
    next: str | None = None
    count: int | None = None


class One(msgspec.Struct, Generic[Result], frozen=True, kw_only=True, omit_defaults=True):
    """One result as of `serial`. `set` and `epoch` are as in lists of results."""

    serial: int
    set: str | None = None
    epoch: int | None = None
    result: Result


def published_answer(datasets: OpenSet, content: Any) -> WholeAnswer:
    """Return an answer with `content` as JSON, which comes from these datasets."""
    return WholeAnswer(
        to_json(content), serial=datasets.serial, modified=datasets.published.published_at, set_id=datasets.id
    )


def past_answer(pinned: Pinned, content: Any) -> WholeAnswer:
    """Return an answer with `content` as JSON, which comes from the catalog at a serial."""
    return WholeAnswer(to_json(content), serial=pinned.serial, modified=pinned.at)


class PagedParameters(OperationParameters, frozen=True):
    """The format of a long list. `limit` and `cursor` are only for pages."""

    format: (
        Annotated[Literal["json", "ndjson"], Meta(description="json: pages; ndjson: all in lines; default: by Accept")]
        | None
    ) = None
    limit: Limit | None = None
    cursor: CursorText | None = None


def wants_lines(given: PagedParameters, headers: Mapping[str, str]) -> bool:
    """Check whether a request wants all results as lines. Raises a ProblemError if it has parameters of pages, too."""
    is_streamed = given.format == "ndjson" or (given.format is None and _prefers_lines(headers))
    for name, value in (("limit", given.limit), ("cursor", given.cursor)):
        if is_streamed and value is not None:
            raise conflict(name, f"{name} is only for pages: format=json")
    return is_streamed


def lines_of(results: Iterable[Any]) -> Iterator[bytes]:
    """Yield results as JSON lines, in chunks."""
    lines: list[bytes] = []
    count, ends = _FIRST_LINES, time.monotonic() + _CHUNK_S
    for one in results:
        lines.append(to_json(one) + b"\n")
        if len(lines) >= count or time.monotonic() > ends:
            yield b"".join(lines)
            lines.clear()
            count, ends = _LINES, time.monotonic() + _CHUNK_S
    if lines:
        yield b"".join(lines)


def _prefers_lines(headers: Mapping[str, str]) -> bool:
    """Check whether the header Accept prefers NDJSON to JSON."""
    accept = headers.get("accept", "")[:1_000].lower()
    if NDJSON not in accept:
        return False
    weights: dict[str, float] = {}
    for item in accept.split(","):
        name, _, parameters = item.partition(";")
        weights[name.strip()] = quality(parameters)
    return weights.get(NDJSON, 0.0) > weights.get(JSON, 0.0)
