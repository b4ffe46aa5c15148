"""The nginx.conf proxy in front of the service: what it forwards, caches, limits and rejects."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
import trustme

from benchmarks.service_home import served
from pypi_assets.service.problems import TITLES
from pypi_assets_tests.deploy.services import DEPLOY, free_ports
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.service.published import Published, fill, published_index

pytestmark = pytest.mark.deploy
PATH = "v1/modules/yaml"
HOST = b"Host: localhost\r\n"
POST = b"POST /v1/hashes HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
SMUGGLED = b"GET /v1/status HTTP/1.1\r\n" + HOST + b"\r\n"


@dataclass(frozen=True)
class Proxy:
    """An nginx in front of the service at `behind`. `ca` is the file of the CA that signed its certificate."""

    port: int
    plain_port: int
    ca: Path
    behind: str
    serial: int

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/"

    def session(self) -> requests.Session:
        session = requests.Session()
        session.verify = str(self.ca)
        session.trust_env = False
        return session

    def get(self, path: str, **headers: str) -> requests.Response:
        with self.session() as session:
            return session.get(self.url + path, headers=headers, timeout=30)

    def sent(self, content: bytes) -> bytes:
        """Return all responses to these bytes, until the server closes the connection or is silent for two seconds."""
        context = ssl.create_default_context(cafile=str(self.ca))
        with (
            socket.create_connection(("localhost", self.port), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(content)
            connection.settimeout(2)
            answer = b""
            try:
                while more := connection.recv(65_536):
                    answer += more
            except (TimeoutError, ssl.SSLEOFError, ConnectionResetError):
                pass
            return answer


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    with pytest.MonkeyPatch.context() as environment, published_index(tmp_path_factory.mktemp("published")) as one:
        clear_settings(environment)
        fill(one)
        one.publish_first()
        yield one


@contextmanager
def proxied(folder: Path, published: Published, times: Mapping[str, str] | None = None) -> Iterator[tuple[Proxy, int]]:
    """Run the service as a process behind nginx, with the given `times` replaced. Yield the proxy and the process
    ID.
    """
    with served(published.home, index_url=published.index.url) as (behind, pid):
        proxy = Proxy(*free_ports(2), folder / "ca.pem", behind, published.index.serial)
        config = folder / "nginx.conf"
        config.write_text(here((DEPLOY / "nginx.conf").read_text(), folder, proxy, times or {}))
        certificates = folder / "certificates"
        certificates.mkdir()
        ca = trustme.CA()
        ca.cert_pem.write_to_path(str(proxy.ca))
        certificate = ca.issue_cert("localhost")
        certificate.private_key_pem.write_to_path(str(certificates / "privkey.pem"))
        for pem in certificate.cert_chain_pems:
            pem.write_to_path(str(certificates / "fullchain.pem"), append=True)
        options = "daemon off; user root;" if os.geteuid() == 0 else "daemon off;"
        with subprocess.Popen(["nginx", "-e", folder / "error.log", "-c", config, "-g", options]) as nginx:
            try:
                wait_for_tls(proxy)
                yield proxy, pid
            finally:
                nginx.terminate()


def here(text: str, folder: Path, proxy: Proxy, times: Mapping[str, str]) -> str:
    """Return the configuration with the test's ports, addresses, folders and times, and no other changes."""
    places = {
        **times,
        "pid /run/nginx.pid;": f"pid {folder}/nginx.pid;",
        "server service:8642;": f"server {proxy.behind.removeprefix('http://').rstrip('/')};",
        "listen 8080;": f"listen 127.0.0.1:{proxy.plain_port};",
        "listen 8443 ssl;": f"listen 127.0.0.1:{proxy.port} ssl;",
        "/etc/nginx/certificates/": f"{folder}/certificates/",
        "/var/cache/nginx/": f"{folder}/",
    }
    for before, after in places.items():
        assert before in text
        text = text.replace(before, after)
    temporary = "".join(f"  {name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy"))
    return text.replace("http {\n", "http {\n" + temporary, 1)


def wait_for_tls(proxy: Proxy) -> None:
    ends = time.monotonic() + 30
    while True:
        try:
            assert proxy.get("healthz").status_code == 200
        except requests.ConnectionError:
            assert time.monotonic() < ends, "nginx did not start"
            time.sleep(0.1)
        else:
            return


