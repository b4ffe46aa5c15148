"""Sources answer with complete bodies or typed errors, and redirect to no other host."""

import socket
import ssl
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from pypi_assets.index.connections import Network
from pypi_assets.index.transport import Timeouts
from pypi_assets.mirror.sources import (
    HttpSource,
    RefusedSourceError,
    SourceError,
    VanishedError,
    open_source,
    small_file,
)
from pypi_assets_tests.index.loopback import Answer, serving
from pypi_assets_tests.mirror.static_files import StaticFiles, send, send_endlessly, static_files
from pypi_assets_tests.naming import naming


@pytest.fixture
def served(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b c.json").write_bytes(b"[1]")
    with static_files(tmp_path) as files:
        yield files


def read(url: str, path: str = "x", most: int = 100) -> bytes:
    source = open_source(url)
    try:
        return small_file(source, path, most)
    finally:
        source.close()


def test_each_kind_of_source_serves_files(served: StaticFiles) -> None:
    for url in (served.url, served.folder.as_uri(), f"{served.url}/"):
        assert read(url, "a/b c.json") == b"[1]"
        with pytest.raises(VanishedError, match=naming("a/other")):
            read(url, "a/other")
        with pytest.raises(RefusedSourceError, match=naming("a/b c.json", 2)):
            read(url, "a/b c.json", 2)


@pytest.mark.parametrize(
    "url", ["ftp://x/y", "nothing", "https://", "https://a.example/x?y", "https://a b/", "http://user@/x"]
)
def test_invalid_source_is_rejected(url: str) -> None:
    with pytest.raises(RefusedSourceError):
        open_source(url)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, VanishedError),
        (404, VanishedError),
        (410, VanishedError),
        (429, SourceError),
        (500, SourceError),
        (503, SourceError),
        (204, RefusedSourceError),
        (206, RefusedSourceError),
        (401, RefusedSourceError),
    ],
)
def test_statuses_have_typed_errors(status: int, kind: type[Exception], served: StaticFiles) -> None:
    served.answers["x"] = send(b"", status=status)
    with pytest.raises(kind) as caught:
        read(served.url)
    assert type(caught.value) is kind


def test_redirects_are_followed_within_bounds(served: StaticFiles) -> None:
    served.answers["x"] = send(b"", status=302, Location="/a/b%20c.json")
    assert read(served.url) == b"[1]"
    served.answers["x"] = send(b"", status=301, Location=f"{served.url}/x")
    with pytest.raises(RefusedSourceError, match=naming(5)):
        read(served.url)
    for location in ("ftp://one.example/", "file:///etc/passwd", "http://a\\@b/"):
        served.answers["x"] = send(b"", status=302, Location=location)
        with pytest.raises(RefusedSourceError, match=naming("http://127.0.0.1")):
            read(served.url)


def test_redirect_from_a_public_source_to_a_private_address_or_http_is_rejected(
    served: StaticFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source's host is made to resolve to a public address, and the redirect leads to this machine."""
    port = urlsplit(served.url).port
    real = socket.getaddrinfo

    def resolve(host: Any, *args: Any, **options: Any) -> Any:
        host = {"source.example": "93.184.216.34", "inside.example": "127.0.0.1"}.get(host, host)
        return real(host, *args, **options)

    def connect(sock: socket.socket, address: Any) -> None:
        assert address[0] == "93.184.216.34"
        sock_connect(sock, ("127.0.0.1", port))

    sock_connect = socket.socket.connect
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket.socket, "connect", connect)
    for location in (f"http://inside.example:{port}/secret", f"http://127.0.0.1:{port}/secret"):
        served.answers["x"] = send(b"", status=302, Location=location)
        with pytest.raises(RefusedSourceError, match=naming("127.0.0.1")):
            read("http://source.example")
    assert served.requested == ["x", "x"]


def test_https_source_redirects_only_to_https(served: StaticFiles, tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    away = Answer(302, headers={"Location": f"{served.url}/x"})
    with serving(lambda _: away, context) as loopback, authority.cert_pem.tempfile() as file:
        source = open_source(loopback.url, network=Network(ca_file=file))
        with pytest.raises(RefusedSourceError, match=naming(f"{served.url}/x")):
            small_file(source, "x", 100)
        source.close()
    assert len(loopback.received) == 1
    assert not served.requested


def test_credentials_are_sent_only_to_the_source_origin(
    served: StaticFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers: list[str | None] = []
    with static_files(tmp_path) as other:
        for files, answer in ((served, send(b"", status=302, Location=f"{other.url}/x")), (other, send(b"ok"))):
            files.answers["x"] = lambda request, answer=answer: (
                headers.append(request.headers["Authorization"]),
                answer(request),
            )
        assert read(served.url.replace("//", "//me:s3cret@")) == b"ok"
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
        assert read(served.url) == b"ok"
    assert headers == ["Basic bWU6czNjcmV0", None] * 2
    source = open_source("https://me:s3cret@one.example/x")
    assert source.name == "https://one.example/x"


def test_endless_or_dripping_body_is_aborted(served: StaticFiles) -> None:
    served.answers["x"] = send_endlessly
    with pytest.raises(RefusedSourceError, match=naming("1,000,000")):
        read(served.url, most=1_000_000)

    def drip(request) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        for _ in range(20):
            request.wfile.write(b"x")
            request.wfile.flush()
            if stopped.wait(0.05):
                return
        request.close_connection = True

    stopped = threading.Event()
    served.answers["x"] = drip
    source = HttpSource(served.url, connections=1, network=Network(), timeouts=Timeouts(0.3, 0.3))
    with pytest.raises(SourceError):
        small_file(source, "x", 2_000)
    stopped.set()


def test_truncated_body_and_unreachable_server_are_transient(served: StaticFiles) -> None:
    def cut(request) -> None:
        send(b"12345", **{"Content-Length": "10"})(request)
        request.close_connection = True

    served.answers["x"] = cut
    with pytest.raises(SourceError):
        read(served.url)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(SourceError):
        read(f"http://127.0.0.1:{port}")
