"""What the routes that look something up share: the form of their answers, from readers and from the catalog."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from pypi_assets.catalog.observed.followed import count_answered
from pypi_assets.catalog.reports.project_following import require_answered
from pypi_assets.lookup.answers import Answer as Found
from pypi_assets.lookup.lookup_command import CatalogLookup, LookupCommand
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.service.answers import Answer, Lasting, to_json
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import not_found

Result = TypeVar("Result")


class Results(msgspec.Struct, Generic[Result], frozen=True, kw_only=True, omit_defaults=True):
    """What was found, as the index was at `serial`. Where nothing was, `results` is empty and `hints` may help.

    `set` names the published datasets that the answer is from, `epoch` is that of the serial for answers of the
    catalog. `followed_projects` is how many projects are followed, where that is not all of the index. `next` is the
    cursor of the next page, where there is one.
    """

    serial: int
    set: str | None = None
    epoch: int | None = None
    followed_projects: int | None = None
    hints: Sequence[str] = ()
    results: Sequence[Result]
    next: str | None = None


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


def results_of(
    datasets: OpenSet, found: Found[Any], hints: Iterable[str] = (), following: str | None = None
) -> Results[Any]:
    """What a reader of `datasets` has found. `following` is the cursor of the next page."""
    return Results(
        serial=found.serial,
        set=datasets.id,
        followed_projects=found.followed_projects,
        hints=tuple(hints),
        results=found.results,
        next=following,
    )


def past_answer(pinned: Pinned, content: Any) -> Answer:
    """The answer with `content` as JSON, which is from the catalog at a serial."""
    return Answer(to_json(content), serial=pinned.serial, modified=pinned.at)


def past_found(pinned: Pinned, command: LookupCommand[Any], name: str) -> Sequence[Any]:
    """What the catalog finds at a serial. Raises a ProblemError where it has nothing to look it up by."""
    return _past_lookup(command).answer(pinned.catalog, pinned.serial, name).results


def past_results(pinned: Pinned, command: LookupCommand[Any], name: str, limit: int | None = None) -> Answer:
    """What the catalog answers to a look-up of `name` at a serial. Raises a ProblemError as above."""
    lookup = _past_lookup(command)
    found = lookup.answer(pinned.catalog, pinned.serial, name)
    if found.results or lookup.hints is None:
        return past_answer(pinned, results_at(pinned, found.results[:limit]))
    answer = past_answer(pinned, results_at(pinned, (), lookup.hints(pinned.catalog, name)))
    answer.lasting = Lasting.REDIRECT  # hints are of the names that are known today
    return answer


def _past_lookup(command: LookupCommand[Any]) -> CatalogLookup:
    if command.at_serial is None:
        raise not_found(f"a {command.name} cannot be looked up at an earlier serial")
    return command.at_serial


def results_at(pinned: Pinned, results: Sequence[Any], hints: Iterable[str] = ()) -> Results[Any]:
    """These results of the catalog at a serial."""
    with pinned.catalog.read() as connection:
        followed = count_answered(connection, pinned.serial)
    return Results(
        serial=pinned.serial,
        epoch=pinned.epoch,
        followed_projects=followed,
        hints=tuple(hints),
        results=results,
    )


def require_known(pinned: Pinned, project: str) -> None:
    """Raises NotAnsweredError where answers about the project begin at a later serial."""
    with pinned.catalog.read() as connection:
        require_answered(connection, project, pinned.serial)
