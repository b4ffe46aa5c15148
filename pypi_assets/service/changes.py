"""The routes of the journal: the changes after a cursor, at once or as soon as there are any, and a stream of changes.

A waiting request takes no thread. A client that stops reading delays no other client and holds no memory: the changes
that it has not received are read from the segments when it continues.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.types import Receive, Scope, Send

from pypi_assets.catalog.reports.moments import TIME_PATTERN
from pypi_assets.journal.change_types import Change, with_time
from pypi_assets.journal.cursors import Cursor, JournalCursorError
from pypi_assets.journal.filters import GAINED, KINDS, FilterError, RecordFilter
from pypi_assets.journal.journal_errors import BeginsLaterError, NoJournalError, SinceError
from pypi_assets.journal.segment_files import JournalDamagedError
from pypi_assets.journal.tailing import SINCE_ACCEPTS, RecordBatch, beginning, cursor_since
from pypi_assets.service.operations import Call, Endpoint, Operation, respond
from pypi_assets.service.parameters import OperationParameters, convert_parameters, query_fields, whole
from pypi_assets.service.problems import ProblemError, bad_parameter, not_found, unavailable
from pypi_assets.service.responses import Lasting, StreamedAnswer, WholeAnswer, serial_header
from pypi_assets.service.service import Service

NO_JOURNAL = "there is no journal yet: write it with `pypi-assets journal write`"
EVENT_STREAM = "text/event-stream"
LONGEST_WAIT_S = 60
HEARTBEAT_S = 15.0
_STREAM_RECORDS, _STREAM_BYTES = 500, 256 * 1024
"""The memory limit for one client of a stream: the next batch, plus the record that exceeds the limit."""
_KINDS = tuple(dict.fromkeys(kind for kinds in KINDS.values() for kind in kinds))
_LIST = whole(r"^[^,\s][^,]{0,999}(,[^,\s][^,]{0,999})*$")
_MOST_CHARACTERS = 1_900
"""The limit for the values of one parameter. It keeps their number below the limit of a filter."""


def _some_of(values: Iterable[str]) -> str:
    """Return a pattern for a list of these values in any case. Patterns in JSON Schema have no flag for case."""
    either = "|".join("".join(map(_in_either_case, value)) for value in values)
    return whole(f"^({either})(,({either}))*$")


def _in_either_case(character: str) -> str:
    return "[ _-]" if character == " " else f"[{character}{character.upper()}]"


SinceText = Annotated[
    str,
    Meta(
        pattern=whole(rf"^(now|[0-9]{{1,18}}|{TIME_PATTERN}|[A-Za-z0-9_-]{{4,80}})$"),
        description=f"the start: {SINCE_ACCEPTS}",
    ),
]
ProjectNames = Annotated[
    str,
    Meta(max_length=_MOST_CHARACTERS, pattern=_LIST, description="project names in any spelling, separated by commas"),
]
KindNames = Annotated[
    str,
    Meta(
        max_length=_MOST_CHARACTERS,
        pattern=_some_of(_KINDS),
        description=f"kinds, separated by commas: {', '.join(_KINDS)}",
    ),
]
StreamNames = Annotated[
    str, Meta(max_length=200, pattern=_some_of(KINDS), description=f"streams, separated by commas: {', '.join(KINDS)}")
]
ModuleNames = Annotated[
    str,
    Meta(
        max_length=_MOST_CHARACTERS,
        pattern=_LIST,
        description="modules, separated by commas: selects records of the stream content that name them or submodules",
    ),
]


GainedFacts = Annotated[
    str,
    Meta(
        max_length=200,
        pattern=_some_of(GAINED),
        description=f"gains of a release over the release before, separated by commas: {', '.join(GAINED)}",
    ),
]


class FilterParameters(OperationParameters, frozen=True):
    """A filter of changes. Every given parameter must match, by any of its values."""

    project: ProjectNames | None = None
    kind: KindNames | None = None
    stream: StreamNames | None = None
    module: ModuleNames | None = None
    gained: GainedFacts | None = None

    def wanted(self) -> RecordFilter:
        """Return the filter. Raises a ProblemError that names the invalid parameter."""
        given = (self.project, self.kind, self.stream, self.module, self.gained)
        try:
            return RecordFilter.parse(*(one.split(",") if one else [] for one in given))
        except FilterError as error:
            raise bad_parameter(error.field, str(error), error.accepts) from None


class ChangesParameters(FilterParameters, frozen=True):
    """The beginning of the changes, and the time to wait."""

    since: SinceText | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000, description="the number of changes in an answer: 1 to 1000")] = 100
    wait: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST_WAIT_S,
            description=f"the number of seconds to wait if there is no change yet: 0 to {LONGEST_WAIT_S}",
        ),
    ] = 0


class StreamParameters(FilterParameters, frozen=True):
    """The beginning of the stream. The header Last-Event-ID of reconnecting clients takes precedence."""

    since: SinceText = "now"


class Changes(msgspec.Struct, frozen=True):
    """Changes in order. To continue, send `cursor` as `since`, also if there are no changes.

    The journal is complete up to the serial `through`.
    """

    changes: tuple[Change, ...]
    cursor: str
    through: int


def begin(service: Service, since: str | None, wanted: RecordFilter) -> Cursor:
    """Return the cursor at which a request begins. Raises a ProblemError."""
    try:
        with journal_problems():
            journal = service.changes.journal
            if since is None:
                return beginning(journal, wanted)
            return cursor_since(since, journal, service.catalog, wanted)
    except SinceError as error:
        raise not_found(str(error), parameter="since") from None


def next_batch(service: Service, after: Cursor, wanted: RecordFilter, limit: int, **bounds: int) -> RecordBatch:
    """Return the records after a cursor. Raises a ProblemError."""
    with journal_problems():
        return service.changes.tail().batch(after, wanted, limit, **bounds)


@contextmanager
def journal_problems() -> Iterator[None]:
    """Raise a ProblemError if the journal is missing or corrupt, or begins after the requested position."""
    try:
        yield
    except BeginsLaterError as error:
        raise ProblemError(410, "gone", str(error), parameter="since") from None
    except NoJournalError:
        raise unavailable(NO_JOURNAL, "not-built-yet") from None
    except JournalDamagedError:  # only operators may see the file's name
        raise unavailable(
            "a file of the journal is corrupt or missing: run `pypi-assets journal verify` to find it"
        ) from None


def _changes(service: Service, call: Call[ChangesParameters]) -> WholeAnswer:
    given = call.parameters
    wanted = given.wanted()
    return _answer(next_batch(service, begin(service, given.since, wanted), wanted, given.limit))


def _answer(batch: RecordBatch) -> WholeAnswer:
    lines = b",".join(with_time(line) for _, line in batch.lines)
    body = b'{"changes":[%s],"cursor":"%s","through":%d}' % (lines, str(batch.cursor).encode(), batch.through)
    return WholeAnswer(body, serial=batch.through, lasting=Lasting.NO_STORE)


def _no_stream(_service: Service, _call: Call[Any]) -> WholeAnswer | StreamedAnswer:
    raise NotImplementedError  # the endpoint streams instead


class _Presence:
    """Watches the connection of a request. `ended` is done once the client disconnects or the server stops."""

    def __init__(self, service: Service, receive: Receive) -> None:
        self.ended: asyncio.Future[None] = asyncio.ensure_future(self._disconnected(receive))
        self._waits = service.waits
        if service.is_closing:
            self.ended.cancel()

    def __enter__(self) -> "_Presence":
        self._waits.add(self.ended)
        return self

    def __exit__(self, *_error: object) -> None:
        self._waits.discard(self.ended)
        self.ended.cancel()

    async def _disconnected(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


class WaitingEndpoint(Endpoint):
    """Answers as soon as there is a change, or when the client's waiting time is over."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Mapping[str, str] = scope["pypi_assets.headers"]
        scope["pypi_assets.route"] = self.route
        query = query_fields(scope["query_string"].decode("latin-1"))
        given = convert_parameters(ChangesParameters, scope["path_params"], query)
        with _Presence(self.service, receive) as presence:
            answer = await self._wait(given, presence, headers.get("accept-encoding", ""))
        await respond(self.service, scope, receive, send, answer, headers)

    async def _wait(
        self, given: ChangesParameters, presence: _Presence, accept_encoding: str
    ) -> WholeAnswer | StreamedAnswer:
        wanted, loop = given.wanted(), asyncio.get_running_loop()
        until = loop.time() + given.wait
        batches: list[RecordBatch] = []

        def read(since: str | None) -> WholeAnswer:
            after = batches[-1].cursor if batches else begin(self.service, since, wanted)
            batches.append(next_batch(self.service, after, wanted, given.limit))
            answer = _answer(batches[-1])
            answer.form(answer.encoding_for(accept_encoding))
            return answer

        while True:
            answer = await self._patiently(partial(read, given.since))
            found = batches[-1]
            if found.lines or not found.is_last or not wanted.read_streams or loop.time() >= until:
                return answer
            if not await self.service.changes.wait_beyond(
                self.service.threads.run, found.through, wanted.read_streams, until, presence.ended
            ):
                return answer


