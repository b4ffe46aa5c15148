"""Makes an operation of each question: its route, its form at a serial, pages, lines, and its place in OpenAPI."""

from dataclasses import asdict
from functools import cache
from itertools import islice
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta
from starlette.routing import Route

from pypi_assets.lookup.answers import Stream
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.question import Parameter, ParameterError, Question, all_questions, find_question
from pypi_assets.questions.snapshot import After, OtherSnapshotError, Snapshot
from pypi_assets.service.answers import Answer, Lasting, StreamedAnswer
from pypi_assets.service.cursors import Cursor, read_cursor, set_of
from pypi_assets.service.cursors import question as digest_of
from pypi_assets.service.lines import PAGE_LIMIT, PagedParameters, lines_of, wants_lines
from pypi_assets.service.lookups import Results, past_answer, published_answer
from pypi_assets.service.operations import Call, Operation, operation_routes
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import ProblemError, conflict, suggestions_in
from pypi_assets.service.service import Service


def routes(service: Service) -> list[Route]:
    """Return the routes of all questions."""
    return list(operation_routes(service, [operation(one.name) for one in all_questions() if one.path is not None]))


@cache
def operation(name: str) -> Operation:
    """Return the operation of the question of this name."""
    return _Asked(find_question(name)).operation()


class _Asked:
    """A question as the service answers it."""

    def __init__(self, question: Question[Any]) -> None:
        self._question = question
        self._name = question.takes[0].name

    def operation(self) -> Operation:
        """Return the operation."""
        question = self._question
        if question.path is None:
            raise TypeError(f"the question {question.name} has no route")
        kind = question.parameters
        parameters = msgspec.defstruct(
            kind.__name__,
            [_field(parameter) for parameter in question.takes],
            bases=(PagedParameters,),
            namespace={"__doc__": kind.__doc__},
            frozen=True,
            kw_only=True,
        )
        return Operation(
            path=question.path,
            handler=self._answer,
            summary=question.summary,
            description=question.description,
            parameters=cast("type[PagedParameters]", parameters),
            answer=Results[question.result],  # type: ignore[name-defined]
            line=question.result,
            problems=(404, 409, 410),
            latest=None if question.few is None else self._few,
        )

    def _answer(self, service: Service, call: Call[Any]) -> Answer | StreamedAnswer:
        given: PagedParameters = call.parameters
        question = self._question
        is_streamed = wants_lines(given, call.headers)
        values = {one.name: getattr(given, one.name) for one in question.takes}
        try:
            asked = question.given(**values)
        except ParameterError as error:
            raise conflict(error.name, str(error), error.accepts) from None  # limits were checked before
        wanted = digest_of(question.name, *values.values())
        cursor = read_cursor(given.cursor, wanted) if given.cursor else None
        after = tuple(cursor.after) if cursor else None
        source = set_of(service, cursor) if call.pinned is None else call.pinned
        snapshot, named = _snapshot(source)
        if cursor is not None and cursor.set != named:
            raise conflict("cursor", "the cursor is of another serial or epoch")
        try:
            found = question.answer(snapshot, asked, after)
        except OtherSnapshotError as error:
            accepts = "the path without /at/" if call.pinned else "the path below /at/SERIAL"
            raise ProblemError(409, "conflict", str(error), parameter="at", accepts=accepts) from None
        if is_streamed:
            modified = source.at if isinstance(source, Pinned) else source.published.published_at
            return StreamedAnswer(lines_of(found.results), serial=found.serial, modified=modified, varies=("Accept",))
        content, is_empty = self._page(found, given, after, wanted, named)
        hints = tuple(question.hints(snapshot, asked)) if is_empty else ()
        content |= {"hints": tuple(map(str, hints)), "suggestions": suggestions_in(hints)}
        if isinstance(source, Pinned):
            answer = past_answer(source, Results(epoch=source.epoch, **content))
            if hints:
                answer.lasting = Lasting.REDIRECT  # hints are of the names that are known today
        else:
            answer = published_answer(source, Results(set=source.id, **content))
        answer.varies = ("Accept",)
        return answer

    def _page(
        self, found: Any, given: PagedParameters, after: After, wanted: str, named: str
    ) -> tuple[dict[str, Any], bool]:
        """Return the fields of a page of what was found, and whether nothing was found at all."""
        key, limit = self._question.sort_key, given.limit
        if key is None:
            raise TypeError(f"{self._question.name} has a route, so it needs a sort_key")
        if limit is None and isinstance(found, Stream):
            limit = PAGE_LIMIT
        rest = (one for one in found.results if after is None or key(one) > after)
        results = list(rest if limit is None else islice(rest, limit + 1))
        following = None
        if limit is not None and len(results) > limit:
            following = Cursor(named, wanted, list(key(results[limit - 1])), 0).text()
        content = {
            "serial": found.serial,
            "followed_projects": found.followed_projects,
            "results": results[:limit],
            "next": following,
        }
        return content, not results and after is None

    def _few(self, service: Service, name: str) -> Answer | None:
        datasets = service.datasets()
        few = self._question.few
        found = None if few is None else few(published_snapshot(datasets), name)
        if found is None or not found.results:
            return None
        content = Results(
            serial=found.serial,
            set=datasets.id,
            followed_projects=found.followed_projects,
            results=cast("Any", found.results),
        )
        answer = published_answer(datasets, content)
        answer.varies = ("Accept",)
        return answer


def _snapshot(source: OpenSet | Pinned) -> tuple[Snapshot, str]:
    """Return the snapshot of a source, and the name that cursors have for it."""
    if isinstance(source, Pinned):
        return CatalogSnapshot(source.catalog, source.serial), f"{source.serial}.{source.epoch}"
    return published_snapshot(source), source.id


def published_snapshot(datasets: OpenSet) -> PublishedSnapshot:
    """Return the snapshot of a set of datasets."""
    return PublishedSnapshot(datasets.reader, datasets.opened)


def _field(parameter: Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return the field of a parameter, as msgspec takes it."""
    accepts = {name: value for name, value in asdict(parameter.accepts).items() if value is not None}
    kind = Annotated[parameter.type, Meta(description=accepts.pop("text"), **accepts)]  # type: ignore[name-defined]
    return (parameter.name, kind) if parameter.is_required else (parameter.name, kind, parameter.default)
