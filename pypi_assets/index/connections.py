"""Connects to an index and its file hosts: directly or through a proxy, with TLS, and to checked addresses only.

It also describes why a server did not answer, and names the setting to check. The descriptions are written here, since
the libraries' own messages can contain a proxy's password.
"""

import os
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_environ_proxies, select_proxy
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPResponse, PoolManager, ProxyManager, Retry, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError, ProxyError
from urllib3.util import create_urllib3_context

from pypi_assets.index.addresses import AddressRule, UnknownAddressError, host_of, resolve
from pypi_assets.index.credentials import basic_authorization
from pypi_assets.index.deadlines import WATCHDOG
from pypi_assets.index.errors import RefusedError
from pypi_assets.index.urls import origin, redact

_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_MOST_ORIGINS = 64
_LOOKUP_KEPT_S = 60.0
"""How long a route is used before its addresses are looked up and checked again."""
_NO_RETRIES = Retry(total=False, redirect=False)


@dataclass(frozen=True, slots=True)
class Network:
    """The settings that pip calls --proxy, --cert and --client-cert. If one is None, environment variables decide.

    `proxy` is an http(s) URL, with or without credentials, and is used for every host. `ca_file` is a file of
    certificates, or a folder of certificates as created by `openssl rehash`. `client_cert` is one PEM file with the key
    and its certificate.
    """

    proxy: str | None = None
    ca_file: str | None = None
    client_cert: str | None = None


@dataclass(slots=True)
class _Route:
    """The connections to one origin: one pool for each address, starting with the address that answered last."""

    pools: tuple[HTTPConnectionPool, ...]
    until: float
    host: dict[str, str]
    """The Host header, for connections that urllib3 makes to a bare address."""
    is_forwarded: bool = False
    """True if a proxy forwards the requests, so the request line carries the whole URL."""

    def target(self, url: str) -> str:
        """Return the target for the request line."""
        if self.is_forwarded:
            return url
        parts = urlsplit(url)
        return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"