class StreamEndpoint(Endpoint):
    """Sends changes as they are published, as long as the client reads them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Mapping[str, str] = scope["pypi_assets.headers"]
        scope["pypi_assets.route"] = self.route
        query = query_fields(scope["query_string"].decode("latin-1"))
        given = convert_parameters(StreamParameters, scope["path_params"], query)
        wanted = given.wanted()
        with _Presence(self.service, receive) as presence:
            first = await self._run(partial(self._begin, given.since, wanted, headers.get("last-event-id")))
            batch = await self._run(partial(self._next, first, wanted))  # before the head, so that errors get a status
            answer = StreamedAnswer(
                iter(()), EVENT_STREAM, lasting=Lasting.NO_STORE, headers=[("X-Accel-Buffering", "no")]
            )
            head = [*answer.head("identity"), serial_header(batch.through)]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            if scope["method"] != "HEAD":
                await self._send_all(send, presence, wanted, batch)
        await send({"type": "http.response.body", "body": b""})

    async def _run(self, work: Any) -> Any:
        try:
            async with asyncio.timeout(self.service.settings.service_timeout_s):
                return await self.service.threads.run_part(work)
        except TimeoutError:
            raise unavailable("the changes could not be read in time", "too-slow") from None

    def _begin(self, since: str, wanted: RecordFilter, last_event_id: str | None) -> Cursor:
        if last_event_id is None or not last_event_id.strip():
            return begin(self.service, since, wanted)
        try:
            return Cursor.parse(last_event_id.strip())
        except JournalCursorError as error:
            raise not_found(str(error), parameter="Last-Event-ID") from None

    def _next(self, after: Cursor, wanted: RecordFilter) -> RecordBatch:
        return next_batch(self.service, after, wanted, _STREAM_RECORDS, most_bytes=_STREAM_BYTES)

    async def _send_all(self, send: Send, presence: _Presence, wanted: RecordFilter, batch: RecordBatch) -> None:
        loop = asyncio.get_running_loop()
        await _send(send, b"retry: 2000\n" + _heartbeat(batch.cursor if not batch.lines else None))
        while not presence.ended.done():
            if batch.lines:
                await _send(send, b"".join(_event(cursor, with_time(line)) for cursor, line in batch.lines))
            if batch.is_last and not await self.service.changes.wait_beyond(
                self.service.threads.run,
                batch.through,
                wanted.read_streams or tuple(KINDS),
                loop.time() + HEARTBEAT_S,
                presence.ended,
            ):
                if not presence.ended.done():
                    await _send(send, _heartbeat(batch.cursor))
                batch = RecordBatch([], batch.cursor, batch.through, is_last=True)
                continue
            batch = await self._run(partial(self._next, batch.cursor, wanted))


async def _send(send: Send, chunk: bytes) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})


def _event(cursor: Cursor, line: bytes) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (str(cursor).encode(), line)


def _heartbeat(cursor: Cursor | None) -> bytes:
    """Return a comment line. With a cursor, it also moves the position of a client that has received no change."""
    return b": \n\n" if cursor is None else b": \nid: %s\n\n" % str(cursor).encode()


CHANGES = Operation(
    path="/v1/changes",
    handler=_changes,
    summary="Return the changes after a cursor, in order",
    description=(
        "A client that always sends the cursor of the last answer gets each change at least once. Without `since`, the"
        " answer begins with the first change in the journal. An answer without changes is not always the end: it may"
        " have skipped many changes that do not match, and its cursor is after them."
    ),
    parameters=ChangesParameters,
    answer=Changes,
    problems=(404, 410),
    at_serial=False,
    endpoint=WaitingEndpoint,
)
STREAM = Operation(
    path="/v1/changes/stream",
    handler=_no_stream,
    summary="Stream changes as they are published (Server-Sent Events)",
    description=(
        "The id of an event is the cursor after it, and its data is the record. A reconnecting client sends the last id"
        " as Last-Event-ID, which browsers do automatically. A comment every 15 seconds keeps the connection alive."
    ),
    parameters=StreamParameters,
    media_types=(EVENT_STREAM,),
    problems=(404, 410),
    at_serial=False,
    endpoint=StreamEndpoint,
)
OPERATIONS = (CHANGES, STREAM)
