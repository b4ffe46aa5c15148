"""A webhook receiver on loopback that checks signatures as receivers should and fails on request."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "a secret of some length"


@dataclass
class Receiver:
    """A running receiver. `letters` are the bodies answered with 200, `refused` the others. `status` decides."""

    url: str = ""
    letters: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    deliveries: list[str] = field(default_factory=list)
    status: Callable[[dict[str, Any]], int] = lambda _body: 200
    headers: dict[str, str] = field(default_factory=dict)
    arrived: list[dict[str, Any]] = field(default_factory=list)
    """All bodies, also those that are not answered yet."""
    may_answer: threading.Event = field(default_factory=threading.Event)
    """Answers wait until this is set, as it is at first."""

    def __post_init__(self) -> None:
        self.may_answer.set()

    def serials(self, project: str) -> list[int]:
        """Return the serials of a project's received records in the order of arrival."""
        return [record["serial"] for body in self.letters if body["project"] == project for record in body["changes"]]


def is_signed(headers: Any, body: bytes) -> bool:
    timestamp = headers["X-Pypi-Assets-Timestamp"]
    expected = hmac.new(SECRET.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    is_new = abs(time.time() - int(timestamp)) < 300
    return is_new and hmac.compare_digest(headers["X-Pypi-Assets-Signature"], f"sha256={expected}")


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Yield a listening receiver."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            assert is_signed(self.headers, content)
            body = json.loads(content)
            receiver.arrived.append(body)
            receiver.may_answer.wait(120)
            status = receiver.status(body)
            receiver.deliveries.append(self.headers["X-Pypi-Assets-Delivery"])
            (receiver.letters if status == 200 else receiver.refused).append(body)
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
