"""What the routes that look something up share: the form of their answers, from readers and from the catalog."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec

from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.service.answers import Answer, to_json
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import Suggestion

Result = TypeVar("Result")


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


def published_answer(datasets: OpenSet, content: Any) -> Answer:
    """The answer with `content` as JSON, which is from these datasets."""
    return Answer(
        to_json(content), serial=datasets.serial, modified=datasets.published.published_at, set_id=datasets.id
    )


def past_answer(pinned: Pinned, content: Any) -> Answer:
    """The answer with `content` as JSON, which is from the catalog at a serial."""
    return Answer(to_json(content), serial=pinned.serial, modified=pinned.at)
