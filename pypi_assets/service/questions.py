"""Derive operations from questions: routes, routes at a serial, pages, JSON lines, and OpenAPI descriptions."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache, partial
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from msgspec import Meta

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.reports.moments import InexactSerialError, answerable_serial, pinned_answer
from pypi_assets.lookup.answers import Stream
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.paging import PageCursor, digest_of, page_of
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.question import (
    Batch,
    Question,
    all_questions,
    find_question,
    parameters_of,
    unwrapped,
)
from pypi_assets.questions.snapshot import Found, OtherSnapshotError, Snapshot
from pypi_assets.service.answering import (
    CatalogFacts,
    JobResolver,
    counted_chunks,
    counted_walk,
    read_cursor,
    set_of,
    time_limit,
)
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.parameters import NoParameters, annotated, body_type, limited, parameters_type
from pypi_assets.service.parameters import OperationParameters as OperationParameters
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import ProblemError, conflict, not_found, suggestions_in
from pypi_assets.service.responses import Lasting, StreamedAnswer, WholeAnswer, to_json
from pypi_assets.service.results import (
    One,
    PagedParameters,
    Results,
    lines_of,
    past_answer,
    published_answer,
    wants_lines,
)
from pypi_assets.service.service import Service


class NewestCatalog(NamedTuple):
    """The catalog at its complete serial, for questions that datasets cannot answer.

    Further pages are read at the serial of the first page.
    """

    catalog: Catalog
    serial: int
    epoch: int


Source = OpenSet | Pinned | NewestCatalog


def all_operations() -> Iterator[Operation]:
    """Yield the operations of all questions that have a route."""
    for question in all_questions():
        if question.path is not None:
            yield operation(question.name)
        if question.batch is not None:
            yield batch_operation(question.name)


@cache
def operation(name: str) -> Operation:
    """Return the operation of the question of this name."""
    return _AskedQuestion(find_question(name)).operation()


@cache
def batch_operation(name: str) -> Operation:
    """Return the operation that answers the question of this name about several subjects."""
    question = find_question(name)
    if question.batch is None:
        raise TypeError(f"question {name} has no batch")
    return _AskedTogether(question, question.batch).operation()


class _AskedQuestion:
    """The operation of a question."""

    def __init__(self, question: Question[Any]) -> None:
        self._question = question
        self._names = [parameter.name for parameter in question.takes]
        self._has_pages = question.sort_key is not None

    def operation(self) -> Operation:
        question = self._question
        if question.path is None:
            raise TypeError(f"question {question.name} has no route")
        answer = (One if question.is_single else Results)[question.result]
        return Operation(
            path=question.path,
            handler=self._answer,
            summary=question.summary,
            description=question.description,
            method="POST" if question.has_body else "GET",
            parameters=NoParameters
            if question.has_body
            else parameters_type(
                question.parameters, question.takes, PagedParameters if self._has_pages else OperationParameters
            ),
            body=body_type(question.parameters, question.takes) if question.has_body else None,
            answer=answer,
            line=question.result if self._has_pages else None,
            problems=(404, 409, 410) if self._has_pages else (404, 409),
            few=None if question.few is None else self._few,
        )

    def _answer(self, service: Service, call: Call[Any]) -> WholeAnswer | StreamedAnswer:
        question = self._question
        given = call.body if question.has_body else call.parameters
        is_streamed = self._has_pages and wants_lines(given, call.headers)
        values = [getattr(given, name) for name in self._names]
        asked = question.parameters(*values)  # the limits were checked when the request was parsed
        question.check(asked)
        long_by = question.long_by(asked)
        if long_by and not is_streamed:
            detail = "a search of the whole index is only available as JSON lines"
            raise conflict(long_by, detail, f"{long_by}=1&format=ndjson")
        if question.answer_with is not None:
            service = service.of_one_set()  # so that resolutions use the same datasets
        cursor = read_cursor(given.cursor, question, asked) if self._has_pages and given.cursor else None
        source = self._source(service, call, asked, cursor)
        facts = CatalogFacts(service, source.serial) if question.is_single else None
        snapshot, named = _snapshot(service, source, facts)
        _require_same(cursor, named)
        answer = question.answer
        if question.answer_with is not None:
            answer = partial(question.answer_with, JobResolver(service, call.pinned, call.client))
        after = tuple(cursor.after) if cursor else None
        try:
            with counted_walk() if long_by and call.pinned is not None else nullcontext():
                if isinstance(source, NewestCatalog):
                    found, epoch = pinned_answer(source.catalog, source.serial, partial(answer, snapshot, asked, after))
                    source = source._replace(epoch=epoch)
                    named = _named(source)
                    _require_same(cursor, named)  # it may have changed in the meantime
                else:
                    found = answer(snapshot, asked, after)
        except OtherSnapshotError as error:
            raise _elsewhere(error, call) from None
        if is_streamed:
            return self._lines(source, found, asked)
        content = self._page(found, given, cursor, named, snapshot, asked)
        hints: Sequence[str] = ()
        if not content["results"] and after is None:
            hints = tuple(question.hints(snapshot, asked))
            if (unknown := question.unknown(snapshot, asked)) is not None:
                detail = f"{question.nothing_found(asked)} as of serial {found.serial}"
                raise not_found(detail, hints=hints, parameter=unknown)
        if facts is not None:
            [result] = content["results"]
            return facts.marked(_answer_of(source, One, {"serial": found.serial, "result": result}))
        if hints:
            content |= {"hints": tuple(map(str, hints)), "suggestions": suggestions_in(hints)}
        made = _answer_of(source, Results, content)
        if hints and call.pinned is not None:
            made.lasting = Lasting.REDIRECT  # hints contain the names that are known today
        if self._has_pages:
            made.varies = ("Accept",)
        return made

    def _source(self, service: Service, call: Call[Any], asked: Any, cursor: PageCursor | None) -> Source:
        if call.pinned is not None:
            return call.pinned
        if self._question.needs_catalog(asked):
            return _newest_catalog(service.require_catalog(), cursor)
        return set_of(service, cursor)

    def _lines(self, source: Source, found: Found[Any], asked: Any) -> StreamedAnswer:
        """Return the results as lines. Results of a set are streamed; results at a serial are already in memory."""
        chunks = lines_of(found.results)
        if self._question.long_by(asked) and isinstance(source, OpenSet):
            chunks = counted_chunks(chunks)
        modified = source.published.published_at if isinstance(source, OpenSet) else getattr(source, "at", None)
        answer = StreamedAnswer(chunks, serial=found.serial, modified=modified, varies=("Accept",))
        if self._question.is_timed(asked):
            answer.lasting = Lasting.NO_STORE  # undecided projects may be decided the next time
        return answer

    def _page(
        self,
        found: Any,
        given: Any,
        cursor: PageCursor | None,
        named: str,
        snapshot: Snapshot,
        asked: Any,
    ) -> dict[str, Any]:
        """Return the fields of one page of the results."""
        question = self._question
        if not self._has_pages:
            return _whole(found)
        results, end = page_of(question, found, tuple(cursor.after) if cursor else None, given.limit)
        count: int | None = None
        if question.count is not None:
            if cursor is not None and cursor.count is not None:
                count = cursor.count
            elif not isinstance(found, Stream):
                count = len(found.results)
            elif (count := question.count(snapshot, asked)) is None and cursor is None:
                count = len(results) + (end is not None) + sum(1 for _ in found.results)
        following = None
        if end is not None:
            following = PageCursor(named, digest_of(question, asked), list(end), count).text()
        return {
            "serial": found.serial,
            "followed_projects": found.followed_projects,
            "results": results,
            "next": following,
            "count": count,
        }

    def _few(self, service: Service, call: Call[Any]) -> WholeAnswer | None:
        datasets, few = service.datasets(), self._question.few
        given = call.parameters
        [name, *others] = [getattr(given, field) for field in (*self._names, "limit", "cursor")]
        if few is None or any(others) or wants_lines(given, call.headers):
            return None
        found = few(published_snapshot(datasets), name)
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


class _AskedTogether:
    """The operation of a question about several subjects."""

    def __init__(self, question: Question[Any], batch: Batch) -> None:
        self._question, self._batch = question, batch
        self._takes = parameters_of(batch.parameters)

    def operation(self) -> Operation:
        question, batch = self._question, self._batch
        item = annotated(question.takes[0]) if batch.item is None else limited(*unwrapped(batch.item))
        subjects = Annotated[
            tuple[item, ...],  # type: ignore[valid-type]
            Meta(max_length=batch.most, description=f"up to {batch.most} items"),
        ]
        body = msgspec.defstruct(
            f"{question.parameters.__name__.removesuffix('Parameters')}Batch",
            [(batch.field, subjects)],
            namespace={"__doc__": batch.summary},
            frozen=True,
            forbid_unknown_fields=True,
        )
        return Operation(
            path=batch.path,
            method="POST",
            handler=self._answer,
            summary=batch.summary,
            description=batch.description,
            parameters=parameters_type(batch.parameters, self._takes, OperationParameters),
            body=body,
            answer=Results[question.result],  # type: ignore[name-defined]
        )

    def _answer(self, service: Service, call: Call[Any]) -> WholeAnswer:
        batch = self._batch
        subjects: Sequence[str] = getattr(call.body, batch.field)
        given = batch.parameters(**{one.name: getattr(call.parameters, one.name) for one in self._takes})
        source: Source = service.datasets() if call.pinned is None else call.pinned
        snapshot, _ = _snapshot(service, source)
        try:
            found = batch.answer(snapshot, subjects, given)
        except OtherSnapshotError as error:
            raise _elsewhere(error, call) from None
        return _answer_of(source, Results, _whole(found))


def _newest_catalog(catalog: Catalog, cursor: PageCursor | None) -> NewestCatalog:
    """Return the catalog at its complete serial, or at the serial of a cursor."""
    begun = None if cursor is None else cursor.serial
    try:
        known = None if begun is None else answerable_serial(catalog, begun)
    except InexactSerialError:
        raise _of_another_serial() from None
    with catalog.read() as connection:
        serial = complete_serial(connection) if known is None else known
        return NewestCatalog(catalog, serial, epoch_of(connection, serial))


def _whole(found: Found[Any]) -> dict[str, Any]:
    """Return the fields of an answer without pages."""
    return {"serial": found.serial, "followed_projects": found.followed_projects, "results": list(found.results)}


def _of_another_serial() -> ProblemError:
    """Return the problem of a cursor whose answer is no longer available."""
    return conflict("cursor", "the cursor belongs to another serial or epoch")


def _elsewhere(error: OtherSnapshotError, call: Call[Any]) -> ProblemError:
    """Return the problem of a question that only another snapshot can answer."""
    accepts = "the path below /at/SERIAL" if call.pinned is None else "the path without /at/"
    return ProblemError(409, "conflict", str(error), parameter="at", accepts=accepts)


def _answer_of(source: Source, kind: Any, content: dict[str, Any]) -> WholeAnswer:
    """Return the answer with these fields, as of a set or a serial."""
    if isinstance(source, Pinned):
        return past_answer(source, kind(epoch=source.epoch, **content))
    if isinstance(source, NewestCatalog):
        return WholeAnswer(to_json(kind(epoch=source.epoch, **content)), serial=source.serial)
    return published_answer(source, kind(set=source.id, **content))


def _snapshot(service: Service, source: Source, facts: CatalogFacts | None = None) -> tuple[Snapshot, str]:
    """Return the snapshot of a source, and its name in cursors."""
    if isinstance(source, OpenSet):
        return published_snapshot(source, facts), source.id
    limit = time_limit(service.settings.service_timeout_s)
    is_newest = isinstance(source, NewestCatalog)
    return CatalogSnapshot(source.catalog, source.serial, is_newest=is_newest, limit=limit), _named(source)


def _named(source: Pinned | NewestCatalog) -> str:
    """Return the name that cursors have for the catalog at a serial."""
    return f"{source.serial}.{source.epoch}"


def _require_same(cursor: PageCursor | None, named: str) -> None:
    """Raise a ProblemError if the cursor belongs to another set, serial or epoch."""
    if cursor is not None and cursor.set != named:
        raise _of_another_serial()


def snapshot_of(service: Service, source: Source) -> Snapshot:
    """Return the snapshot of a set of datasets, or of the catalog at a serial."""
    return _snapshot(service, source)[0]


def published_snapshot(datasets: OpenSet, facts: CatalogFacts | None = None) -> PublishedSnapshot:
    """Return the snapshot of a set of datasets."""
    return PublishedSnapshot(datasets.reader, datasets.opened, facts)
