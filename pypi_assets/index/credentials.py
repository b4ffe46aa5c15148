"""Credentials for an index, looked up where pip looks: in the index's URLs, in netrc, in the keyring.

They are sent only to the index's own origins. A proxy's credentials are part of its URL; see `connections.py`.
"""

import netrc
import threading
from base64 import b64encode
from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from requests.utils import get_netrc_auth

from pypi_assets.index.errors import RefusedError
from pypi_assets.index.urls import origin, redact

Login = tuple[str, str]
"""A user and a password."""

_MOST_TRIES = 4


@dataclass(slots=True)
class _Account:
    """One origin: its URL, the user and password in that URL, and the login to send, once it was looked up."""

    url: str
    username: str | None
    password: str | None
    login: Login | None = None
    is_looked_up: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class IndexCredentials:
    """The logins for the origins of `urls`. For an index, these are its Simple API and its changelog.

    A login in the URL comes first. Otherwise a login from netrc (the file named by NETRC, or ~/.netrc) is sent with the
    first request. After a 401, the keyring is queried if the package is installed: by URL, then by host, with the
    username if the URL has one.
    """

    def __init__(self, *urls: str) -> None:
        self._accounts: dict[str, _Account] = {}
        for account in map(_account, urls):
            known = self._accounts.setdefault(origin(account.url), account)
            if known.username is None:
                known.username, known.password = account.username, account.password

    def login(self, url: str) -> Login | None:
        """Return the login to send to `url` first, or None for other origins and if no login is known."""
        account = self._accounts.get(origin(url))
        if account is None:
            return None
        if not account.is_looked_up:
            with account.lock:
                if not account.is_looked_up:
                    account.login = _from_url(account) or get_netrc_auth(account.url) or _username_alone(account)
                    account.is_looked_up = True
        return account.login

    def other_login(self, url: str, tried: Collection[Login]) -> Login | None:
        """Return the login to send after `url` answered 401 to all logins in `tried`, or None if there are no more.

        netrc and the keyring are read again, since logins expire. Raises RefusedError if one of them cannot be read.
        """
        account = self._accounts.get(origin(url))
        if account is None or _from_url(account) or len(tried) >= _MOST_TRIES:
            return None
        with account.lock:
            for source in (lambda _: account.login, _from_netrc, _from_keyring):
                login = source(account)
                if login is not None and login not in tried:
                    account.login = login
                    return login
        return None


def basic_authorization(login: Login) -> str:
    """Return the value of an Authorization header (RFC 7617)."""
    return f"Basic {b64encode(':'.join(login).encode()).decode()}"


def _account(url: str) -> _Account:
    parts = urlsplit(url)
    username = unquote(parts.username) if parts.username else None
    return _Account(redact(url), username, None if parts.password is None else unquote(parts.password))


def _from_url(account: _Account) -> Login | None:
    if account.username is None or account.password is None:
        return None
    return account.username, account.password


def _username_alone(account: _Account) -> Login | None:
    return None if account.username is None else (account.username, "")


def _from_netrc(account: _Account) -> Login | None:
    try:
        return get_netrc_auth(account.url, raise_errors=True)
    except netrc.NetrcParseError as error:  # its text can contain a password
        place = f"{error.filename}, line {error.lineno}"
        raise RefusedError(f"HTTP 401, and netrc cannot be read: {place} has a syntax error", account.url) from None
    except OSError as error:
        raise RefusedError(f"HTTP 401, and netrc cannot be read: {error.strerror}", account.url) from error


def _from_keyring(account: _Account) -> Login | None:
    try:
        import keyring
        from keyring.errors import NoKeyringError
    except ImportError:
        return None
    try:
        for service in (account.url, urlsplit(account.url).netloc):
            found = keyring.get_credential(service, account.username)
            if found is not None:
                return found.username, found.password
    except NoKeyringError:
        return None
    except Exception as error:  # keyring backends can raise anything
        raise RefusedError(f"HTTP 401, and the keyring cannot be read: {type(error).__name__}", account.url) from error
    return None
