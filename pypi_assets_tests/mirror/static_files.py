"""A static HTTP server over a folder. Python's own server, without listings, and with faults on request."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Answer = Callable[[SimpleHTTPRequestHandler], None]


@dataclass
class StaticFiles:
    """A server of `folder` at `url`. `answers` replace files by path, and `requested` lists all paths in order."""

    url: str
    folder: Path
    answers: dict[str, Answer] = field(default_factory=dict)
    requested: list[str] = field(default_factory=list)
    before: Callable[[str], None] = lambda _path: None


@contextmanager
def static_files(folder: Path) -> Iterator[StaticFiles]:
    """Serve a folder on loopback."""

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # otherwise each answer waits some 40 ms for the client to confirm its headers

        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            served.requested.append(path)
            served.before(path)
            if answer := served.answers.get(path):
                answer(self)
            else:
                super().do_GET()

        def list_directory(self, path: object) -> None:
            self.send_error(403)

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        served = StaticFiles(f"http://127.0.0.1:{server.server_port}", folder)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


def send(content: bytes, *, status: int = 200, **headers: str) -> Answer:
    """Return an answer with this content."""

    def answer(request: SimpleHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)

    return answer


def send_endlessly(request: SimpleHTTPRequestHandler) -> None:
    """Send an endless answer."""
    request.send_response(200)
    request.send_header("Connection", "close")
    request.end_headers()
    request.close_connection = True
    try:
        while True:
            request.wfile.write(b"[" * 65_536)
    except OSError:
        return
