"""Webhooks: their setting and its errors, signatures, and forbidden addresses."""

import json
import re
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from unittest.mock import ANY

import pytest

from pypi_assets.errors import SettingsError
from pypi_assets.index.connections import Network
from pypi_assets.journal.filters import CHANGES, RecordFilter
from pypi_assets.journal.webhooks import DeliveryFailure, Sender, Webhook, parse_webhooks, signature
from pypi_assets_tests.index.loopback import Answer, answering
from pypi_assets_tests.journal.hook_receiver import SECRET, receiving
from pypi_assets_tests.naming import mentions, naming

URL = "https://hooks.example.org/one"


def parsed(**fields: object) -> list[Webhook]:
    return parse_webhooks(json.dumps([{"url": URL, "secret": SECRET} | fields]))


def test_webhook_has_url_secret_and_optional_filter_and_name(tmp_path: Path):
    assert parse_webhooks("") == []
    [plain] = parsed()
    assert (plain.url, plain.secret, plain.wanted) == (URL, SECRET, RecordFilter(streams=CHANGES))
    assert re.fullmatch(r"webhook hooks\.example\.org [0-9a-f]{8}", plain.consumer)
    assert SECRET not in repr(plain)
    [named] = parsed(name="alerts", filter={"kind": "file-removed", "project": ["Demo"]})
    assert (named.consumer, named.wanted) == (
        "webhook alerts",
        RecordFilter.parse(projects=["demo"], kinds=["file removed"]),
    )
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    [of_file] = parse_webhooks(json.dumps([{"url": URL, "secret_file": str(tmp_path / "secret")}]))
    assert of_file.secret == SECRET


def test_invalid_setting_is_named_without_its_secret(subtests: pytest.Subtests):
    cases = [
        ("{", ["JSON"]),
        ("[" * 100_000, ["JSON"]),
        ('[{"url": "https://a.example/", "secret": %s}]' % ("9" * 5_000), ["JSON"]),
        ('[{"url": "https://a.example/", "secret": "\\ud800 0123456789abcdef"}]', ["JSON"]),
        ('[{"url": "https://a.example/", "secret_file": "a\\u0000"}]', ["number 1"]),
        ('{"url": "https://a.example/"}', ["PYPI_ASSETS_WEBHOOKS"]),
        ('[{"secret": "0123456789abcdef"}]', ["number 1", "url"]),
        ('[{"url": "ftp://a.example/", "secret": "0123456789abcdef"}]', ["number 1", "url"]),
        ('[{"url": "https://me:pw@a.example/", "secret": "0123456789abcdef"}]', ["number 1", "url"]),
        ('[{"url": "https://a.example/"}]', ["number 1", "secret", "secret_file"]),
        ('[{"url": "https://a.example/", "secret": "short pw"}]', ["number 1", 16]),
        ('[{"url": "https://a.example/", "secret_file": "no/such/file"}]', ["number 1", "no/such/file"]),
        ('[{"url": "https://a.example/", "secret": "0123456789abcdef", "kind": "x"}]', ["number 1", "kind"]),
        (
            '[{"url": "https://a.example/", "secret": "0123456789abcdef", "filter": {"kind": "x"}}]',
            ["number 1", "kind", "'x'", "add file"],
        ),
        ('[{"url": "https://a.example/", "secret": "0123456789abcdef", "filter": []}]', None),
        ('[{"url": "https://a.example/", "secret": "0123456789abcdef", "filter": [1]}]', ["number 1", "filter"]),
        ('[{"url": "https://a.example/", "secret": "0123456789abcdef", "name": ""}]', ["number 1", "name"]),
        (
            json.dumps([{"url": "https://a.example/", "secret": "0123456789abcdef", "name": "a"}] * 2),
            ["'a'"],
        ),
    ]
    for text, values in cases:
        with subtests.test(text=text):
            if values is None:
                assert parse_webhooks(text)[0].wanted == RecordFilter(streams=CHANGES)
                continue
            with pytest.raises(SettingsError, match=naming(*values)) as caught:
                parse_webhooks(text)
            assert str(caught.value).startswith("PYPI_ASSETS_WEBHOOKS: ")
            assert "0123456789abcdef" not in str(caught.value)
            assert "short pw" not in str(caught.value)


def test_signature_is_an_hmac_of_timestamp_and_body():
    expected = "sha256=09930d4bcf960e6085a259cd3300f0b85844e9bcbb4472b09b43631efbf0f067"
    assert signature("key", "1772000000", b"{}") == expected
    assert signature("key", "1772000000", b"{}") != signature("key", "1772000001", b"{}")
    assert signature("key", "1772000000", b"{}") != signature("yek", "1772000000", b"{}")


