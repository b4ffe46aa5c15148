"""Connects to an index and its file hosts: direct or through a proxy, with TLS, to checked addresses only.

It also describes why no answer came from a server, and names the setting to check. These texts are our own, since those
of the libraries can hold a proxy's password.
"""

import math
import os
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_environ_proxies, select_proxy
from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    LocationParseError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
)
from urllib3.util import create_urllib3_context

from pypi_assets.index.addresses import AddressRule
from pypi_assets.index.credentials import basic_authorization
from pypi_assets.index.deadlines import TimedSocket, TimedTlsSocket, resolve, seconds_left, within
from pypi_assets.index.errors import RefusedError
from pypi_assets.index.urls import origin, redact

_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_MOST_ORIGINS = 64


@dataclass(frozen=True, slots=True)
class Network:
    """What pip calls --proxy, --cert and --client-cert. Where one is None, the environment decides.

    `proxy` is an http(s) URL, with or without credentials, and is used for every host. `ca_file` is a file of
    certificates, or a folder of them as OpenSSL's rehash makes it. `client_cert` is one file with the key and its
    certificate, in PEM.
    """

    proxy: str | None = None
    ca_file: str | None = None
    client_cert: str | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """The connections to one origin. Where a proxy forwards (`is_forwarded`), requests carry the whole URL."""

    pool: HTTPConnectionPool
    is_forwarded: bool

    def target(self, url: str) -> str:
        """The target on the request line."""
        if self.is_forwarded:
            return url
        parts = urlsplit(url)
        return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"


class Connections:
    """Keeps up to `kept` connections to each origin, for all threads of a process."""

    def __init__(self, addresses: AddressRule, network: Network, *, kept: int) -> None:
        self._addresses = addresses
        self._network = network
        self._kept = kept
        self._routes: dict[str, Route] = {}

    def route(self, url: str) -> Route:
        """The route to `url`. Raises RefusedError for an unusable proxy or TLS setup, else ForbiddenAddressError."""
        key = origin(url)
        route = self._routes.get(key)
        if route is None:
            if len(self._routes) >= _MOST_ORIGINS:
                self._routes = {}
            route = self._routes.setdefault(key, self._find(url, key))
        return route

    def check_choice(self, url: str) -> None:
        """Checks the addresses of a URL whose host pages chose, as far as they are known: see `AddressRule`."""
        host = _host(url)
        if self._proxy(url):
            self._addresses.check_proxied(host)
        else:
            self._addresses.check_choice(host)

    def choose(self, url: str) -> None:
        """From now on the host of `url` counts as one that pages chose."""
        self._addresses.chosen_by_pages = _host(url) or None

    def close(self) -> None:
        """Closes all connections; call it when no thread uses them any more."""
        for route in self._routes.values():
            route.pool.close()
        self._routes = {}

    def _find(self, url: str, key: str) -> Route:
        proxy = self._proxy(url)
        is_tls = key.startswith("https:")
        context = self._context(url) if is_tls or (proxy or "").startswith("https:") else None
        if not proxy:
            manager = PoolManager(maxsize=self._kept, ssl_context=context)
            manager.pool_classes_by_scheme = _pools(self._addresses)
            return Route(manager.connection_from_url(key), is_forwarded=False)
        self._addresses.check_proxied(_host(url))
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        parts = urlsplit(proxy)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise RefusedError("the proxy is no http(s) URL; see PYPI_ASSETS_PROXY and HTTPS_PROXY", redact(url))
        login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
        manager = ProxyManager(
            redact(proxy),
            proxy_headers={"Proxy-Authorization": basic_authorization(login)} if login else {},
            proxy_ssl_context=context,
            maxsize=self._kept,
            ssl_context=context,
        )
        manager.pool_classes_by_scheme = _pools(None)
        return Route(manager.connection_from_url(key), is_forwarded=not is_tls)

    def shown_proxy(self, url: str) -> str:
        """Return the proxy that requests to `url` take, without its credentials; empty if they take none."""
        return redact(self._proxy(url) or "")

    def _proxy(self, url: str) -> str | None:
        return self._network.proxy or select_proxy(url, get_environ_proxies(url))

    def _context(self, url: str) -> ssl.SSLContext:
        try:
            return self._tls
        except OSError as error:  # ssl's own errors are such, too
            raise RefusedError(
                f"TLS cannot be set up: {error.strerror or type(error).__name__}; see PYPI_ASSETS_CA_FILE,"
                f" PYPI_ASSETS_CLIENT_CERT and {', '.join(_CA_VARIABLES)}",
                redact(url),
            ) from error

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = create_urllib3_context()
        context.sslsocket_class = TimedTlsSocket
        named = (self._network.ca_file, *(os.environ.get(name) for name in _CA_VARIABLES))
        authorities = next((name for name in named if name), None) or DEFAULT_CA_BUNDLE_PATH
        if Path(authorities).is_dir():
            context.load_verify_locations(capath=authorities)
        else:
            context.load_verify_locations(cafile=authorities)
        if self._network.client_cert:
            context.load_cert_chain(self._network.client_cert, password="")
        return context


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").rstrip(".")


