"""Chooses which host of files to trust on first use: the host that an index's first pages agree on.

An *origin* is scheme, host and port. The index's own hosts are always trusted. Where the choice is stored, and which
pages are the first, does not belong here; see `crawl/fetching.py`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.urls import HostRule, allowing, redact, shown_host, split_fetchable

_NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]+)")
"""A name on the public internet. Its last part has letters, so no URL parser can mistake it for an address."""
_LOCAL_NAME = re.compile(r".*\.(?:localhost|local|localdomain|internal|intranet|lan|home|corp|home\.arpa)")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The origin that the first pages agree on. `origin` is empty if the files are on the index's own hosts only.

    `refused` are further hosts named by the pages. Nothing is fetched from them.
    """

    origin: str
    refused: tuple[str, ...] = ()


def agreed_file_origin(
    urls: Iterable[str], rule: HostRule, *, is_index_here: bool, check: Callable[[str], None]
) -> FileOrigin | None:
    """Return the origin that the files at `urls` agree on, apart from the hosts of `rule`.

    Returns None if none of the files can be requested at all. `check` raises RefusedError for an origin at a forbidden
    address, and TransientError if its name cannot be resolved. If the index is on this machine (`is_index_here`), the
    files may be on it too, on any port, and over http if the index uses http.

    Raises RefusedError if the pages name several hosts, or a host that must not be trusted, and the TransientError of
    `check`. However, if some of the files are on the index's own hosts, the result is then those hosts alone; for a
    TransientError, it is None, so that the choice is made later.
    """
    others: dict[str, str] = {}
    has_own = False
    for url in urls:
        origin = _origin(url, rule)
        has_own = has_own or origin == ""
        if origin:
            others.setdefault(origin, redact(url))
    if not others:
        return FileOrigin("") if has_own else None
    try:
        return FileOrigin(_trustworthy(others, rule, is_index_here, check))
    except RefusedError:
        if not has_own:
            raise
        return FileOrigin("", tuple(sorted(map(shown_host, others))))
    except TransientError:
        if not has_own:
            raise
        return None


def _origin(url: str, rule: HostRule) -> str | None:
    """Return the origin of a file, empty for the index's own hosts, or None if the file can never be requested."""
    try:
        scheme, host, port = split_fetchable(url)
    except RefusedError:
        return None
    is_own = rule.is_named(scheme, host, port) and (scheme == "https" or rule.allow_http)
    return "" if is_own else f"{scheme}://{host}{port}"


def _trustworthy(others: dict[str, str], rule: HostRule, is_index_here: bool, check: Callable[[str], None]) -> str:
    """Return the only origin in `others`, which maps origins to the URL of a file.

    Raises RefusedError if there are several origins, or if the origin must not be trusted.
    """
    hosts = sorted(map(shown_host, others))
    origin, url = next(iter(others.items()))
    if len(others) > 1:
        shown = ", ".join(hosts[:_SHOWN]) + (" ..." if len(hosts) > _SHOWN else "")
        raise RefusedError(
            f"the first pages of the index name files on {len(hosts)} hosts ({shown}), so none is trusted"
            f" automatically; for those that you trust, {allowing(hosts[:_SHOWN])} and run the same command again",
            url,
        )
    if reason := _distrust(origin, rule, is_index_here):
        raise RefusedError(
            f"the first pages of the index name files on {origin}, which is not trusted automatically: {reason}; if"
            f" you trust it, {allowing(hosts)} and run the same command again",
            url,
        )
    check(origin)
    return origin


def _distrust(origin: str, rule: HostRule, is_index_here: bool) -> str | None:
    """Return why an origin must not be trusted because pages name it, or None if it may be trusted.

    Its address is checked elsewhere.
    """
    scheme, host, port = split_fetchable(origin)
    if scheme != "https" and not (is_index_here and rule.allow_http):
        return "it is not https"
    if is_index_here:
        return None
    if port:
        return f"port {port.removeprefix(':')} is not the default port"
    if _LOCAL_NAME.fullmatch(host) or not _NAME.fullmatch(host):
        return "it is not a name on the public internet"
    return None