def hook(url: str) -> Webhook:
    return Webhook("one", url, RecordFilter(), SECRET)


def posted(
    url: str, body: bytes = b"{}", *, allows_private: bool = True, timeout_s: float = 5
) -> DeliveryFailure | None:
    sender = Sender(Network(), allows_private=allows_private, timeout_s=timeout_s)
    try:
        return sender.post(hook(url), body, "7", time.time())
    finally:
        sender.close()


def test_receiver_can_verify_letters_and_2xx_is_success():
    with receiving() as receiver:
        assert posted(receiver.url, b'{"a":1}') is None
        assert receiver.letters == [{"a": 1}]
        assert receiver.deliveries == ["7"]


@pytest.mark.parametrize(
    ("status", "retry_after", "failure"),
    [
        (500, None, DeliveryFailure("HTTP 500")),
        (429, "120", DeliveryFailure("HTTP 429", 120.0)),
        (503, "99999", DeliveryFailure("HTTP 503", 3_600.0)),
        (503, "Wed, 21 Oct 2099 07:28:00 GMT", DeliveryFailure("HTTP 503", 3_600.0)),
        (503, "Wed, 21 Oct 2015 07:28:00 GMT", DeliveryFailure("HTTP 503")),
        (503, "-5", DeliveryFailure("HTTP 503")),
        (503, "soon", DeliveryFailure("HTTP 503")),
        (302, None, DeliveryFailure("HTTP 302")),
    ],
)
def test_other_statuses_are_failures(status: int, retry_after: str | None, failure: DeliveryFailure):
    with receiving() as receiver:
        receiver.status = lambda _body: status
        receiver.headers = {"Location": receiver.url} | ({"Retry-After": retry_after} if retry_after else {})
        assert posted(receiver.url) == failure
        assert len(receiver.refused) == 1


def test_receiver_with_retry_after_does_not_block_others():
    sender = Sender(Network(), allows_private=True)
    with receiving() as busy, receiving() as other:
        busy.status, busy.headers = lambda _body: 429, {"Retry-After": "100"}
        assert sender.post(hook(busy.url), b"{}", "7", time.time()) == DeliveryFailure("HTTP 429", 100.0)
        started = time.monotonic()
        assert sender.post(hook(other.url), b"{}", "8", time.time()) is None
    assert time.monotonic() - started < 50
    sender.close()


def test_receiver_gets_no_local_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "netrc").write_text("default login me password hush\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for status in (202, 401):
        with answering(Answer(status)) as loopback:
            assert posted(f"{loopback.url}/hook") == (None if status == 202 else DeliveryFailure(ANY))
        assert [request.headers.get("authorization") for request in loopback.received] == [None]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254"])
def test_private_network_is_not_posted_to_unless_allowed(host: str):
    failure = posted(f"http://{host}:9/", allows_private=False)
    assert failure is not None
    if host in {"127.0.0.1", "10.0.0.1", "169.254.169.254"}:
        assert mentions(failure.text, host, "PYPI_ASSETS_WEBHOOKS_PRIVATE=1")


def test_silent_or_dripping_receiver_costs_only_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        is_left = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    for _ in range(3_000):
                        connection.sendall(b"H")
                        is_left.wait(0.02)
                except OSError:
                    is_left.set()

        thread = threading.Thread(target=drip)
        thread.start()
        failure = posted(url, timeout_s=0.3)
        assert failure is not None
        thread.join()
        assert is_left.is_set()
    gone = posted(url, timeout_s=0.3)
    assert gone is not None


def test_late_answer_does_not_answer_the_next_letter():
    is_answered, is_followed = threading.Event(), threading.Event()

    def serve(listener: socket.socket) -> None:
        for answer in (b"HTTP/1.1 103 Early Hints", b"HTTP/1.1 500 No"):
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                while connection.recv(65536):
                    connection.sendall(answer + b"\r\nContent-Length: 0\r\n\r\n")
                    if not is_followed.is_set():
                        is_answered.wait(60)
                        with suppress(OSError):
                            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                        is_followed.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        sender = Sender(Network(), allows_private=True, timeout_s=60)
        first = sender.post(hook(url), b"{}", "7", time.time())
        is_answered.set()
        assert is_followed.wait(60)
        second = sender.post(hook(url), b"{}", "7", time.time())
        sender.close()
        thread.join(60)
    assert [mentions(failure.text, status) for failure, status in ((first, 103), (second, 500))] == [True, True]
