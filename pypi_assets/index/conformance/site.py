"""A server on loopback that answers as a function says, with the faults that the checks inject."""

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its path with the query, its headers by name in lower case, and the time of its arrival."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """An answer. If `sent` is set, the connection breaks after that many bytes of the body."""

    body: bytes = b""
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None


NOT_FOUND = SiteAnswer(b"not found", "text/plain", 404)
Answers = Callable[[Request], SiteAnswer | None]
"""Returns the answer to a request; None means 404."""


@dataclass
class Site:
    """A running server. `trouble` sees each request first and can answer instead of the site.

    If `login` is set, a request without these credentials gets 401. An answer with status 200 has an ETag, and a
    conditional request with that ETag gets 304.
    """

    answer: Answers
    now: Callable[[], float]
    url: str = ""
    login: str | None = None
    trouble: Answers = lambda _: None
    received: list[Request] = field(default_factory=list)

    def respond(self, request: Request) -> SiteAnswer:
        """Return the answer to a request, and record it."""
        self.received.append(request)
        answer = self.trouble(request)
        if answer is not None:
            return answer
        if self.login is not None and request.headers.get("authorization") != self.login:
            return SiteAnswer(b"login", "text/plain", 401, {"WWW-Authenticate": 'Basic realm="index"'})
        answer = self.answer(request) or NOT_FOUND
        if answer.status != 200 or request.method != "GET":
            return answer
        etag = f'"{hashlib.sha256(answer.body).hexdigest()[:20]}"'
        if request.headers.get("if-none-match") == etag:
            return SiteAnswer(status=304, headers={"ETag": etag})
        return SiteAnswer(answer.body, answer.content_type, 200, {"ETag": etag, **answer.headers}, answer.sent)


@contextmanager
def serving(answer: Answers, now: Callable[[], float], *, host: str = "127.0.0.1", port: int = 0) -> Iterator[Site]:
    """Serve `answer` from threads during the context. Port 0 selects a free port; `now` times the requests."""
    site = Site(answer, now)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = site.respond(Request(self.command, self.path, headers, self.rfile.read(length), site.now()))
            self.send_response(answer.status)
            body = b"" if answer.status == 304 else answer.body
            for name, value in {"Content-Type": answer.content_type, **answer.headers}.items():
                self.send_header(name, value)
            if answer.status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if answer.sent is None else body[: answer.sent])
            if answer.sent is not None:
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

        do_GET = do_POST = handle_any  # noqa: N815 - names of the base class

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    class _SiteServer(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    with _SiteServer((host, port), Handler) as server:
        site.url = f"http://{host}:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="site")
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
