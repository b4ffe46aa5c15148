"""The server over real connections: what the recording does not hold."""

import socket
import threading
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pypi_assets.devindex.history import History
from pypi_assets.devindex.negotiation import V1_HTML, V1_JSON
from pypi_assets.devindex.server import running
from pypi_assets_tests.builders import make_sdist, make_wheel

JSON = {"Accept": V1_JSON}
WHEEL = "demo-1.0-py3-none-any.whl"


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path / "index")
    history.add(make_wheel(tmp_path, "Demo", "1.0", requires_python=">=3.8,<4", requires_dist=["other>1"], summary="A"))
    history.add(make_sdist(tmp_path, "Demo", "1.0"))
    return history


@pytest.fixture
def url(history: History) -> Iterator[str]:
    with running(history.folder) as url:
        yield url


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


def file_urls(session: requests.Session, url: str, project: str = "demo") -> dict[str, str]:
    page = session.get(f"{url}{project}/", headers=JSON).json()
    return {file["filename"]: file["url"] for file in page["files"]}


def call(url: str, method: str, *arguments: object) -> object:
    with xmlrpc.client.ServerProxy(url.replace("/simple/", "/pypi"), allow_none=True) as proxy:
        return getattr(proxy, method)(*arguments)


def test_changes_by_others_are_seen_at_once(history: History, url: str, session: requests.Session) -> None:
    for serial, change in enumerate((history.yank, history.unyank, history.yank), 6):
        change("demo", "1.0")
        page = session.get(f"{url}demo/", headers=JSON)
        assert page.headers["X-PyPI-Last-Serial"] == str(serial)
        assert {file["yanked"] for file in page.json()["files"]} == {serial != 7}
        assert call(url, "changelog_last_serial") == serial


@pytest.mark.parametrize(
    ("wanted", "span"),
    [("bytes=0-9", (0, 10)), ("bytes=10-", (10, None)), ("bytes=-7", (-7, None)), ("bytes=5-99999999", (5, None))],
)
def test_ranges(tmp_path: Path, url: str, session: requests.Session, wanted: str, span: tuple[int, int | None]) -> None:
    content = (tmp_path / WHEEL).read_bytes()
    response = session.get(file_urls(session, url)[WHEEL], headers={"Range": wanted})
    assert (response.status_code, response.content) == (206, content[slice(*span)])
    start = span[0] % len(content)
    assert response.headers["Content-Range"] == f"bytes {start}-{start + len(response.content) - 1}/{len(content)}"


def test_a_range_beyond_the_end_is_416(tmp_path: Path, url: str, session: requests.Session) -> None:
    size = (tmp_path / WHEEL).stat().st_size
    response = session.get(file_urls(session, url)[WHEEL], headers={"Range": f"bytes={size}-"})
    assert (response.status_code, response.headers["Content-Range"]) == (416, f"bytes */{size}")


def test_a_range_of_another_version_of_the_file_is_not_served(url: str, session: requests.Session) -> None:
    wanted = {"Range": "bytes=0-9", "If-Range": '"another"'}
    assert session.get(file_urls(session, url)[WHEEL], headers=wanted).status_code == 200


def test_head(tmp_path: Path, url: str, session: requests.Session) -> None:
    response = session.head(file_urls(session, url)[WHEEL])
    assert response.headers["Content-Length"] == str((tmp_path / WHEEL).stat().st_size)


def test_only_what_was_uploaded_is_served(history: History, url: str, session: requests.Session) -> None:
    wheel, sdist = file_urls(session, url).values()
    assert wheel.endswith(WHEEL)
    assert session.get(wheel + ".metadata").text.startswith("Metadata-Version: ")
    assert session.get(sdist + ".metadata").status_code == 404
    for path in ("../history.jsonl", "%2e%2e/history.jsonl", "..%2fhistory.jsonl", "no/such/file.whl", ""):
        assert session.get(url.replace("simple/", f"packages/{path}")).status_code == 404
    base = url.removesuffix("/simple/")
    assert requests.get(f"{base}/elsewhere", timeout=10).text == "404 Not Found"


def test_removed_files_stay_downloadable(history: History, tmp_path: Path, url: str, session: requests.Session) -> None:
    urls = file_urls(session, url)
    history.remove_project("demo")
    assert session.get(f"{url}demo/").status_code == 404
    assert session.get(urls[WHEEL]).content == (tmp_path / WHEEL).read_bytes()
    assert session.get(urls[WHEEL] + ".metadata").status_code == 200


def test_a_corrupt_wheel_is_served_without_metadata(
    history: History, tmp_path: Path, url: str, session: requests.Session
) -> None:
    (tmp_path / "bad-1.0-py3-none-any.whl").write_bytes(b"not a zip")
    history.add(tmp_path / "bad-1.0-py3-none-any.whl")
    (file,) = session.get(f"{url}bad/", headers=JSON).json()["files"]
    assert (file["core-metadata"], file["requires-python"], file["size"]) == (False, None, 9)
    assert session.get(file["url"]).content == b"not a zip"
    assert session.get(file["url"] + ".metadata").status_code == 404


@pytest.mark.parametrize("filename", ["demo-1.0+cpu #1.zip", "demo-2.0%2f?x=y&.zip", "demo-ä3.zip"])
def test_any_filename_has_a_url_that_works(
    history: History, tmp_path: Path, url: str, session: requests.Session, filename: str
) -> None:
    (tmp_path / filename).write_bytes(b"odd")
    history.add(tmp_path / filename, version="9")
    assert session.get(file_urls(session, url)[filename]).content == b"odd"


def test_file_urls_are_on_the_host_the_request_came_to(url: str, session: requests.Session) -> None:
    page = session.get(f"{url}demo/", headers={**JSON, "Host": "index.example.org:8080"}).json()
    assert page["files"][0]["url"].startswith("http://index.example.org:8080/packages/")


