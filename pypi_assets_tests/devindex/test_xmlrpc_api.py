"""The changelog and the list of projects over XML-RPC."""

import xmlrpc.client

import pytest
import requests

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets_tests.devindex.requested import call


def test_the_changelog_comes_in_pages(served_history: History) -> None:
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