def _pools(checked: AddressRule | None) -> dict[str, type[HTTPConnectionPool]]:
    """Pools whose connections keep to deadlines, and have `checked` see the address before anything is sent."""

    class TimedConnection(HTTPConnection):
        def connect(self) -> None:
            """The name, the addresses, the proxy's tunnel and TLS take the timeout together."""
            with within(_timeout_s(self)):
                super().connect()

        def getresponse(self) -> HTTPResponse:  # type: ignore[override]
            """The status and all headers take the timeout together, with all interim answers before them."""
            with within(_timeout_s(self)):
                return super().getresponse()

        def _new_conn(self) -> socket.socket:
            if checked is not None:
                checked.check_before(self.host)
            connected = _connected(self)
            try:
                if checked is not None:
                    checked.check(self.host, connected.getpeername()[0])
            except BaseException:
                connected.close()
                raise
            return connected

    class TimedTlsConnection(TimedConnection, HTTPSConnection):
        pass

    class TimedPool(HTTPConnectionPool):
        ConnectionCls = TimedConnection

    class TimedTlsPool(HTTPSConnectionPool):
        ConnectionCls = TimedTlsConnection

    return {"http": TimedPool, "https": TimedTlsPool}


def _timeout_s(connection: HTTPConnection) -> float:
    return connection.timeout if isinstance(connection.timeout, int | float) else math.inf


def _connected(connection: HTTPConnection) -> socket.socket:
    """A socket to the first address that answers; each gets its share of the time that is left."""
    host = connection._dns_host.strip("[]")  # with the dot at its end, if it has one
    try:
        found = resolve(host, connection.port)
    except TimeoutError as error:
        raise ConnectTimeoutError(connection, f"the name of {connection.host} was not resolved in time") from error
    except socket.gaierror as error:
        raise NameResolutionError(connection.host, connection, error) from error
    except UnicodeError as error:
        raise LocationParseError(f"{host!r}, label empty or too long") from error
    failure: OSError | None = None
    for number, (family, address) in enumerate(found):
        try:
            return _connected_to(connection, family, address, share=len(found) - number)
        except OSError as error:
            failure = error
    if failure is None or isinstance(failure, TimeoutError):
        raise ConnectTimeoutError(connection, f"connecting to {connection.host} timed out") from failure
    raise NewConnectionError(connection, f"no connection: {failure}") from failure


def _connected_to(
    connection: HTTPConnection, family: socket.AddressFamily, address: tuple[str, int], *, share: int
) -> socket.socket:
    connected = TimedSocket(family, socket.SOCK_STREAM)
    try:
        for option in connection.socket_options or ():
            connected.setsockopt(*option)
        with within(seconds_left() / share):
            connected.connect(address)
    except BaseException:
        connected.close()
        raise
    return connected


_TUNNEL_REFUSAL = re.compile(r"Tunnel connection failed: (?P<status>[0-9]{3})")
_PROXY_SETTINGS = "PYPI_ASSETS_PROXY, or HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
_OWN_ADDRESS = "PYPI_ASSETS_INDEX_URL if it is the index's own"
_TIMED_OUT = "timed out"
_EXPIRED, _NOT_YET_VALID, _OTHER_HOST = 10, 9, {62, 64}  # X509_V_ERR_... of OpenSSL


def is_proxy_login_wanted(error: BaseException) -> bool:
    """Return whether the proxy refused a tunnel for want of credentials."""
    return _tunnel_refusal(error) == str(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED.value)


def describe_failure(error: BaseException, proxy: str) -> str:
    """Return why no whole answer came, and which setting to check.

    `proxy` is the one that the request took, without credentials; empty if it took none.
    """
    if status := _tunnel_refusal(error):
        return f"the proxy {proxy} answers HTTP {status}"
    if any(isinstance(cause, ProxyError) for cause in _causes(error)):
        return f"the proxy {proxy} cannot be used: {_reason(error)}; check {_PROXY_SETTINGS}"
    for cause in _causes(error):
        if isinstance(cause, NameResolutionError):
            return f"the host's name cannot be resolved; check the network, and {_OWN_ADDRESS}"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the server's certificate {_describe_distrust(cause)}"
        if isinstance(cause, ssl.SSLError):
            return f"TLS fails: {cause.reason or 'no reason is given'}; check whether the address is one of https"
    if any(isinstance(cause, NewConnectionError | ConnectTimeoutError) for cause in _causes(error)):
        return f"no connection: {_reason(error)}; check that the server is up, and {_OWN_ADDRESS}"
    reason = _reason(error)
    return reason if reason == _TIMED_OUT else f"no whole answer: {reason}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and what it was raised for, down to the first cause."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        inner = next((part for part in cause.args if isinstance(part, BaseException)), None)
        cause = inner or cause.__cause__ or cause.__context__


def _tunnel_refusal(error: BaseException) -> str | None:
    """Return the status with which the proxy refused a tunnel, or None if it did not."""
    refusals = (_TUNNEL_REFUSAL.match(str(cause)) for cause in _causes(error) if isinstance(cause, OSError))
    return next((refusal["status"] for refusal in refusals if refusal), None)


def _reason(error: BaseException) -> str:
    for cause in _causes(error):
        if isinstance(cause, NameResolutionError):
            return "its name cannot be resolved"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate {_describe_distrust(cause)}"
        if isinstance(cause, TimeoutError):
            return _TIMED_OUT
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return type(error).__name__


def _describe_distrust(error: ssl.SSLCertVerificationError) -> str:
    """Say what is wrong with a certificate, by OpenSSL's number of the reason, and what helps."""
    reason = error.verify_message
    if error.verify_code == _EXPIRED:
        return f"is out of date ({reason}): only its operator can renew it, unless this machine's clock is wrong"
    if error.verify_code == _NOT_YET_VALID:
        return f"is not valid yet ({reason}): check this machine's clock"
    if error.verify_code in _OTHER_HOST:
        return f"is not one of this host ({reason}); check {_OWN_ADDRESS}"
    return f"is not trusted ({reason}); if an authority of your own signed it, name its file in PYPI_ASSETS_CA_FILE"
