"""Decides which network addresses may be connected to, so that no page or redirect leads into a private network.

Which hosts a URL may name is decided in `urls.py`.
"""

import ipaddress
import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

LONGEST_LOOKUP_S = 10.0
"""The longest wait for a name lookup outside of requests, which have their own deadlines."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class ForbiddenAddressError(Exception):
    """A host is at an address that must not be connected to."""


class UnknownAddressError(Exception):
    """A host name cannot be resolved at the moment."""


def resolve(host: str, timeout_s: float = LONGEST_LOOKUP_S) -> list[str]:
    """Return the addresses of `host`, the preferred address first. The list is never empty.

    Raises UnknownAddressError if the name has no address, UnicodeError if it is not a valid name, and TimeoutError
    after `timeout_s` seconds. The system's resolver cannot be interrupted. After a timeout, it ends later in its own
    thread.
    """
    with suppress(OSError, UnicodeError):
        # a literal address: no resolver is involved, so no time limit is needed
        return _look_up(host, socket.AI_NUMERICHOST)
    found: list[str] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            found.extend(_look_up(host, 0))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            failures.append(error)

    thread = threading.Thread(target=run, name=f"resolve {host[:40]}", daemon=True)
    thread.start()
    thread.join(max(0.0, timeout_s))
    if failures:
        if isinstance(failures[0], OSError):
            raise UnknownAddressError(f"the name of the host {host} cannot be resolved") from failures[0]
        raise failures[0]
    if thread.is_alive():
        raise TimeoutError("timed out")
    return found


def _look_up(host: str, flags: int) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_loopback(host: str | None) -> bool:
    """Check whether `host` names this machine."""
    if host is None:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_public(address: str) -> bool:
    """Check whether `address` is on the public internet.

    Loopback, private, shared, link-local, multicast and reserved addresses are not. An IPv6 address that embeds an IPv4
    address (mapped, 6to4, NAT64) is judged by the IPv4 address.
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
    """Decides whether a host may be connected to at an address.

    The index's own hosts may have any address. Other hosts must have public addresses unless the index has a private
    one. A host that was chosen by pages rather than by a person (`chosen_by_pages`) must be public even with a private
    index. If the index is on this machine, such a host may be on this machine too.
    """

    def __init__(self, index_url: str = "", *other_urls: str) -> None:
        self._index_host = host_of(index_url)
        self._own_hosts = {self._index_host, *map(host_of, other_urls)}
        self._is_index_private: bool | None = None
        self.chosen_by_pages: str | None = None

    def check(self, host: str, address: str) -> None:
        """Raise ForbiddenAddressError if `host`, which is at `address`, must not be connected to."""
        if host in self._own_hosts or is_public(address):
            return
        if host == self.chosen_by_pages:
            self._require_here(host, address)
            return
        if self._index_is_private():
            return
        raise ForbiddenAddressError(
            f"{host} is at {address}, which is not a public address: only an index that is itself at such an address"
            " may have its files there; check what the host's name resolves to"
        )

    def check_choice(self, host: str) -> None:
        """Check every address of a host that pages chose.

        Raises ForbiddenAddressError, or UnknownAddressError if the name cannot be resolved.
        """
        try:
            addresses = resolve(host)
        except (TimeoutError, UnicodeError) as error:
            raise UnknownAddressError(f"the name of the host {host} cannot be resolved") from error
        for address in addresses:
            if not is_public(address):
                self._require_here(host, address)

    def _require_here(self, host: str, address: str) -> None:
        if not (is_loopback(self._index_host) and is_loopback(address)):
            raise ForbiddenAddressError(
                f"{host} is at {address}, which is not a public address, so it is not trusted just because pages name"
                " it; if you trust it, name it in PYPI_ASSETS_ALLOWED_FILE_HOSTS"
            )

    def check_proxied(self, host: str) -> None:
        """Check a host that a proxy connects to.

        Only the proxy knows its address, unless `host` is itself an address.
        """
        if host == "localhost" or host.endswith(".localhost"):
            self.check(host, "127.0.0.1")
        with suppress(OSError, UnicodeError):
            for address in _look_up(host, socket.AI_NUMERICHOST):
                self.check(host, address)

    def _index_is_private(self) -> bool:
        if self._is_index_private is None:
            try:
                addresses = resolve(self._index_host)
            except (UnknownAddressError, TimeoutError, UnicodeError):
                return False
            self._is_index_private = not all(is_public(address) for address in addresses)
        return self._is_index_private


def host_of(url: str) -> str:
    """Return the host of a URL, without the trailing dot that a name may have."""
    return (urlsplit(url).hostname or "").rstrip(".")
