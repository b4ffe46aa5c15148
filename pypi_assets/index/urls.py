"""URLs without their secrets, and which hosts a URL may name. Which addresses are allowed is in `addresses.py`."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pypi_assets.index.errors import RefusedError

_USUAL_PORTS = {"http": ":80", "https": ":443"}
# Stricter than the RFC, so that no two URL parsers can see different hosts in the same text.
_FETCHABLE = re.compile(
    r"(?P<scheme>https?)://(?:[a-z0-9._~!$&'()*+,;=:%-]*@)?(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]{1,5})?"
    r"(?:[/?#][^\\\s\x00-\x1f\x7f]*)?",
    re.IGNORECASE,
)
LIST_FOLDERS = ("simple", "+simple")
"""The folder of the list of projects, below an index's base; the second one is devpi's."""
_LOGIN = re.compile(r"^([a-z][a-z0-9+.-]*+:)?//[^/?#]*@", re.IGNORECASE)


def redact(url: str) -> str:
    """`url` without user and password, also where it is no valid URL."""
    return _LOGIN.sub(r"\1//", url)


def split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """`url` without user and password, and those two, decoded."""
    parts = urlsplit(url)
    credentials = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return redact(url), credentials


def with_credentials_of(url: str, other: str) -> str:
    """Return `other`, which has no user and no password, with those of `url`."""
    login, is_there, _ = urlsplit(url).netloc.rpartition("@")
    scheme, _, rest = other.partition("://")
    return f"{scheme}://{login}@{rest}" if is_there else other


def origin(url: str) -> str:
    """Scheme, host and port of a URL without credentials: credentials for one URL of an origin count for all."""
    parts = urlsplit(url)
    default_port = ":443" if parts.scheme == "https" else ":80"
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(default_port)}"


@dataclass(frozen=True, slots=True)
class HostRule:
    """Which hosts requests may go to, as `host` or `host:port`, in lower case; over https only unless `allow_http`.

    If `hosts` is None, requests may go to every host, as far as its addresses are allowed.

    `file_origin` is the one other origin that the first pages chose, empty where they chose none. It is None where
    `hosts` decides alone.
    """

    hosts: frozenset[str] | None
    allow_http: bool
    file_origin: str | None = None

    def check(self, url: str) -> None:
        """Raises RefusedError where `url` must not be requested."""
        scheme, host, port = split_fetchable(url)
        if self.file_origin and f"{scheme}://{host}{port}" == self.file_origin:
            return
        if scheme == "http" and not self.allow_http:
            raise RefusedError("not over https, as the first address is", redact(url))
        if not self.is_named(scheme, host, port):
            raise RefusedError(self._describe(host, port), redact(url))

    def is_named(self, scheme: str, host: str, port: str) -> bool:
        """Whether the host is one of `hosts`, with this port or with any."""
        return self.hosts is None or bool({host, host + (port or _USUAL_PORTS[scheme])} & self.hosts)

    def _describe(self, host: str, port: str) -> str:
        if self.file_origin is None:
            return (
                f"the host {host} is neither the index's own nor one of the allowed file hosts; if you trust it, add it"
                " to PYPI_ASSETS_ALLOWED_FILE_HOSTS and try again what failed"
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
    """What a person does who trusts all these hosts."""
    return f"set PYPI_ASSETS_ALLOWED_FILE_HOSTS='{json.dumps(list(hosts))}'"


def shown_host(file_origin: str) -> str:
    """The host of an origin, with its port if that is not the usual one, as the settings name it."""
    return file_origin.partition("://")[2]


def host_rule(index_url: str, changelog_url: str, allowed_file_hosts: Iterable[str]) -> HostRule:
    """The index's own hosts and the allowed ones, over http only if the index itself is."""
    scheme, host, _ = split_fetchable(index_url)
    _, changelog_host, _ = split_fetchable(changelog_url)
    allowed = {allowed.lower() for allowed in allowed_file_hosts}
    return HostRule(frozenset({host, changelog_host} | allowed), allow_http=scheme == "http")


def split_fetchable(url: str) -> tuple[str, str, str]:
    """Scheme, host and port (`:8080`, empty for the usual one) of a URL, in lower case.

    Raises RefusedError for anything that cannot be requested.
    """
    match = _FETCHABLE.fullmatch(url)
    if match is None:
        raise RefusedError("not an http(s) URL that can be requested", redact(url))
    scheme, port = match["scheme"].lower(), match["port"] or ""
    return scheme, match["host"].lower(), "" if port == _USUAL_PORTS[scheme] else port


def addresses_of(url: str) -> list[str]:
    """Return where the list of projects of the index `url` can be, with and without its last folder.

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
    """Return the index's base, without the folder of its list and without a slash at its end."""
    base, _, last = url.rstrip("/").rpartition("/")
    return base if last in LIST_FOLDERS else url.rstrip("/")