def test_html_pages(history: History, url: str, session: requests.Session) -> None:
    history.yank("demo", "1.0", 'it is "broken"')
    index = session.get(url, headers={"Accept": V1_HTML})
    assert index.headers["Content-Type"] == V1_HTML
    assert '<a href="/simple/demo/">Demo</a>' in index.text
    page = session.get(f"{url}demo/", headers={"Accept": V1_HTML}).text
    assert page.count('data-yanked="it is &quot;broken&quot;"') == 2
    assert 'data-requires-python="&gt;=3.8,&lt;4"' in page


def test_versions_are_sorted_as_versions(history: History, tmp_path: Path, url: str, session: requests.Session) -> None:
    for version in ("1.10", "1.9", "2.0rc1"):
        history.add(make_wheel(tmp_path, "demo", version))
    (tmp_path / "demo-odd!.zip").write_bytes(b"")
    history.add(tmp_path / "demo-odd!.zip", version="odd!")
    page = session.get(f"{url}demo/", headers=JSON).json()
    assert page["versions"] == ["odd!", "1.0", "1.9", "1.10", "2.0rc1"]
    assert [file["filename"].split("-")[1] for file in page["files"][1:]] == [
        "1.0",
        "1.0.tar.gz",
        "1.9",
        "1.10",
        "2.0rc1",
    ]
    legacy = url.replace("simple/", "pypi/demo/json")
    assert session.get(legacy).json()["info"]["version"] == "1.10"
    history.yank("demo", "1.10")
    assert session.get(legacy).json()["info"]["version"] == "1.9"


def test_the_older_json_api_has_the_metadata(history: History, url: str, session: requests.Session) -> None:
    history.yank("demo", "1.0", "why not")
    page = session.get(url.replace("simple/", "pypi/Demo/json")).json()
    wanted = ("name", "summary", "requires_dist", "requires_python", "yanked", "yanked_reason")
    assert [page["info"][key] for key in wanted] == ["Demo", "A", ["other>1"], ">=3.8,<4", True, "why not"]
    history.remove_release("demo", "1.0")
    assert session.get(url.replace("simple/", "pypi/demo/json")).status_code == 404


def test_conditional_requests_change_with_the_page(history: History, url: str, session: requests.Session) -> None:
    etag = session.get(f"{url}demo/", headers=JSON).headers["ETag"]
    wanted = {**JSON, "If-None-Match": f'"other", W/{etag}'}
    assert session.get(f"{url}demo/", headers=wanted).status_code == 304
    history.archive("demo")
    assert session.get(f"{url}demo/", headers=wanted).json()["project-status"] == {"status": "archived"}


def test_the_changelog_comes_in_pages(history: History) -> None:
    with running(history.folder, page_rows=2) as url:
        pages = [call(url, "changelog_since_serial", serial) for serial in (0, 2, 4, 5, 99, -1)]
    serials = [[row[4] for row in page] for page in pages]
    assert serials == [[1, 2], [3, 4], [5], [], [], [1, 2]]


@pytest.mark.parametrize(
    ("method", "arguments", "code", "text"),
    [
        ("changelog_since_serial", (), -32602, "client error; serial: Missing required argument"),
        ("changelog_since_serial", (True,), -32602, "client error; serial: Input should be a valid integer"),
        ("changelog_last_serial", (1,), -32602, "client error; 0: Unexpected positional argument"),
        ("search", ({},), -32601, "server error; requested method not found"),
    ],
)
def test_faults_of_calls(url: str, method: str, arguments: tuple[object, ...], code: int, text: str) -> None:
    with pytest.raises(xmlrpc.client.Fault) as caught:
        call(url, method, *arguments)
    assert (caught.value.faultCode, caught.value.faultString) == (code, text)


@pytest.mark.parametrize(
    "body", [b"", b"<nonsense", b"<methodCall/>", b"<methodCall><params><param/></params></methodCall>"]
)
def test_a_body_that_is_no_call_is_a_fault(url: str, session: requests.Session, body: bytes) -> None:
    response = session.post(url.replace("simple/", "pypi"), data=body)
    with pytest.raises(xmlrpc.client.Fault):
        xmlrpc.client.loads(response.content)


def test_injected_faults_answer_instead_of_the_index(history: History, session: requests.Session) -> None:
    seen: list[tuple[str, bytes]] = []

    def faults(request: Request) -> Response | None:
        seen.append((request.url.path, request.state.body))
        return PlainTextResponse("later", 503, {"Retry-After": "7"}) if len(seen) == 1 else None

    with running(history.folder, faults=faults) as url:
        first, second = session.get(url), session.get(url)
        assert call(url, "changelog_last_serial") == 5
    assert (first.status_code, first.headers["Retry-After"], second.status_code) == (503, "7", 200)
    assert [path for path, _ in seen] == ["/simple/", "/simple/", "/pypi"]
    assert b"changelog_last_serial" in seen[2][1]


def test_it_stops_cleanly_with_clients_still_connected(history: History) -> None:
    with requests.Session() as session:
        with running(history.folder) as url:
            assert session.get(url).status_code == 200
        assert "devindex" not in {thread.name for thread in threading.enumerate()}
        with pytest.raises(requests.ConnectionError):
            session.get(url)


def test_it_stops_after_an_error_in_the_context(history: History) -> None:
    with pytest.raises(LookupError), running(history.folder):
        raise LookupError
    assert "devindex" not in {thread.name for thread in threading.enumerate()}


def test_a_port_in_use_is_an_error(history: History) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="in use"),
        running(history.folder, taken.getsockname()[1]),
    ):
        pytest.fail("it cannot run")
