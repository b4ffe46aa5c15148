"""Connections of clients: how many there may be, how long a request may take to arrive, and what is no HTTP."""

import asyncio
from types import SimpleNamespace
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from pypi_assets.service.at_once import AtOnce
from pypi_assets.service.problems import MEDIA_TYPE, ProblemError, problem_answer

HEAD_S = 10.0
"""For how long the head of a request may arrive, from its first byte, or from the beginning of the connection."""
BODY_S = 30.0
"""For how long its body may."""
TAKE_S = 60.0
"""For how long a client may take what is left of its last answer, once its connection is to end."""
MOST_HEAD_BYTES = 64 * 1024
"""How many bytes of a request may come that are no body: its head, or what is around the chunks of a body."""
GRACE_S = 30.0
"""For how long answers that have begun are completed when the service stops."""
_LINGER_S = 0.5
_PIECE_BYTES = 16 * 1024
"""How many bytes are parsed before they are counted against the limit again."""
_CHUNK_HEAD_BYTES = 16
"""How many bytes around each part of a body do not count: the size of a chunk and its line ends."""
_MOST_AT_ONCE = 16
"""How many requests that arrive together are answered before those of other connections."""
_ANSWERED: Any = SimpleNamespace(response_complete=True, message_event=asyncio.Event())
"""What the server sees of a request that was answered at once."""


class ServiceConnection(HttpToolsProtocol):
    """Refuses connections above `most`, and ends one whose request arrives too slowly, or whose client does not take
    the last answer. None of that costs a thread."""

    most = 1_000
    _rest_s: float | None = None
    """How long the rest of the request may take that has begun to arrive."""
    _deadline: asyncio.TimerHandle | None = None
    _end_of_taking: asyncio.TimerHandle | None = None
    _is_refused = False
    _head_bytes = 0
    """How many bytes came that are no body, since the last request or the last part of a body."""
    _at_once: AtOnce | None = None
    _left_at_once = 0
    """How many requests may still be answered at once of what was received last."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._at_once = getattr(self.app, "at_once", None)
        if len(self.connections) > self.most:
            self._refuse(ProblemError(503, "busy", "there are too many connections", headers=[("Retry-After", "1")]))
        else:
            self._expect(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        if self._end_of_taking is not None:
            self._end_of_taking.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Ends what waits for changes; all other answers that have begun are completed."""
        if self.cycle is not None and not self.cycle.response_complete:
            end: Any = self.cycle.scope.get("pypi_assets.end")
            if end is not None:
                end()
        super().shutdown()
        self._abort_in(GRACE_S)

    def timeout_keep_alive_handler(self) -> None:
        """Ends a connection that was idle for long."""
        super().timeout_keep_alive_handler()
        self._end_when_taken()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._end_when_taken()

    def data_received(self, data: bytes) -> None:
        self._left_at_once = _MOST_AT_ONCE
        rest = memoryview(data)
        while rest and not self._is_refused:
            rest = self._parse_some(rest)
        if self._is_refused or self._deadline is not None:
            return
        if self._rest_s is not None:  # most requests arrive whole, and need no timer
            self._expect(self._rest_s)
        elif self.timeout_keep_alive_task is None and self._is_idle:  # empty lines begin no request
            self._expect(HEAD_S)

    def _parse_some(self, data: memoryview) -> memoryview:
        """Parses the first bytes of what has arrived, and returns the others. Rejects a request once too much of it
        came that is no body, before the parser has more of it."""
        size = min(len(data), _PIECE_BYTES, MOST_HEAD_BYTES - self._head_bytes)
        self._head_bytes += size
        super().data_received(bytes(data[:size]))
        if self._head_bytes >= MOST_HEAD_BYTES and not self._is_refused:
            detail = f"more than {MOST_HEAD_BYTES} bytes came that are no body: the head, or what is around chunks"
            self._refuse(ProblemError(431, "too-large", detail))
        return data[size:]

    @property
    def _is_idle(self) -> bool:
        """Whether no answer is being made."""
        return self.cycle is None or self.cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._rest_s = HEAD_S

    def on_headers_complete(self) -> None:
        self._expect(None)
        self._rest_s = BODY_S
        self._head_bytes = 0
        if not self._is_answered_at_once():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = max(0, self._head_bytes - len(body) - _CHUNK_HEAD_BYTES)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._expect(None)
        self._rest_s = None
        self._head_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP request."""
        self._refuse(ProblemError(400, "bad-request", "this is no HTTP request that can be read"))
        del msg

    def _is_answered_at_once(self) -> bool:
        """Answers a plain request, if nothing that came before it is still to be answered or taken by the client."""
        parser = self.parser
        if self._at_once is None or not self._left_at_once or not self._is_idle or self.flow.write_paused:
            return False
        if parser.get_method() != b"GET" or parser.get_http_version() != "1.1":
            return False
        if not parser.should_keep_alive() or parser.should_upgrade():
            return False
        answer = self._at_once.answer(self.url, self.headers, self.server_state.default_headers, self.client)
        if answer is None:
            return False
        self._left_at_once -= 1
        self.transport.write(answer)
        self.cycle = _ANSWERED
        self.on_response_complete()
        return True

    def _expect(self, seconds: float | None) -> None:
        """What is expected next must be there within these seconds; None: nothing is."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._is_idle:
            self._refuse(ProblemError(408, "too-slow", "the request took too long to arrive"))
        else:
            self.transport.abort()

    def _refuse(self, problem: ProblemError) -> None:
        """Answers a problem without a request, and ends the connection."""
        body = problem_answer(problem).body
        head = [
            STATUS_LINE[problem.problem.status],
            b"content-type: " + MEDIA_TYPE.encode() + b"\r\n",
            b"cache-control: no-store\r\n",
            *(f"{name}: {value}\r\n".encode() for name, value in problem.headers),
            b"content-length: " + str(len(body)).encode() + b"\r\n",
            b"connection: close\r\n\r\n",
        ]
        self.transport.write(b"".join(head) + body)
        self._is_refused = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # what is being answered is dropped
        if not self.transport.get_write_buffer_size():  # else it ends with the others when the service stops
            self.connections.discard(self)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self._close)  # at once, what is unread would take the answer with it

    def _close(self) -> None:
        self.transport.close()
        self._end_when_taken()

    def _end_when_taken(self) -> None:
        """A connection that is being closed ends when the client has taken what was written, or else in time."""
        if self.transport.is_closing() and self.transport.get_write_buffer_size():
            self._abort_in(TAKE_S)

    def _abort_in(self, seconds: float) -> None:
        """Ends the connection after these seconds, or when it was to end before."""
        if self._end_of_taking is not None:
            if self._end_of_taking.when() <= self.loop.time() + seconds:
                return
            self._end_of_taking.cancel()
        self._end_of_taking = self.loop.call_later(seconds, self.transport.abort)
