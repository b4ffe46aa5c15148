"""URLs without their secrets, and which hosts a URL may name. Which addresses are allowed is in `addresses.py`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pypi_assets.index.errors import RefusedError

# Stricter than the RFC, so that no two URL parsers can see different hosts in the same text.
_FETCHABLE = re.compile(
    r"(?P<scheme>https?)://(?:[a-z0-9._~!$&'()*+,;=:%-]*@)?(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]{1,5})?"
    r"(?:[/?#][^\\\s\x00-\x1f\x7f]*)?",
    re.IGNORECASE,
)


def redact(url: str) -> str:
    """`url` without user and password, also where it is no valid URL."""
    return re.sub(r"^([a-z][a-z0-9+.-]*:)?//[^/?#]*@", r"\1//", url, flags=re.IGNORECASE)


def split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """`url` without user and password, and those two, decoded."""
    parts = urlsplit(url)
    credentials = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return redact(url), credentials


def origin(url: str) -> str:
    """Scheme, host and port of a URL without credentials: credentials for one URL of an origin count for all."""
    parts = urlsplit(url)
    default_port = ":443" if parts.scheme == "https" else ":80"
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(default_port)}"


@dataclass(frozen=True, slots=True)
class HostRule:
    """Which hosts requests may go to, as `host` or `host:port`, in lower case; over https only unless `allow_http`."""

    hosts: frozenset[str]
    allow_http: bool

    def check(self, url: str) -> None:
        """Raises RefusedError where `url` must not be requested."""
        scheme, host, port = _split(url)
        if scheme == "http" and not self.allow_http:
            raise RefusedError("not over https, though the index itself is", redact(url))
        if not {host, host + port} & self.hosts:
            raise RefusedError(
                f"the host {host} is neither the index's own nor one of the allowed file hosts; if you trust it, add it"
                " to PYPI_ASSETS_ALLOWED_FILE_HOSTS and try again what failed",
                redact(url),
            )


def host_rule(index_url: str, changelog_url: str, allowed_file_hosts: Iterable[str]) -> HostRule:
    """The index's own hosts and the allowed ones, over http only if the index itself is."""
    scheme, host, _ = _split(index_url)
    _, changelog_host, _ = _split(changelog_url)
    allowed = {allowed.lower() for allowed in allowed_file_hosts}
    return HostRule(frozenset({host, changelog_host} | allowed), allow_http=scheme == "http")


def _split(url: str) -> tuple[str, str, str]:
    match = _FETCHABLE.fullmatch(url)
    if match is None:
        raise RefusedError("not an http(s) URL that can be requested", redact(url))
    return match["scheme"].lower(), match["host"].lower(), match["port"] or ""
