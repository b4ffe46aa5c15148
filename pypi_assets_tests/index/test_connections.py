"""Connections: TLS with a private authority, client certificates, and proxies. Errors reveal no secrets."""

import io
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from pypi_assets.index.addresses import AddressRule, ForbiddenAddressError, UnknownAddressError
from pypi_assets.index.connections import Connections, Network
from pypi_assets.index.errors import NoAnswerError, PackageIndexError, RefusedError, TransientError
from pypi_assets.index.models import ProjectPage
from pypi_assets_tests.index.clients import PAGE, unhurried_client
from pypi_assets_tests.index.loopback import Answer, Loopback, answering, serving
from pypi_assets_tests.index.proxy import Proxy, proxying
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.naming import mentions

HOSTS = {"index.example.org": "127.0.0.1"}
INDEX = "https://index.example.org/simple/"
NAME_HASH = "45a152cf"  # OpenSSL's hash of the authority's name
CA_VARIABLES = ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"]
PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"]


@dataclass(frozen=True)
class Authority:
    """A private certificate authority in `ca_file`. It signed the server's certificate and `client_cert`."""

    ca: trustme.CA
    ca_file: str
    client_cert: str

    def server_context(self, *, demands_client_certificate: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        if demands_client_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            self.ca.configure_trust(context)
        return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("authority")
    ca = trustme.CA(organization_name="An authority of one's own", organization_unit_name="Tests")
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    ca.issue_cert("me@example.org").private_key_and_cert_chain_pem.write_to_path(str(folder / "client.pem"))
    return Authority(ca, str(folder / "ca.pem"), str(folder / "client.pem"))


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CA_VARIABLES + PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def tls_server(authority: Authority) -> Iterator[Loopback]:
    with serving(lambda _: PAGE, authority.server_context()) as loopback:
        yield loopback


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with proxying() as running:
        yield running


def fetch_page(root_url: str, network: Network | None = None) -> None:
    with unhurried_client(root_url, network=network or Network()) as client:
        assert isinstance(client.project_page("demo"), ProjectPage)


def failure(root_url: str, network: Network | None = None) -> PackageIndexError:
    with pytest.raises(PackageIndexError) as caught:
        fetch_page(root_url, network)
    assert "hush" not in str(caught.value) + repr(caught.value)
    return caught.value


def test_private_authority_can_be_set_in_the_settings(authority: Authority, tls_server: Loopback) -> None:
    fetch_page(tls_server.url, Network(ca_file=authority.ca_file))


@pytest.mark.parametrize("variable", CA_VARIABLES)
def test_private_authority_can_be_set_in_the_environment(
    authority: Authority, tls_server: Loopback, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, authority.ca_file)
    fetch_page(tls_server.url)


def test_private_authority_can_be_in_a_folder(authority: Authority, tls_server: Loopback, tmp_path: Path) -> None:
    assert isinstance(failure(tls_server.url, Network(ca_file=str(tmp_path))), TransientError)
    (tmp_path / f"{NAME_HASH}.0").write_bytes(Path(authority.ca_file).read_bytes())
    fetch_page(tls_server.url, Network(ca_file=str(tmp_path)))


def test_untrusted_server_gets_no_request(tls_server: Loopback) -> None:
    error = failure(tls_server.url)
    assert isinstance(error, TransientError)
    assert "PYPI_ASSETS_CA_FILE" in str(error)
    assert tls_server.received == []


@pytest.mark.parametrize("field", ["ca_file", "client_cert"])
def test_invalid_certificate_files_are_rejected(tls_server: Loopback, tmp_path: Path, field: str) -> None:
    no_pem = tmp_path / "no.pem"
    no_pem.write_text("hello")
    for path in (no_pem, tmp_path / "missing.pem"):
        error = failure(tls_server.url, Network(**{field: str(path)}))
        assert isinstance(error, RefusedError)
        assert "PYPI_ASSETS_CA_FILE" in str(error)


def test_client_certificate_is_sent_on_request(authority: Authority) -> None:
    with serving(lambda _: PAGE, authority.server_context(demands_client_certificate=True)) as loopback:
        fetch_page(loopback.url, Network(ca_file=authority.ca_file, client_cert=authority.client_cert))
        assert isinstance(failure(loopback.url, Network(ca_file=authority.ca_file)), TransientError)
        assert len(loopback.received) == 1


def test_configured_proxy_is_used_for_every_host(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with answering(PAGE) as loopback:
        fetch_page(loopback.url, Network(proxy=proxy.url_with_credentials))
        assert proxy.received == [f"GET {loopback.url}/simple/demo/"]
        assert "proxy-authorization" not in loopback.received[0].headers


def test_tls_uses_a_proxy_tunnel(proxy: Proxy, authority: Authority, tls_server: Loopback) -> None:
    fetch_page(tls_server.url, Network(proxy=proxy.url_with_credentials, ca_file=authority.ca_file))
    assert proxy.received == [f"CONNECT 127.0.0.1:{tls_server.port}"]
    assert "proxy-authorization" not in tls_server.received[0].headers


def test_environment_sets_proxies_and_exceptions(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url_with_credentials)
    monkeypatch.setenv("http_proxy", proxy.url_with_credentials)
    with answering(PAGE) as loopback:
        fetch_page(loopback.url)
        assert len(proxy.received) == 1
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        fetch_page(loopback.url)
        assert (len(proxy.received), len(loopback.received)) == (1, 2)


def test_index_credentials_are_not_sent_to_the_proxy(proxy: Proxy, authority: Authority, tls_server: Loopback) -> None:
    network = Network(proxy=proxy.url_with_credentials, ca_file=authority.ca_file)
    url = tls_server.url.replace("://", "://you:hush%21@")
    fetch_page(url, network)
    assert tls_server.received[0].headers["authorization"] == "Basic eW91Omh1c2gh"
    assert "authorization" not in proxy.headers[0]
    assert "you" not in proxy.received[0]


def test_proxy_that_rejects_credentials_is_reported(proxy: Proxy, authority: Authority, tls_server: Loopback) -> None:
    url = proxy.url.replace("://", "://me:hush@")
    with answering(PAGE) as loopback:
        for root in (loopback.url, tls_server.url):
            error = failure(root, Network(proxy=url, ca_file=authority.ca_file))
            assert isinstance(error, RefusedError)
            assert mentions(str(error), "proxy")


def test_error_of_an_unreachable_proxy_hides_its_password() -> None:
    with proxying() as proxy:
        pass
    for root in ("http://index.invalid", "https://index.invalid"):
        error = failure(root, Network(proxy=proxy.url_with_credentials))
        assert isinstance(error, NoAnswerError)
        assert "refused" in str(error)
        assert unnamed(str(error), "PYPI_ASSETS_PROXY", proxy.url) == []
        assert "PYPI_ASSETS_INDEX_URL" not in str(error)


def test_invalid_certificate_error_names_the_remedy(authority: Authority) -> None:
    now = datetime.now(UTC)
    wrong = [
        (authority.ca.issue_cert("127.0.0.1", not_after=now - timedelta(days=1)), ("clock",)),
        (authority.ca.issue_cert("127.0.0.1", not_before=now + timedelta(days=1)), ("clock",)),
        (authority.ca.issue_cert("other.example.org"), ("PYPI_ASSETS_INDEX_URL",)),
    ]
    for certificate, shown in wrong:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        with serving(lambda _: PAGE, context) as loopback:
            error = failure(loopback.url, Network(ca_file=authority.ca_file))
            assert loopback.received == []
        assert isinstance(error, NoAnswerError)
        assert unnamed(str(error), *shown) == []
        assert "PYPI_ASSETS_CA_FILE" not in str(error)


def test_certificate_is_checked_against_the_name_not_the_address(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *args, **options: real(HOSTS.get(host, host), *args, **options)
    )
    for certified, is_good in (("index.example.org", True), ("127.0.0.1", False)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.ca.issue_cert(certified).configure_cert(context)
        named: list[str | None] = []
        context.sni_callback = lambda _socket, name, _context, named=named: named.append(name)
        with serving(lambda _: PAGE, context) as loopback:
            root = f"https://index.example.org:{loopback.port}"
            if is_good:
                fetch_page(root, Network(ca_file=authority.ca_file))
            else:
                assert isinstance(failure(root, Network(ca_file=authority.ca_file)), NoAnswerError)
            hosts = [request.headers["host"] for request in loopback.received]
        assert hosts == [root.removeprefix("https://")] * is_good
        assert named == ["index.example.org"]


def test_error_of_a_server_without_tls_names_the_address() -> None:
    with answering(PAGE) as loopback:
        error = failure(loopback.url.replace("http:", "https:"))
        assert isinstance(error, NoAnswerError)
        assert "https" in str(error)
    for root in (loopback.url, "http://index.invalid"):
        error = failure(root)
        assert isinstance(error, NoAnswerError)
        assert unnamed(str(error), "PYPI_ASSETS_INDEX_URL", f"{root}/simple/demo/") == []


def test_proxy_without_http_is_rejected() -> None:
    error = failure("http://index.invalid", Network(proxy="socks5://me:hush@127.0.0.1:1080"))
    assert isinstance(error, RefusedError)
    assert mentions(str(error), "proxy")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "169.254.169.254"])
def test_private_address_bypasses_the_proxy(proxy: Proxy, host: str) -> None:
    network = Network(proxy=proxy.url_with_credentials)
    with (
        answering(Answer(200, b"secret")) as loopback,
        unhurried_client("http://index.invalid", allowed_file_hosts=[host], network=network) as client,
    ):
        with pytest.raises(RefusedError, match=r"\b(127\.0\.0\.1|169\.254\.169\.254)\b"):
            client.fetch_file(f"http://{host}:{loopback.port}/f", io.BytesIO(), sha256=None, size=None, max_bytes=100)
        assert (proxy.received, loopback.connections) == ([], 0)


def test_chosen_host_behind_a_proxy_is_checked_by_name() -> None:
    """Only the proxy knows the address of a name, so the proxy's own rules decide."""
    connections = Connections(AddressRule(INDEX, INDEX), Network(proxy="http://127.0.0.1:9"), kept=1)
    connections.check_choice("https://no-such-name.invalid/a.whl")
    with pytest.raises(ForbiddenAddressError):
        connections.check_choice("https://10.0.0.1/a.whl")
    with pytest.raises(UnknownAddressError):
        Connections(AddressRule(INDEX, INDEX), Network(), kept=1).check_choice("https://no-such-name.invalid/a.whl")
