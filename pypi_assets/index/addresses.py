"""Which network addresses may be connected to, so that no page and no redirect leads into a private network.

Which hosts a URL may name is decided in `urls.py`.
"""

import ipaddress
import socket
from contextlib import suppress
from urllib.parse import urlsplit

from pypi_assets.index.deadlines import resolve

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class ForbiddenAddressError(Exception):
    """A host is at an address that must not be connected to."""


class UnknownAddressError(Exception):
    """The name of a host cannot be resolved now."""


def is_loopback(host: str | None) -> bool:
    """Whether `host` names this machine itself."""
    if host is None:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_public(address: str) -> bool:
    """Whether `address` is of the public internet: not loopback, private, shared, link-local, multicast or reserved.

    An IPv6 address that stands for an IPv4 address (mapped, 6to4, NAT64) is what that one is.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        embedded = parsed.ipv4_mapped or parsed.sixtofour
        if parsed in _NAT64:
            embedded = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        if embedded is None:
            return parsed.is_global and not (parsed.is_multicast or parsed.is_reserved or parsed.is_site_local)
        parsed = embedded
    return parsed.is_global and not (parsed.is_multicast or parsed.is_reserved)


class AddressRule:
    """The index's own hosts may be anywhere; all others must be public, unless the index itself is not.

    A host that pages chose, and no person (`chosen_by_pages`), must be public all the same. Where the index is on this
    machine, it may be on this machine too.
    """

    def __init__(self, index_url: str, changelog_url: str) -> None:
        self._index_host = _host(index_url)
        self._own_hosts = {self._index_host, _host(changelog_url)}
        self._is_index_private: bool | None = None
        self.chosen_by_pages: str | None = None

    def check(self, host: str, address: str) -> None:
        """Raises ForbiddenAddressError where `host`, which is at `address`, must not be connected to."""
        if host in self._own_hosts or is_public(address):
            return
        if host == self.chosen_by_pages:
            self._require_here(host, address)
            return
        if self._index_is_private():
            return
        raise ForbiddenAddressError(
            f"{host} is at {address}, which is no public address: only an index that is itself at such an address may"
            " have its files there; check what the host's name stands for"
        )

    def check_before(self, host: str) -> None:
        """Checks every address that `host` has now, before a connection is opened.

        The name can resolve to another address a moment later, so `check` the connected address as well.
        """
        if host not in self._own_hosts:
            for address in _addresses(host):
                self.check(host, address)

    def check_choice(self, host: str) -> None:
        """Checks every address of a host that pages chose.

        Raises ForbiddenAddressError, and UnknownAddressError where the name cannot be resolved.
        """
        addresses = _addresses(host)
        if not addresses:
            raise UnknownAddressError(f"the name of the host {host} cannot be resolved")
        for address in addresses:
            if not is_public(address):
                self._require_here(host, address)

    def _require_here(self, host: str, address: str) -> None:
        if not (is_loopback(self._index_host) and is_loopback(address)):
            raise ForbiddenAddressError(
                f"{host} is at {address}, which is no public address, so it is not trusted because pages name it; if"
                " you trust it, name it in PYPI_ASSETS_ALLOWED_FILE_HOSTS"
            )

    def check_proxied(self, host: str) -> None:
        """Checks a host that a proxy connects to. Only the proxy knows the address, unless `host` is an address."""
        if host == "localhost" or host.endswith(".localhost"):
            self.check(host, "127.0.0.1")
        with suppress(OSError, UnicodeError):
            for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST):
                self.check(host, str(found[4][0]))

    def _index_is_private(self) -> bool:
        if self._is_index_private is None:
            addresses = _addresses(self._index_host)
            if not addresses:
                return False
            self._is_index_private = not all(is_public(address) for address in addresses)
        return self._is_index_private


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").rstrip(".")


def _addresses(host: str) -> list[str]:
    """The addresses of `host`, none where its name cannot be resolved, or not in time."""
    with suppress(OSError, UnicodeError):
        return [address[0] for _, address in resolve(host, None)]
    return []
