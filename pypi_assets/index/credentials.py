"""Who we are to an index, told as to pip: in the index's URLs, in netrc, in the keyring. Nobody else is told."""

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
    """Of one origin: its URL and what that says, and the login that is sent, once it was looked for."""

    url: str
    username: str | None
    password: str | None
    login: Login | None = None
    is_looked_up: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Credentials:
    """The logins of the index's own origins, those of its Simple API and of its changelog.

    What a URL says holds. Else what netrc says (the file that NETRC names, or ~/.netrc) is sent from the first request
    on, and the keyring, if the package is installed, is asked after a 401: by URL, then by host, with the username
    where the URL has one.
    """

    def __init__(self, index_url: str, changelog_url: str) -> None:
        index, changelog = _account(index_url), _account(changelog_url)
        if origin(index.url) == origin(changelog.url) and index.username is None:
            index.username, index.password = changelog.username, changelog.password
        self._accounts = {origin(changelog.url): changelog, origin(index.url): index}

    def login(self, url: str) -> Login | None:
        """What is sent to `url` at first."""
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
        """What is sent after `url` answered 401 to all of `tried`; None where nothing is left.

        netrc is read again, and the keyring asked again, since logins expire. Raises RefusedError where that fails.
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
    """The value of an Authorization header (RFC 7617)."""
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
    except netrc.NetrcParseError as error:  # whose text can show a password
        place = f"{error.filename}, line {error.lineno}"
        raise RefusedError(f"HTTP 401, and netrc cannot be read: {place} is not understood", account.url) from None
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
    except Exception as error:  # backends raise what they like
        raise RefusedError(f"HTTP 401, and the keyring cannot be asked: {type(error).__name__}", account.url) from error
    return None
