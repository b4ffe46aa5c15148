"""Credentials are looked up as pip does, and sent only to the index itself."""

import io
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.credentials import SimpleCredential

from pypi_assets.index.client import IndexClient
from pypi_assets.index.errors import RefusedError
from pypi_assets_tests.index.clients import PAGE, unhurried_client
from pypi_assets_tests.index.loopback import Answer, Loopback, Request, answering, serving
from pypi_assets_tests.naming import mentions, naming


class Keyring(KeyringBackend):
    priority = 1.0

    def __init__(self, logins: dict[tuple[str, str | None], tuple[str, str] | Exception]) -> None:
        super().__init__()
        self.logins = logins
        self.queried: list[tuple[str, str | None]] = []

    def get_credential(self, service: str, username: str | None) -> SimpleCredential | None:
        self.queried.append((service, username))
        login = self.logins.get((service, username))
        if isinstance(login, Exception):
            raise login
        return login and SimpleCredential(*login)

    def get_password(self, service: str, username: str) -> None:
        """Do nothing, since the client calls only `get_credential`."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Do nothing, since the client calls only `get_credential`."""


@pytest.fixture(autouse=True)
def _no_known_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    yield
    keyring.set_keyring(before)


def basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


@contextmanager
def guarded(*accepted: str) -> Iterator[Loopback]:
    """Return a server that accepts requests with one of the Authorization headers `accepted`."""

    def answer(request: Request) -> Answer:
        return PAGE if request.headers.get("authorization") in accepted else Answer(401, b"who is it?")

    with serving(answer) as loopback:
        yield loopback


def sent(loopback: Loopback) -> list[str | None]:
    return [request.headers.get("authorization") for request in loopback.received]


def with_user(loopback: Loopback, user: str) -> dict[str, Any]:
    return {"index_url": loopback.url.replace("://", f"://{user}@") + "/simple/"}


@pytest.mark.parametrize("is_named", [True, False])
def test_netrc_login_is_sent_with_the_first_request(
    is_named: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / ("elsewhere" if is_named else ".netrc")
    path.write_text("machine 127.0.0.1 login me password hush!\n")
    path.chmod(0o600)
    if is_named:
        monkeypatch.setenv("NETRC", str(path))
    with guarded(basic("me", "hush!")) as loopback, unhurried_client(loopback.url) as client:
        client.project_page("demo")
        client.project_page("demo")
        assert sent(loopback) == [basic("me", "hush!")] * 2


def test_login_in_the_url_takes_precedence_over_netrc(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login you password wrong\n")
    with (
        guarded(basic("me", "hush!")) as loopback,
        unhurried_client(loopback.url, **with_user(loopback, "me:hush%21")) as client,
    ):
        client.project_page("demo")
        assert sent(loopback) == [basic("me", "hush!")]


def test_netrc_is_read_again_after_its_login_expires(tmp_path: Path) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password monday\n")
    accepted = {"password": "monday"}

    def answer(request: Request) -> Answer:
        is_known = request.headers.get("authorization") == basic("me", accepted["password"])
        return PAGE if is_known else Answer(401)

    with serving(answer) as loopback, unhurried_client(loopback.url) as client:
        client.project_page("demo")
        accepted["password"] = "tuesday"
        netrc.write_text("machine 127.0.0.1 login me password tuesday\n")
        client.project_page("demo")
        client.project_page("demo")
        assert sent(loopback) == [basic("me", day) for day in ("monday", "monday", "tuesday", "tuesday")]


@pytest.mark.parametrize("is_known_by", ["url", "host"])
@pytest.mark.parametrize("username", [None, "me"])
def test_keyring_is_queried_only_once_after_a_401(is_known_by: str, username: str | None) -> None:
    with guarded(basic("me", "hush!")) as loopback:
        url, host = f"{loopback.url}/simple/", f"127.0.0.1:{loopback.port}"
        ring = Keyring({(url if is_known_by == "url" else host, username): ("me", "hush!")})
        keyring.set_keyring(ring)
        options = with_user(loopback, username) if username else {}
        with unhurried_client(loopback.url, **options) as client:
            assert ring.queried == []
            client.project_page("demo")
            client.project_page("demo")
        assert ring.queried == [(url, username), (host, username)][: 1 if is_known_by == "url" else 2]
        first = basic("me", "") if username else None
        assert sent(loopback) == [first, basic("me", "hush!"), basic("me", "hush!")]


def test_public_page_does_not_query_the_keyring() -> None:
    ring = Keyring({})
    keyring.set_keyring(ring)
    with answering(PAGE) as loopback, unhurried_client(loopback.url) as client:
        client.project_page("demo")
    assert ring.queried == []


def test_credentials_are_not_sent_to_file_hosts(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("default login me password hush!\n")
    ring = Keyring({})
    keyring.set_keyring(ring)
    with guarded() as other, guarded(basic("me", "hush!")) as loopback:
        with unhurried_client(loopback.url, allowed_file_hosts=["localhost"]) as client:
            for url in (f"{other.url}/f", f"{other.other_url}/f", f"{loopback.other_url}/f"):
                with pytest.raises(RefusedError, match=naming(401)):
                    client.fetch_file(url, io.BytesIO(), sha256=None, size=None, max_bytes=100)
        assert sent(other) + sent(loopback) == [None, None, None]
    assert ring.queried == []


def refusal_of(client: IndexClient) -> str:
    with pytest.raises(RefusedError) as caught:
        client.project_page("demo")
    assert "hush" not in str(caught.value) + repr(caught.value)
    return str(caught.value)


def use_no_keyring(_: pytest.MonkeyPatch, __: Loopback) -> None:
    """Do nothing, since the fixtures install no keyring."""


def use_no_package(monkeypatch: pytest.MonkeyPatch, _: Loopback) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)


def use_wrong_login(_: pytest.MonkeyPatch, loopback: Loopback) -> None:
    keyring.set_keyring(Keyring({(f"{loopback.url}/simple/", None): ("me", "hush?")}))


def use_locked(_: pytest.MonkeyPatch, loopback: Loopback) -> None:
    keyring.set_keyring(Keyring({(f"{loopback.url}/simple/", None): RuntimeError("locked with hush")}))


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (use_no_keyring, "netrc"),
        (use_no_package, "netrc"),
        (use_wrong_login, "credentials"),
        (use_locked, "RuntimeError"),
    ],
)
def test_rejected_login_is_reported_with_the_remedy(
    use: Callable[[pytest.MonkeyPatch, Loopback], None], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with guarded() as loopback, unhurried_client(loopback.url) as client:
        use(monkeypatch, loopback)
        assert mentions(refusal_of(client), 401, text)
        assert len(loopback.received) <= 2


def test_rejected_login_in_the_url_is_not_shown() -> None:
    with guarded() as loopback, unhurried_client(loopback.url, **with_user(loopback, "me:hush%21")) as client:
        assert mentions(refusal_of(client), 401)
        assert sent(loopback) == [basic("me", "hush!")]


def test_invalid_netrc_is_named_but_not_quoted(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me\n hush! 1\n")
    with guarded() as loopback, unhurried_client(loopback.url) as client:
        text = refusal_of(client)
    assert mentions(text, ".netrc", "line 2")