class Connections:
    """Keeps up to `kept` connections open to each origin, shared by all threads of a process.

    Names are resolved here, and urllib3 gets the checked addresses. So each connection goes to an address that was
    checked.
    """

    def __init__(self, addresses: AddressRule, network: Network, *, kept: int) -> None:
        self._addresses = addresses
        self._network = network
        self._kept = kept
        self._direct = PoolManager(num_pools=_MOST_ORIGINS, maxsize=kept)
        self._proxied: dict[str, ProxyManager] = {}
        self._routes: dict[str, _Route] = {}

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        connect_s: float,
        read_s: float,
        total_s: float,
    ) -> BaseHTTPResponse:
        """Send a request and return its answer with an unread body.

        Name lookup, connection and TLS may take `connect_s` seconds together. Everything up to the end of the headers
        may take `total_s` seconds. Raises RefusedError for an unusable proxy or TLS setup, ForbiddenAddressError or
        UnknownAddressError for the address, and otherwise the errors of urllib3.
        """
        ends = time.monotonic() + min(connect_s, total_s)
        route = self._route(url, ends)
        pools = route.pools
        for left, pool in zip(range(len(pools), 0, -1), pools, strict=True):
            share_s = (ends - time.monotonic()) / left
            if share_s <= 0:
                break
            try:
                answer = pool.urlopen(
                    method,
                    route.target(url),
                    body=body,
                    headers={**route.host, **headers},
                    retries=_NO_RETRIES,
                    redirect=False,
                    assert_same_host=False,
                    timeout=Timeout(connect=share_s, read=read_s, total=total_s),
                    preload_content=False,
                    decode_content=False,
                )
            except (NewConnectionError, ConnectTimeoutError):
                if left == 1:
                    self._routes.pop(origin(url), None)
                    raise
            else:
                if pool is not pools[0]:
                    route.pools = _first(pool, pools)
                return answer
        raise TimeoutError("timed out")

    def check_choice(self, url: str) -> None:
        """Check the addresses of a URL whose host was chosen by pages, as far as they are known; see `AddressRule`."""
        if self._proxy(url):
            self._addresses.check_proxied(host_of(url))
        else:
            self._addresses.check_choice(host_of(url))

    def choose(self, url: str) -> None:
        """Treat the host of `url` as chosen by pages from now on."""
        self._addresses.chosen_by_pages = host_of(url) or None
        self._routes = {}

    def close(self) -> None:
        """Close all connections. Call it when no thread uses them any more."""
        for manager in (self._direct, *self._proxied.values()):
            manager.clear()
        self._routes = {}

    def _route(self, url: str, ends: float) -> _Route:
        key = origin(url)
        known = self._routes.get(key)
        if known is not None and time.monotonic() < known.until:
            return known
        proxy = self._proxy(url)
        route = self._proxied_route(url, proxy, ends) if proxy else self._direct_route(url, ends)
        if known is not None and known.pools[0] in route.pools:
            route.pools = _first(known.pools[0], route.pools)
        if len(self._routes) >= _MOST_ORIGINS:
            self._routes = {}
        self._routes[key] = route
        return route

    def _direct_route(self, url: str, ends: float) -> _Route:
        parts, host = urlsplit(url), host_of(url)
        options = {"ssl_context": self._context(url), "server_hostname": host} if parts.scheme == "https" else {}
        addresses = resolve(parts.hostname or "", ends - time.monotonic())  # with the trailing dot, if the name has one
        for address in addresses:
            self._addresses.check(host, address)
        pools = [
            self._direct.connection_from_host(
                f"[{address}]" if ":" in address else address, parts.port, parts.scheme, options
            )
            for address in addresses
        ]
        return _Route(tuple(map(_watched, pools)), _renewal(), {"Host": origin(url).partition("://")[2]})

    def _proxied_route(self, url: str, proxy: str, ends: float) -> _Route:
        """Return a route through the proxy, after checking that the proxy's name resolves in time.

        The operator chose the proxy, so urllib3 may resolve its name again.
        """
        self._addresses.check_proxied(host_of(url))
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        manager = self._proxied.get(proxy) or self._proxied.setdefault(proxy, self._proxy_manager(url, proxy))
        try:
            resolve(host_of(proxy), ends - time.monotonic())
        except UnknownAddressError as error:
            raise ProxyError("its name cannot be resolved", error) from error
        parts = urlsplit(url)
        options = {"ssl_context": self._context(url)} if parts.scheme == "https" else {}
        pool = manager.connection_from_host(parts.hostname, parts.port, parts.scheme, options)
        return _Route((_watched(pool),), _renewal(), {}, is_forwarded=parts.scheme == "http")

    def _proxy_manager(self, url: str, proxy: str) -> ProxyManager:
        parts = urlsplit(proxy)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise RefusedError("the proxy is not an http(s) URL; check PYPI_ASSETS_PROXY and HTTPS_PROXY", redact(url))
        login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
        return ProxyManager(
            redact(proxy),
            num_pools=_MOST_ORIGINS,
            maxsize=self._kept,
            proxy_headers={"Proxy-Authorization": basic_authorization(login)} if login else {},
            proxy_ssl_context=self._context(url) if parts.scheme == "https" else None,
        )

    def shown_proxy(self, url: str) -> str:
        """Return the proxy for requests to `url`, without its credentials; an empty string if they use no proxy."""
        return redact(self._proxy(url) or "")

    def _proxy(self, url: str) -> str | None:
        return self._network.proxy or select_proxy(url, get_environ_proxies(url))

    def _context(self, url: str) -> ssl.SSLContext:
        try:
            return self._tls
        except OSError as error:  # includes ssl.SSLError
            raise RefusedError(
                f"TLS cannot be set up: {error.strerror or type(error).__name__}; check PYPI_ASSETS_CA_FILE,"
                f" PYPI_ASSETS_CLIENT_CERT and {', '.join(_CA_VARIABLES)}",
                redact(url),
            ) from error

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = create_urllib3_context()
        named = (self._network.ca_file, *(os.environ.get(name) for name in _CA_VARIABLES))
        authorities = next((name for name in named if name), None) or DEFAULT_CA_BUNDLE_PATH
        if Path(authorities).is_dir():
            context.load_verify_locations(capath=authorities)
        else:
            context.load_verify_locations(cafile=authorities)
        if self._network.client_cert:
            context.load_cert_chain(self._network.client_cert, password="")
        return context


class _WatchedConnection(HTTPConnection):
    """A connection with wall-clock deadlines for its tunnel, status line and headers.

    urllib3's own timeouts restart with each received byte.
    """

    answering: socket.socket | None = None
    """The socket of the current answer. It stays set if the connection is closed after the answer."""

    def connect(self) -> None:
        with WATCHDOG.within(_seconds(self.timeout), lambda: self.sock):
            super().connect()

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        self.answering = self.sock
        with WATCHDOG.within(_seconds(self.timeout), lambda: self.answering):
            return super().getresponse()


