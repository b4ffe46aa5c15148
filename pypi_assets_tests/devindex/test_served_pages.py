"""The pages of the Simple API and of the older JSON API."""

import xmlrpc.client
from pathlib import Path

import pytest
import requests

from pypi_assets.devindex.history import History
from pypi_assets.devindex.served_pages import HTML, V1_HTML, V1_JSON, choose
from pypi_assets.devindex.server import running
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.devindex.requested import JSON, call, file_urls


def test_choose_content_type(subtests: pytest.Subtests) -> None:
    cases = [
        (None, HTML),
        ("*/*", HTML),
        (V1_JSON, V1_JSON),
        (V1_HTML, V1_HTML),
        (f"{V1_JSON}, {V1_HTML}; q=0.1, {HTML}; q=0.01", V1_JSON),  # pip's
        (f"{HTML};q=0.2, {V1_JSON} ; q=0.3", V1_JSON),
        (f"{HTML}, {V1_JSON};q=0.9", HTML),
        (f"{V1_JSON}, {HTML}", HTML),
        (f"*/*;q=0.1, {V1_JSON}", V1_JSON),
        (f"*/*, {HTML};q=0.5", V1_HTML),
        (f"application/*, {V1_HTML};q=0", V1_JSON),
        (f"{V1_JSON};q=broken, {HTML};q=0.1", HTML),
        (V1_JSON.upper(), V1_JSON),
        ("image/png", HTML),
        (f"{HTML};q=0", HTML),
    ]
    for accept, chosen in cases:
        with subtests.test(accept=accept):
            assert choose(accept) == chosen


def test_changelog_has_pages(served_history: History) -> None:
    with running(served_history.folder, page_rows=2) as url:
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
def test_xmlrpc_faults_of_invalid_calls(
    url: str, method: str, arguments: tuple[object, ...], code: int, text: str
) -> None:
    with pytest.raises(xmlrpc.client.Fault) as caught:
        call(url, method, *arguments)
    assert (caught.value.faultCode, caught.value.faultString) == (code, text)


@pytest.mark.parametrize(
    "body", [b"", b"<nonsense", b"<methodCall/>", b"<methodCall><params><param/></params></methodCall>"]
)
def test_xmlrpc_fault_of_invalid_body(url: str, session: requests.Session, body: bytes) -> None:
    response = session.post(url.replace("simple/", "pypi"), data=body)
    with pytest.raises(xmlrpc.client.Fault):
        xmlrpc.client.loads(response.content)


@pytest.mark.parametrize("filename", ["demo-1.0+cpu #1.zip", "demo-2.0%2f?x=y&.zip", "demo-ä3.zip"])
def test_any_filename_has_a_working_url(
    served_history: History, tmp_path: Path, url: str, session: requests.Session, filename: str
) -> None:
    (tmp_path / filename).write_bytes(b"odd")
    served_history.add(tmp_path / filename, version="9")
    assert session.get(file_urls(session, url)[filename]).content == b"odd"


def test_file_urls_have_the_host_of_the_request(url: str, session: requests.Session) -> None:
    page = session.get(f"{url}demo/", headers={**JSON, "Host": "index.example.org:8080"}).json()
    assert page["files"][0]["url"].startswith("http://index.example.org:8080/packages/")


def test_html_pages(served_history: History, url: str, session: requests.Session) -> None:
    served_history.yank("demo", "1.0", 'it is "broken"')
    index = session.get(url, headers={"Accept": V1_HTML})
    assert index.headers["Content-Type"] == V1_HTML
    assert '<a href="/simple/demo/">Demo</a>' in index.text
    page = session.get(f"{url}demo/", headers={"Accept": V1_HTML}).text
    assert page.count('data-yanked="it is &quot;broken&quot;"') == 2
    assert 'data-requires-python="&gt;=3.8,&lt;4"' in page


def test_versions_are_sorted_as_versions(
    served_history: History, tmp_path: Path, url: str, session: requests.Session
) -> None:
    for version in ("1.10", "1.9", "2.0rc1"):
        served_history.add(make_wheel(tmp_path, "demo", version))
    (tmp_path / "demo-odd!.zip").write_bytes(b"")
    served_history.add(tmp_path / "demo-odd!.zip", version="odd!")
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
    served_history.yank("demo", "1.10")
    assert session.get(legacy).json()["info"]["version"] == "1.9"


def test_older_json_api_has_the_metadata(served_history: History, url: str, session: requests.Session) -> None:
    served_history.yank("demo", "1.0", "why not")
    page = session.get(url.replace("simple/", "pypi/Demo/json")).json()
    wanted = ("name", "summary", "requires_dist", "requires_python", "yanked", "yanked_reason")
    assert [page["info"][key] for key in wanted] == ["Demo", "A", ["other>1"], ">=3.8,<4", True, "why not"]
    served_history.remove_release("demo", "1.0")
    assert session.get(url.replace("simple/", "pypi/demo/json")).status_code == 404
