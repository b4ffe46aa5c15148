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
from pypi_assets.questions.question import Parameter, Question, all_questions
from pypi_assets.questions.snapshot import After, OtherSnapshotError, Snapshot
from pypi_assets.service.answers import Answer, Lasting, StreamedAnswer
from pypi_assets.service.cursors import Cursor, read_cursor, set_of
from pypi_assets.service.cursors import question as digest_of
from pypi_assets.service.lines import PAGE_LIMIT, PagedParameters, lines_of, wants_lines
from pypi_assets.service.lookups import Results, past_answer, published_answer
from pypi_assets.service.operations import Call, Operation, operation_routes
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import ProblemError, conflict
from pypi_assets.service.service import Service


def routes(service: Service) -> list[Route]:
    """Return the routes of all questions."""
    return list(operation_routes(service, [operation(one.name) for one in all_questions()]))


@cache
def operation(name: str) -> Operation:
    """Return the operation of the question of this name."""
    [question] = [one for one in all_questions() if one.name == name]
    return _Asked(question).operation()


class _Asked:
    """A question as the service answers it."""

    def __init__(self, question: Question[Any]) -> None:
        self._question = question
        self._name = question.takes[0].name

    def operation(self) -> Operation:
        """Return the operation."""
        question = self._question
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
        is_streamed = wants_lines(given, call.headers)
        wanted = digest_of(self._question.name, *(getattr(given, one.name) for one in self._question.takes))
        cursor = read_cursor(given.cursor, wanted) if given.cursor else None
        after = tuple(cursor.after) if cursor else None
        if call.pinned is not None:
            return self._at_serial(call.pinned, given, wanted, after, cursor, is_streamed=is_streamed)
        datasets = set_of(service, cursor)
        snapshot = _published(datasets)
        found = self._question.answer(snapshot, self._parameters(given), after)
        if is_streamed:
            return StreamedAnswer(
                lines_of(found.results),
                serial=datasets.serial,
                modified=datasets.published.published_at,
                varies=("Accept",),
            )
        content, is_empty = self._page(found, given, after, wanted, datasets.id)
        hints = tuple(self._question.hints(snapshot, self._parameters(given))) if is_empty else ()
        answer = published_answer(datasets, Results(set=datasets.id, hints=hints, **content))
        answer.varies = ("Accept",)
        return answer

    def _at_serial(
        self,
        pinned: Pinned,
        given: PagedParameters,
        wanted: str,
        after: After,
        cursor: Cursor | None,
        *,
        is_streamed: bool,
    ) -> Answer | StreamedAnswer:
        named = f"{pinned.serial}.{pinned.epoch}"
        if cursor is not None and cursor.set != named:
            raise conflict("cursor", "the cursor is of another serial or epoch")
        snapshot = CatalogSnapshot(pinned.catalog, pinned.serial)
        try:
            found = self._question.answer(snapshot, self._parameters(given), after)
        except OtherSnapshotError as error:
            raise ProblemError(409, "conflict", str(error), parameter="at", accepts="the path without /at/") from None
        if is_streamed:
            return StreamedAnswer(lines_of(found.results), serial=pinned.serial, modified=pinned.at, varies=("Accept",))
        content, is_empty = self._page(found, given, after, wanted, named)
        hints = tuple(self._question.hints(snapshot, self._parameters(given))) if is_empty else ()
        answer = past_answer(pinned, Results(epoch=pinned.epoch, hints=hints, **content))
        answer.varies = ("Accept",)
        if hints:
            answer.lasting = Lasting.REDIRECT  # hints are of the names that are known today
        return answer

    def _page(
        self, found: Any, given: PagedParameters, after: After, wanted: str, named: str
    ) -> tuple[dict[str, Any], bool]:
        """Return the fields of a page of what was found, and whether nothing was found at all."""
        key, limit = self._question.sort_key, given.limit
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

    def _parameters(self, given: PagedParameters) -> Any:
        return self._question.parameters(**{one.name: getattr(given, one.name) for one in self._question.takes})

    def _few(self, service: Service, name: str) -> Answer | None:
        datasets = service.datasets()
        few = self._question.few
        found = None if few is None else few(_published(datasets), name)
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


def _published(datasets: OpenSet) -> Snapshot:
    return PublishedSnapshot(datasets.reader, datasets.opened)


def _field(parameter: Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return the field of a parameter, as msgspec takes it."""
    accepts = {name: value for name, value in asdict(parameter.accepts).items() if value is not None}
    kind = Annotated[parameter.type, Meta(description=accepts.pop("text"), **accepts)]  # type: ignore[name-defined]
    return (parameter.name, kind) if parameter.is_required else (parameter.name, kind, parameter.default)
