"""Notices are sent to real services on loopback, and failures are reported."""

import re
import sys
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from email.policy import default
from socket import socket

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from pypi_assets.notices import send_notice
from pypi_assets_tests.notice_receiver import receiving


class Inbox:
    """A handler that collects mails received by SMTP."""

    def __init__(self) -> None:
        self.mails: list[Message] = []

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        return "250 OK"


@pytest.fixture
def inbox() -> Iterator[tuple[str, Inbox]]:
    inbox = Inbox()
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(inbox, hostname="127.0.0.1", port=port)  # it connects to its own port, so 0 is invalid
    controller.start()
    try:
        yield f"mailto://127.0.0.1:{port}?from=night@example.org&to=me@example.org&mode=insecure", inbox
    finally:
        controller.stop()


@pytest.mark.nightly
def test_notice_is_sent_to_every_configured_service(inbox: tuple[str, Inbox]) -> None:
    mail_url, mails = inbox
    with receiving() as (url, received):
        assert send_notice([url, mail_url], "a range failed", "the index does not answer") == []
    assert [(one["title"], one["message"]) for one in received] == [("a range failed", "the index does not answer")]
    (mail,) = mails.mails
    assert (mail["Subject"], mail["To"]) == ("a range failed", "me@example.org")
    assert "the index does not answer" in mail.as_string()


def test_failed_service_is_reported_and_others_receive_the_notice() -> None:
    with receiving(500) as (failing, _), receiving() as (url, received):
        problems = send_notice([failing, "nobody://secret@host", url], "title", "text")
    assert [re.findall(r"\b\d+\b|PYPI_ASSETS_\w+", problem) for problem in problems] == [
        ["1", "PYPI_ASSETS_NOTIFY_URLS"],
        ["2", "PYPI_ASSETS_NOTIFY_URLS"],
    ]
    assert "secret" not in "".join(problems)
    assert len(received) == 1


def test_notice_without_urls_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert send_notice([], "title", "text") == []
    (problem,) = send_notice(["json://127.0.0.1"], "title", "text")
    assert "pypi-assets[notify]" in problem
