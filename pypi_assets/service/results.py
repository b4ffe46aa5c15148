"""The form of the answers of look-ups: whole, in pages of JSON with a cursor, or as lines of JSON."""

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
"""How many results a chunk of a stream has: few at first, so that it begins at once."""
_CHUNK_S = 1.0
"""After how long a chunk ends that has fewer."""


class Results(msgspec.Struct, Generic[Result], frozen=True, kw_only=True, omit_defaults=True):
    """Results, as the index was at `serial`. If there are none, `hints` may help, with the names in them as
    `suggestions`.

    `set` names the published datasets that the answer is from, `epoch` is that of the serial for answers of the
    catalog. `followed_projects` is how many projects are followed, where that is not all of the index. `next` is the
    cursor of the next page, where there is one. `count` is the number of results of all pages, if it is known.
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
    """One thing, as the index was at `serial`; `set` and `epoch` as in lists of results."""

    serial: int
    set: str | None = None
    epoch: int | None = None
    result: Result


def published_answer(datasets: OpenSet, content: Any) -> WholeAnswer:
    """Return the answer with `content` as JSON, which is from these datasets."""
    return WholeAnswer(
        to_json(content), serial=datasets.serial, modified=datasets.published.published_at, set_id=datasets.id
    )


def past_answer(pinned: Pinned, content: Any) -> WholeAnswer:
    """Return the answer with `content` as JSON, which is from the catalog at a serial."""
    return WholeAnswer(to_json(content), serial=pinned.serial, modified=pinned.at)


class PagedParameters(OperationParameters, frozen=True):
    """How a long list is answered. `limit` and `cursor` go with pages alone."""

    format: (
        Annotated[Literal["json", "ndjson"], Meta(description="json: pages, ndjson: all, one a line; else by Accept")]
        | None
    ) = None
    limit: Limit | None = None
    cursor: CursorText | None = None


def wants_lines(given: PagedParameters, headers: Mapping[str, str]) -> bool:
    """Check whether all results are wanted as lines. Raises a ProblemError if parameters of pages are given as well."""
    is_streamed = given.format == "ndjson" or (given.format is None and _prefers_lines(headers))
    for name, value in (("limit", given.limit), ("cursor", given.cursor)):
        if is_streamed and value is not None:
            raise conflict(name, f"{name} goes with pages alone: format=json")
    return is_streamed


def lines_of(results: Iterable[Any]) -> Iterator[bytes]:
    """Yield results as lines of JSON, in chunks."""
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
    """Check whether the header Accept names NDJSON with more weight than JSON."""
    accept = headers.get("accept", "")[:1_000].lower()
    if NDJSON not in accept:
        return False
    weights: dict[str, float] = {}
    for item in accept.split(","):
        name, _, parameters = item.partition(";")
        weights[name.strip()] = quality(parameters)
    return weights.get(NDJSON, 0.0) > weights.get(JSON, 0.0)
