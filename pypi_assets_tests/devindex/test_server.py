"""The server over real connections: cases that the recording does not cover."""

import socket
import threading
from pathlib import Path

import pytest
import requests
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets_tests.devindex.requested import JSON, WHEEL, call, file_urls


def test_changes_by_other_processes_are_visible_immediately(
    served_history: History, url: str, session: requests.Session
) -> None:
    for serial, change in enumerate((served_history.yank, served_history.unyank, served_history.yank), 6):
        change("demo", "1.0")
        page = session.get(f"{url}demo/", headers=JSON)
        assert page.headers["X-PyPI-Last-Serial"] == str(serial)
        assert {file["yanked"] for file in page.json()["files"]} == {serial != 7}
        assert call(url, "changelog_last_serial") == serial


@pytest.mark.parametrize(
    ("wanted", "span"),
    [("bytes=0-9", (0, 10)), ("bytes=10-", (10, None)), ("bytes=-7", (-7, None)), ("bytes=5-99999999", (5, None))],
)
def test_byte_ranges(
    tmp_path: Path, url: str, session: requests.Session, wanted: str, span: tuple[int, int | None]
) -> None:
    content = (tmp_path / WHEEL).read_bytes()
    response = session.get(file_urls(session, url)[WHEEL], headers={"Range": wanted})
    assert (response.status_code, response.content) == (206, content[slice(*span)])
    start = span[0] % len(content)
    assert response.headers["Content-Range"] == f"bytes {start}-{start + len(response.content) - 1}/{len(content)}"


def test_range_beyond_the_end_is_416(tmp_path: Path, url: str, session: requests.Session) -> None:
    size = (tmp_path / WHEEL).stat().st_size
    response = session.get(file_urls(session, url)[WHEEL], headers={"Range": f"bytes={size}-"})
    assert (response.status_code, response.headers["Content-Range"]) == (416, f"bytes */{size}")


def test_range_with_another_etag_is_not_served(url: str, session: requests.Session) -> None:
    wanted = {"Range": "bytes=0-9", "If-Range": '"another"'}
    assert session.get(file_urls(session, url)[WHEEL], headers=wanted).status_code == 200


def test_head_request(tmp_path: Path, url: str, session: requests.Session) -> None:
    response = session.head(file_urls(session, url)[WHEEL])
    assert response.headers["Content-Length"] == str((tmp_path / WHEEL).stat().st_size)


def test_only_uploaded_files_are_served(served_history: History, url: str, session: requests.Session) -> None:
    wheel, sdist = file_urls(session, url).values()
    assert wheel.endswith(WHEEL)
    assert session.get(wheel + ".metadata").text.startswith("Metadata-Version: ")
    assert session.get(sdist + ".metadata").status_code == 404
    for path in ("../history.jsonl", "%2e%2e/history.jsonl", "..%2fhistory.jsonl", "no/such/file.whl", ""):
        assert session.get(url.replace("simple/", f"packages/{path}")).status_code == 404
    base = url.removesuffix("/simple/")
    assert requests.get(f"{base}/elsewhere", timeout=60).text == "404 Not Found"


def test_removed_files_stay_downloadable(
    served_history: History, tmp_path: Path, url: str, session: requests.Session
) -> None:
    urls = file_urls(session, url)
    served_history.remove_project("demo")
    assert session.get(f"{url}demo/").status_code == 404
    assert session.get(urls[WHEEL]).content == (tmp_path / WHEEL).read_bytes()
    assert session.get(urls[WHEEL] + ".metadata").status_code == 200


def test_corrupt_wheel_is_served_without_metadata(
    served_history: History, tmp_path: Path, url: str, session: requests.Session
) -> None:
    (tmp_path / "bad-1.0-py3-none-any.whl").write_bytes(b"not a zip")
    served_history.add(tmp_path / "bad-1.0-py3-none-any.whl")
    (file,) = session.get(f"{url}bad/", headers=JSON).json()["files"]
    assert (file["core-metadata"], file["requires-python"], file["size"]) == (False, None, 9)
    assert session.get(file["url"]).content == b"not a zip"
    assert session.get(file["url"] + ".metadata").status_code == 404


def test_conditional_requests_change_with_the_page(
    served_history: History, url: str, session: requests.Session
) -> None:
    etag = session.get(f"{url}demo/", headers=JSON).headers["ETag"]
    wanted = {**JSON, "If-None-Match": f'"other", W/{etag}'}
    assert session.get(f"{url}demo/", headers=wanted).status_code == 304
    served_history.archive("demo")
    assert session.get(f"{url}demo/", headers=wanted).json()["project-status"] == {"status": "archived"}


def test_injected_faults_replace_responses(served_history: History, session: requests.Session) -> None:
    seen: list[tuple[str, bytes]] = []

    def faults(request: Request) -> Response | None:
        seen.append((request.url.path, request.state.body))
        return PlainTextResponse("later", 503, {"Retry-After": "7"}) if len(seen) == 1 else None

    with running(served_history.folder, faults=faults) as url:
        first, second = session.get(url), session.get(url)
        assert call(url, "changelog_last_serial") == 5
    assert (first.status_code, first.headers["Retry-After"], second.status_code) == (503, "7", 200)
    assert [path for path, _ in seen] == ["/simple/", "/simple/", "/pypi"]
    assert b"changelog_last_serial" in seen[2][1]


def test_server_stops_cleanly_with_connected_clients(served_history: History) -> None:
    before = set(threading.enumerate())
    with requests.Session() as session:
        with running(served_history.folder) as url:
            assert session.get(url).status_code == 200
        assert "devindex" not in {thread.name for thread in set(threading.enumerate()) - before}
        with pytest.raises(requests.ConnectionError):
            session.get(url)


def test_server_stops_after_an_error_in_the_context(served_history: History) -> None:
    before = set(threading.enumerate())
    with pytest.raises(LookupError), running(served_history.folder):
        raise LookupError
    assert "devindex" not in {thread.name for thread in set(threading.enumerate()) - before}


def test_port_in_use_is_an_error(served_history: History) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="in use"),
        running(served_history.folder, taken.getsockname()[1]),
    ):
        pytest.fail("a second server must not start")