@pytest.fixture(scope="module")
def proxy(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with proxied(tmp_path_factory.mktemp("proxy"), published) as (one, _):
        yield one


@pytest.fixture(autouse=True)
def pause() -> None:
    """Wait until the burst limit has recovered."""
    time.sleep(1)


def test_proxy_forwards_responses_with_their_headers(proxy: Proxy):
    direct = requests.get(proxy.behind + PATH, timeout=30)
    answer = proxy.get(PATH)
    assert answer.content == direct.content
    for name in ("etag", "x-pypi-last-serial", "cache-control", "last-modified", "vary", "access-control-allow-origin"):
        assert answer.headers[name] == direct.headers[name]
    assert answer.headers["x-pypi-last-serial"] == str(proxy.serial)
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert "nginx/" not in answer.headers["server"]
    again = proxy.get(PATH, **{"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert proxy.get("openapi.json", **{"Accept-Encoding": "zstd"}).headers["content-encoding"] == "zstd"
    problem = proxy.get("v1/modules/yaml?wrong=1")
    assert (problem.status_code, problem.headers["content-type"]) == (400, "application/problem+json")
    lines = proxy.get("v1/projects/pyyaml/dependents?format=ndjson").text.splitlines()
    assert [json.loads(line)["normalized"] for line in lines] == ["demo", "other-app"]


def test_proxy_sets_request_ids_for_cached_responses_too(proxy: Proxy):
    for path in (PATH, f"at/{proxy.serial}.{proxy.serial}/{PATH}", "nowhere"):
        taken = proxy.get(path, **{"X-Request-ID": "4f7a-1"})
        assert taken.headers["x-request-id"] == "4f7a-1"
        made = [proxy.get(path, **{"X-Request-ID": '"><script>'}) for _ in range(2)]
        ids = {answer.headers["x-request-id"] for answer in made}
        assert len(ids) == 2
        assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
    assert made[0].json()["request_id"] == made[0].headers["x-request-id"]


def test_proxy_redirects_http_and_hides_metrics(proxy: Proxy):
    plain = requests.get(f"http://localhost:{proxy.plain_port}/{PATH}?limit=1", timeout=30, allow_redirects=False)
    assert plain.status_code == 308
    assert plain.headers["location"] == f"https://localhost/{PATH}?limit=1"
    assert proxy.get("metrics").status_code == 404
    assert requests.get(proxy.behind + "metrics", timeout=30).status_code == 200


@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param(
            POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="length and chunks"
        ),
        pytest.param(
            POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", id="chunks and length"
        ),
        pytest.param(POST + b"Content-Length: 0\r\nContent-Length: 60\r\n\r\n", id="two lengths"),
        pytest.param(POST + b"Content-Length: +0\r\n\r\n", id="a sign before the length"),
        pytest.param(POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", id="an unknown transfer encoding"),
        pytest.param(POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", id="two transfer encodings"),
        pytest.param(POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", id="a blank before the colon"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n", id="a size of no hex"),
        pytest.param(POST + HOST + b"Content-Length: 0\r\n\r\n", id="two hosts"),
        pytest.param(b"GET /v1/modules/%00 HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", id="NUL in the path"),
    ],
)
def test_proxy_rejects_ambiguous_requests_and_closes_the_connection(proxy: Proxy, attempt: bytes):
    answer = proxy.sent(attempt + SMUGGLED)
    statuses = re.findall(rb"HTTP/1\.1 (\d{3})", answer)
    assert len(statuses) == 1, answer
    assert statuses[0] in {b"400", b"501"}
    assert b'"datasets"' not in answer
    assert proxy.get(PATH).json()["results"]


def test_proxy_rejects_large_body_and_answers_the_next_request(proxy: Proxy):
    with proxy.session() as session:
        answer = session.post(f"{proxy.url}v1/hashes", data=b"[" + b" " * 9 * 1024**2, timeout=30)
        check_problem(answer, 413, "too-large")
        assert session.get(proxy.url + PATH, timeout=30).status_code == 200


def test_proxy_rejects_bursts_for_a_while(proxy: Proxy):
    def send(_: int) -> list[requests.Response]:
        with proxy.session() as session:
            return [session.get(proxy.url + PATH, timeout=30) for _ in range(150)]

    with ThreadPoolExecutor(8) as pool:
        answers = [answer for some in pool.map(send, range(8)) for answer in some]
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) == {200, 429}
    assert statuses[200] >= 200
    refused = next(answer for answer in answers if answer.status_code == 429)
    check_problem(refused, 429, "busy")
    assert refused.headers["retry-after"] == "1"
    time.sleep(1)
    assert proxy.get(PATH).status_code == 200


def test_proxy_forwards_no_slow_or_oversized_requests(published: Published, tmp_path: Path):
    head = b"GET /" + PATH.encode() + b" HTTP/1.1\r\n" + HOST
    times = {
        "client_header_timeout 10s;": "client_header_timeout 1s;",
        "client_body_timeout 30s;": "client_body_timeout 1s;",
    }
    with proxied(tmp_path, published, times) as (proxy, _):
        before = answered(proxy)
        for content, statuses in (
            (b"", []),
            (head + b"X: ", []),
            (POST + b"Content-Length: 20\r\n\r\n{", []),
            (head + b"X: " + b"x" * 70_000 + b"\r\n\r\n", [b"400"]),
            (head + b"X: y\r\n" * 70_000, [b"400"]),
        ):
            answer = proxy.sent(content)
            assert [one for one in re.findall(rb"HTTP/1\.1 (\d{3})", answer) if one != b"408"] == statuses
        assert answered(proxy) == before
        assert proxy.get(PATH).status_code == 200


def answered(proxy: Proxy) -> float:
    """Return the number of requests that the service has answered, except those for its metrics."""
    lines = requests.get(proxy.behind + "metrics", timeout=30).text.splitlines()
    counts = [line for line in lines if line.startswith("pypi_assets_service_requests_total") and "metrics" not in line]
    return sum(float(line.rpartition(" ")[2]) for line in counts)


def test_proxy_caches_immutable_responses_and_reports_a_missing_service(published: Published, tmp_path: Path):
    with proxied(tmp_path, published) as (proxy, pid):
        at = proxy.get(f"at/{proxy.serial}/{PATH}")
        assert [one.status_code for one in at.history] == [307]
        assert at.headers["cache-control"] == "public, max-age=31536000, immutable"
        os.kill(pid, signal.SIGKILL)
        kept = proxy.get(at.url.removeprefix(proxy.url))
        assert (kept.status_code, kept.content) == (200, at.content)
        check_problem(proxy.get(PATH), 503, "unavailable")


def test_proxy_caches_lists_pages_and_documents_of_projects(published: Published, tmp_path: Path):
    json_form = {"Accept": "application/vnd.pypi.simple.v1+json"}
    with proxied(tmp_path, published) as (proxy, service):
        for path in ("simple/", "simple/demo/", "pypi/demo/json"):
            direct = requests.get(proxy.behind + path, headers=json_form, timeout=30)
            answer = proxy.get(path, **json_form)
            assert answer.content == direct.content, path
            for name in ("etag", "x-pypi-last-serial", "cache-control", "vary", "content-type"):
                assert answer.headers[name] == direct.headers[name], (path, name)
            known = proxy.get(path, **json_form, **{"If-None-Match": answer.headers["etag"]})
            assert (known.status_code, known.content) == (304, b"")
            assert proxy.get(path).headers["content-type"] != answer.headers["content-type"] or "pypi/" in path
        file = proxy.get("simple/demo/", **json_form).json()["files"][0]["hashes"]["sha256"]
        assert [one.status_code for one in proxy.get(f"files/sha256/{file}").history] == [307]
        cached = {path: proxy.get(path, **json_form).content for path in ("simple/", "simple/demo/", "pypi/demo/json")}
        os.kill(service, signal.SIGKILL)
        for path, content in cached.items():
            again = proxy.get(path, **json_form)
            assert (again.status_code, again.content) == (200, content), path
        check_problem(proxy.get(f"files/sha256/{file}"), 503, "unavailable")


def check_problem(answer: requests.Response, status: int, kind: str) -> None:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert (found["status"], found["type"], found["title"]) == (status, f"/docs#{kind}", TITLES[kind])
    assert found["detail"]
