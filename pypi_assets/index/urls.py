"""URLs without their secrets, and the hosts that a URL may name. Allowed network addresses are in `addresses.py`."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from pypi_assets.index.errors import RefusedError

_USUAL_PORTS = {"http": ":80", "https": ":443"}
# Stricter than the RFC, so that two URL parsers cannot see different hosts in the same text.
_FETCHABLE = re.compile(
    r"(?P<scheme>https?)://(?:[a-z0-9._~!$&'()*+,;=:%-]*@)?(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]{1,5})?"
    r"(?:[/?#][^\\\s\x00-\x1f\x7f]*)?",
    re.IGNORECASE,
)
LIST_FOLDERS = ("simple", "+simple")
"""The folder that holds the list of projects, below an index's base URL. `+simple` is devpi's."""
_BLANK = re.compile(r"\s")
_LOGIN = re.compile(r"^([a-z][a-z0-9+.-]*+:)?//[^/?#]*@", re.IGNORECASE)


def redact(url: str) -> str:
    """Return `url` without user and password. Invalid URLs are redacted too."""
    return _LOGIN.sub(r"\1//", url)


def quote_blanks(url: str) -> str:
    """Return `url` with each blank quoted, as installers quote them: `a b.whl` becomes `a%20b.whl`."""
    return _BLANK.sub(lambda blank: quote(blank[0]), url)


def split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return `url` without user and password, and the decoded user and password (None if there is no user)."""
    parts = urlsplit(url)
    credentials = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return redact(url), credentials


def with_credentials_of(url: str, other: str) -> str:
    """Return `other`, a URL without user and password, with the user and password of `url`."""
    login, is_there, _ = urlsplit(url).netloc.rpartition("@")
    scheme, _, rest = other.partition("://")
    return f"{scheme}://{login}@{rest}" if is_there else other


def origin(url: str) -> str:
    """Return scheme, host and port of a URL without credentials. Credentials apply to all URLs of an origin."""
    parts = urlsplit(url)
    default_port = ":443" if parts.scheme == "https" else ":80"
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(default_port)}"


@dataclass(frozen=True, slots=True)
class HostRule:
    """The hosts that requests may go to, as `host` or `host:port` in lower case. http is allowed only if `allow_http`.

    If `hosts` is None, requests may go to every host whose addresses are allowed.

    `file_origin` is one further origin, selected from the index's first pages; it is empty if they selected none. If it
    is None, `hosts` alone decides.
    """

    hosts: frozenset[str] | None
    allow_http: bool
    file_origin: str | None = None

    def check(self, url: str) -> None:
        """Raise RefusedError if `url` must not be requested."""
        scheme, host, port = split_fetchable(url)
        if self.file_origin and f"{scheme}://{host}{port}" == self.file_origin:
            return
        if scheme == "http" and not self.allow_http:
            raise RefusedError("not an https URL, although the configured URL is", redact(url))
        if not self.is_named(scheme, host, port):
            raise RefusedError(self._describe(host, port), redact(url))

    def is_named(self, scheme: str, host: str, port: str) -> bool:
        """Check whether the host is in `hosts`, either with this port or without a port."""
        return self.hosts is None or bool({host, host + (port or _USUAL_PORTS[scheme])} & self.hosts)

    def _describe(self, host: str, port: str) -> str:
        if self.file_origin is None:
            return (
                f"the host {host} is neither the index's own nor one of the allowed file hosts; if you trust it, add it"
                " to PYPI_ASSETS_ALLOWED_FILE_HOSTS and retry the failed work"
            )
        retry = "and run `pypi-assets failures retry --kind refused`"
        if not self.file_origin:
            return (
                f"the host {host} is not the index's own, and the first pages of the index did not agree on it; if you"
                f" trust it, {allowing([host + port])} {retry}"
            )
        chosen = shown_host(self.file_origin)
        return (
            f"the host {host} is neither the index's own nor {chosen}, which the first pages of the index agreed on; if"
            f" you trust it, {allowing([chosen, host + port])} {retry}"
        )


def allowing(hosts: Iterable[str]) -> str:
    """Return the advice for a user who trusts all these hosts."""
    return f"set PYPI_ASSETS_ALLOWED_FILE_HOSTS='{json.dumps(list(hosts))}'"


def shown_host(file_origin: str) -> str:
    """Return the host of an origin as the settings name it: with its port unless that is the scheme's default port."""
    return file_origin.partition("://")[2]


def host_rule(index_url: str, changelog_url: str, allowed_file_hosts: Iterable[str]) -> HostRule:
    """Return the rule for the index's own hosts and the allowed hosts. http is allowed only if the index uses it."""
    scheme, host, _ = split_fetchable(index_url)
    _, changelog_host, _ = split_fetchable(changelog_url)
    allowed = {allowed.lower() for allowed in allowed_file_hosts}
    return HostRule(frozenset({host, changelog_host} | allowed), allow_http=scheme == "http")


def split_fetchable(url: str) -> tuple[str, str, str]:
    """Return scheme, host and port of a URL in lower case. The port is like `:8080`, or empty for the scheme's default.

    Raises RefusedError for anything that cannot be requested.
    """
    match = _FETCHABLE.fullmatch(url)
    if match is None:
        raise RefusedError("not an http(s) URL that can be requested", redact(url))
    scheme, port = match["scheme"].lower(), match["port"] or ""
    return scheme, match["host"].lower(), "" if port == _USUAL_PORTS[scheme] else port


def addresses_of(url: str) -> list[str]:
    """Return the URLs at which the list of projects of the index `url` can be, with and without its last folder.

        >>> addresses_of("https://devpi.example.org/me/dev")
        ['https://devpi.example.org/me/dev/simple/', 'https://devpi.example.org/me/dev/+simple/', \
'https://devpi.example.org/me/dev/']
    """
    base, _, last = url.rstrip("/").rpartition("/")
    if last not in LIST_FOLDERS:
        base = url.rstrip("/")
        return [*(f"{base}/{name}/" for name in LIST_FOLDERS), f"{base}/"]
    other = next(name for name in LIST_FOLDERS if name != last)
    return [f"{base}/{last}/", f"{base}/{other}/"]


def base_of(url: str) -> str:
    """Return the index's base URL, without the folder of its list and without a trailing slash."""
    base, _, last = url.rstrip("/").rpartition("/")
    return base if last in LIST_FOLDERS else url.rstrip("/")
