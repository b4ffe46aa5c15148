"""A real local HTTP server that answers as a test defines, and records the requests that it received."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass(frozen=True)
class Answer:
    """An answer. `headers` override the Content-Length that the server adds. The connection closes after `is_last`."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    is_last: bool = False


@dataclass
class Loopback:
    port: int
    received: list[Request]
    scheme: str = "http"
    connections: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def other_url(self) -> str:
        """Return the URL of the same server under another host name."""
        return f"{self.scheme}://localhost:{self.port}"


class Server(ThreadingHTTPServer):
    """A server on its own port. It listens while `is_running` is open."""

    daemon_threads = True
    request_queue_size = 64

    @contextmanager
    def is_running(self) -> Iterator[int]:
        with self:
            thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield self.server_address[1]
            finally:
                self.shutdown()
                thread.join()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors, since tests include clients that hang up."""


@contextmanager
def serving(answer: Callable[[Request], Answer], tls: ssl.SSLContext | None = None) -> Iterator[Loopback]:
    loopback = Loopback(0, [], "https" if tls else "http")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        timeout = 10

        def setup(self) -> None:
            loopback.connections += 1
            super().setup()

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, body)
            loopback.received.append(request)
            reply = answer(request)
            self.send_response(reply.status)
            lengths = {} if "Transfer-Encoding" in reply.headers else {"Content-Length": str(len(reply.body))}
            for name, value in (lengths | reply.headers).items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)
            self.close_connection = reply.is_last

        do_POST = do_GET  # noqa: N815 - the name is http.server's

        def log_message(self, *args: object) -> None:
            """Log nothing, since tests read `received`."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls:  # the handler's thread does the handshake
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with server.is_running() as port:
        loopback.port = port
        yield loopback


@contextmanager
def answering(*answers: Answer) -> Iterator[Loopback]:
    """Return a function that gives `answers` in turn to any requests and then repeats the last one."""
    remaining = list(answers)
    one_at_a_time = threading.Lock()

    def answer(_: Request) -> Answer:
        with one_at_a_time:
            return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    with serving(answer) as loopback:
        yield loopback
