"""A real local HTTP proxy that requires credentials. It forwards requests and opens tunnels for TLS."""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from pypi_assets_tests.index.loopback import Server

AUTHORIZATION = "Basic bWU6aHVzaCE="


@dataclass
class Proxy:
    """A running proxy. `received` are the request lines that it accepted, `headers` their headers."""

    port: int = 0
    received: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Return the proxy's URL without credentials."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url_with_credentials(self) -> str:
        return f"http://me:hush%21@127.0.0.1:{self.port}"


@contextmanager
def proxying() -> Iterator[Proxy]:
    proxy = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        timeout = 10

        def is_welcome(self) -> bool:
            if self.headers.get("Proxy-Authorization") != AUTHORIZATION:
                self.send_response(407)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return False
            proxy.received.append(f"{self.command} {self.path}")
            proxy.headers.append({name.lower(): value for name, value in self.headers.items()})
            return True

        def do_GET(self) -> None:
            if not self.is_welcome():
                return
            parts = urlsplit(self.path)
            connection = HTTPConnection("127.0.0.1", parts.port or 80)  # every name resolves to this machine
            connection.request("GET", parts.path, headers={"Host": parts.netloc})
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_CONNECT(self) -> None:
            if not self.is_welcome():
                return
            self.send_response(200)
            self.end_headers()
            with socket.create_connection(("127.0.0.1", int(self.path.rpartition(":")[2]))) as target:
                ends = {self.connection: target, target: self.connection}
                while True:
                    for end in select.select(list(ends), [], [], 10)[0]:
                        data = end.recv(65536)
                        if not data:
                            self.close_connection = True
                            return
                        ends[end].sendall(data)

        def log_message(self, *args: object) -> None:
            """Log nothing, since tests read `received`."""

    with Server(("127.0.0.1", 0), Handler).is_running() as proxy.port:
        yield proxy
