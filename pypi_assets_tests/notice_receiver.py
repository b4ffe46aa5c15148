"""A server on loopback that receives notices as JSON."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@contextmanager
def receiving(status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the Apprise URL of a server that responds with `status`, and the list of JSON bodies that it receives."""
    received: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"json://127.0.0.1:{server.server_port}/", received
        finally:
            server.shutdown()
            thread.join()