class _WatchedTlsConnection(_WatchedConnection, HTTPSConnection):
    pass


def _first(pool: HTTPConnectionPool, pools: tuple[HTTPConnectionPool, ...]) -> tuple[HTTPConnectionPool, ...]:
    return (pool, *(other for other in pools if other is not pool))


def _renewal() -> float:
    return time.monotonic() + _LOOKUP_KEPT_S


def _seconds(timeout: object) -> float:
    return float(timeout) if isinstance(timeout, int | float) else _LOOKUP_KEPT_S


def _watched(pool: HTTPConnectionPool) -> HTTPConnectionPool:
    pool.ConnectionCls = _WatchedTlsConnection if pool.scheme == "https" else _WatchedConnection
    return pool


def socket_of(answer: BaseHTTPResponse) -> socket.socket | None:
    """Return the socket that the body is read from, or None if the whole body has arrived."""
    connection = answer.connection
    return connection.answering if isinstance(connection, _WatchedConnection) else None


_TUNNEL_REFUSAL = re.compile(r"Tunnel connection failed: (?P<status>[0-9]{3})")
_PROXY_SETTINGS = "PYPI_ASSETS_PROXY, or HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
_OWN_ADDRESS = "PYPI_ASSETS_INDEX_URL if it is the index's own"
_TIMED_OUT = "timed out"
_EXPIRED, _NOT_YET_VALID, _OTHER_HOST = 10, 9, {62, 64}  # X509_V_ERR_... of OpenSSL


def is_proxy_login_wanted(error: BaseException) -> bool:
    """Check whether the proxy rejected a tunnel because it requires credentials."""
    return _tunnel_refusal(error) == str(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED.value)


def describe_failure(error: BaseException, proxy: str) -> str:
    """Return why no complete answer arrived, and which setting to check.

    `proxy` is the proxy that the request used, without credentials, or an empty string.
    """
    if status := _tunnel_refusal(error):
        return f"the proxy {proxy} answers HTTP {status}"
    if any(isinstance(cause, ProxyError) for cause in _causes(error)):
        return f"the proxy {proxy} cannot be used: {_reason(error)}; check {_PROXY_SETTINGS}"
    for cause in _causes(error):
        if isinstance(cause, UnknownAddressError):
            return f"{cause}; check the network, and {_OWN_ADDRESS}"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the server's certificate {_describe_distrust(cause)}"
        if isinstance(cause, ssl.SSLError):
            return f"TLS fails: {cause.reason or 'no reason is given'}; check whether the server speaks https"
    if any(isinstance(cause, NewConnectionError | ConnectTimeoutError) for cause in _causes(error)):
        return f"no connection: {_reason(error)}; check that the server is up, and {_OWN_ADDRESS}"
    reason = _reason(error)
    return reason if reason == _TIMED_OUT else f"no complete answer: {reason}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and then its causes down to the first one."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        inner = next((part for part in cause.args if isinstance(part, BaseException)), None)
        cause = inner or cause.__cause__ or cause.__context__


def _tunnel_refusal(error: BaseException) -> str | None:
    """Return the HTTP status with which the proxy rejected a tunnel, or None if it did not."""
    refusals = (_TUNNEL_REFUSAL.match(str(cause)) for cause in _causes(error) if isinstance(cause, OSError))
    return next((refusal["status"] for refusal in refusals if refusal), None)


def _reason(error: BaseException) -> str:
    for cause in _causes(error):
        if isinstance(cause, NameResolutionError | UnknownAddressError):
            return "its name cannot be resolved"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate {_describe_distrust(cause)}"
        if isinstance(cause, TimeoutError):
            return _TIMED_OUT
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return type(error).__name__


def _describe_distrust(error: ssl.SSLCertVerificationError) -> str:
    """Return why a certificate is not trusted, based on OpenSSL's error number, and how to fix it."""
    reason = error.verify_message
    if error.verify_code == _EXPIRED:
        return f"has expired ({reason}): the server's operator must renew it, unless this machine's clock is wrong"
    if error.verify_code == _NOT_YET_VALID:
        return f"is not valid yet ({reason}): check this machine's clock"
    if error.verify_code in _OTHER_HOST:
        return f"is for another host ({reason}); check {_OWN_ADDRESS}"
    return f"is not trusted ({reason}); if your own authority signed it, set PYPI_ASSETS_CA_FILE to its certificate"
