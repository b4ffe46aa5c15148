"""No page and no redirect makes a client connect to a private network."""

import errno
import io
import ipaddress
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.index.addresses import AddressRule, ForbiddenAddressError, UnknownAddressError, is_loopback, is_public
from pypi_assets.index.client import IndexClient
from pypi_assets.index.connections import Connections, Network
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.file_origins import FileOrigin
from pypi_assets_tests.index.clients import unhurried_client
from pypi_assets_tests.index.loopback import Answer, answering
from pypi_assets_tests.naming import naming

PUBLIC_INDEX = {"index_url": "http://index.invalid/simple/", "changelog_url": "http://index.invalid/pypi"}
NOT_PUBLIC = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.8.9.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


def fetch(client: IndexClient, url: str) -> None:
    client.fetch_file(url, io.BytesIO(), sha256=None, size=None, max_bytes=100)


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[object]:
    """Resolve every name to the first of `answers`, then the second, and so on; the last one repeats."""
    real, remaining, resolved = socket.getaddrinfo, list(answers), []

    def resolve(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if not str(host).endswith(".example.org"):
            return real(host, port, *args, **options)
        resolved.append(host)
        return real(remaining.pop(0) if len(remaining) > 1 else remaining[0], port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return resolved


def test_private_addresses_are_not_public(subtests: pytest.Subtests) -> None:
    for address in NOT_PUBLIC:
        with subtests.test(address=address):
            assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2a04:4e42::223", "::ffff:1.1.1.1", "2002:101:101::1", "64:ff9b::101:101"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_ipv4_address_embedded_in_ipv6_is_recognized(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    dresses = [0xFFFF << 32 | number, 0x2002 << 112 | number << 80, 0x64FF9B << 96 | number]
    assert {is_public(str(ipaddress.IPv6Address(dress))) for dress in dresses} == {is_public(str(address))}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1"])
def test_public_index_cannot_name_a_private_host(host: str) -> None:
    with (
        answering(Answer(200, b"secret")) as loopback,
        unhurried_client("", allowed_file_hosts=[host], **PUBLIC_INDEX) as client,
    ):
        with pytest.raises(RefusedError, match=naming("127.0.0.1")):
            fetch(client, f"http://{host}:{loopback.port}/f")
        assert loopback.connections == 0


def test_redirect_to_a_private_host_is_rejected() -> None:
    with answering(Answer(200, b"secret")) as inside:
        away = Answer(302, headers={"Location": f"{inside.other_url}/f"})
        hosts = PUBLIC_INDEX | {"allowed_file_hosts": ["localhost"]}
        with answering(away) as door, unhurried_client("", **(hosts | {"changelog_url": f"{door.url}/pypi"})) as client:
            with pytest.raises(RefusedError, match=naming("localhost")):
                fetch(client, f"{door.url}/f")
            assert (len(door.received), inside.connections) == (1, 0)


def connecting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the addresses that are connected to. Only loopback answers."""
    real, connected = socket.socket.connect, []

    def connect(sock: socket.socket, address: Any) -> None:
        connected.append(address[0])
        if not is_loopback(address[0]):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        real(sock, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    return connected


def test_connection_uses_the_checked_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name has a public address at the first check and a private one a moment later."""
    with answering(Answer(200, b"secret")) as loopback:
        for hosts in ({"allowed_file_hosts": ["files.example.org"]}, {}):
            with unhurried_client("", **PUBLIC_INDEX, **hosts) as client, monkeypatch.context() as patch:
                url = f"http://files.example.org:{loopback.port}"
                resolved = resolving(patch, "1.1.1.1", "127.0.0.1")
                if not hosts:
                    agreed = client.agreed_file_origin(["https://files.example.org/a.whl"])
                    assert agreed == FileOrigin("https://files.example.org")
                    client.trust_file_origin(url)
                    resolved = resolving(patch, "1.1.1.1", "127.0.0.1")
                connected = connecting(patch)
                with pytest.raises(TransientError, match=naming("files.example.org")):
                    fetch(client, f"{url}/f")
                assert (len(resolved), connected) == (1, ["1.1.1.1"])
                with pytest.raises(RefusedError, match=naming("files.example.org", "127.0.0.1")):
                    fetch(client, f"{url}/f")
                assert (len(resolved), connected) == (2, ["1.1.1.1"])
        assert loopback.connections == 0


def test_one_private_address_among_public_ones_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if not str(host).endswith(".example.org"):
            return real(host, port, *args, **options)
        return [found for address in ("1.1.1.1", "10.0.0.1") for found in real(address, port, *args, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    connected = connecting(monkeypatch)
    with unhurried_client("", allowed_file_hosts=["files.example.org"], **PUBLIC_INDEX) as client:
        with pytest.raises(RefusedError, match=naming("files.example.org", "10.0.0.1")):
            fetch(client, "http://files.example.org/f")
        assert connected == []


def test_next_address_is_tried_and_the_answering_one_is_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    real, resolved = socket.getaddrinfo, []

    def resolve(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if not str(host).endswith(".example.org"):
            return real(host, port, *args, **options)
        resolved.append(host)
        return [found for address in ("1.1.1.1", "127.0.0.1") for found in real(address, port, *args, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    connected = connecting(monkeypatch)
    with answering(Answer(200, b"file", {"Connection": "close"})) as loopback:
        url = f"http://index.example.org:{loopback.port}"
        with unhurried_client(url) as client:
            for _ in range(2):
                fetch(client, f"{url}/f")
        assert [request.headers["host"] for request in loopback.received] == [url.removeprefix("http://")] * 2
    assert connected == ["1.1.1.1", "127.0.0.1", "127.0.0.1"]
    assert len(resolved) == 1


def test_chosen_host_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator may list a host in the index's private network; pages may not choose it."""
    resolving(monkeypatch, "127.0.0.1")
    connections = Connections(AddressRule("http://10.0.0.1/simple/"), Network(), kept=1)
    with answering(Answer(200, b"file")) as loopback:
        url = f"http://files.example.org:{loopback.port}/f"

        def request() -> None:
            connections.request("GET", url, {}, None, connect_s=60, read_s=60, total_s=60).drain_conn()

        request()
        connections.choose(url)
        with pytest.raises(ForbiddenAddressError):
            request()
        assert len(loopback.received) == 1
    connections.close()


def test_private_index_may_have_private_files() -> None:
    with (
        answering(Answer(200, b"file")) as loopback,
        unhurried_client(loopback.url, allowed_file_hosts=["localhost"]) as client,
    ):
        fetch(client, f"{loopback.other_url}/f")
        fetch(client, f"{loopback.url}/f")
        assert len(loopback.received) == 2


def test_index_with_a_private_address_may_have_private_files(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(Answer(200, b"file")) as loopback:
        resolving(monkeypatch, "127.0.0.1")
        url = f"http://index.example.org:{loopback.port}"
        with unhurried_client(url, allowed_file_hosts=["files.example.org"]) as client:
            fetch(client, f"{url}/f")
            fetch(client, f"http://files.example.org:{loopback.port}/f")
        assert len(loopback.received) == 2


REMOTE = AddressRule("https://index.example.org/simple/", "https://index.example.org/pypi")
LOCAL = AddressRule("http://127.0.0.1:8080/simple/", "http://127.0.0.1:8080/pypi")


def test_host_chosen_by_pages_must_be_public(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    for address in NOT_PUBLIC:
        with subtests.test(address=address):
            resolving(monkeypatch, address)
            with pytest.raises(
                ForbiddenAddressError, match=naming(address.partition("%")[0], "PYPI_ASSETS_ALLOWED_FILE_HOSTS")
            ):
                REMOTE.check_choice("files.example.org")
            if is_loopback(address):
                LOCAL.check_choice("files.example.org")
            else:
                with pytest.raises(ForbiddenAddressError):
                    LOCAL.check_choice("files.example.org")


def test_private_index_may_choose_a_public_host(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "1.1.1.1")
    REMOTE.check_choice("files.example.org")
    LOCAL.check_choice("files.example.org")


def test_choice_without_an_address_is_undecided() -> None:
    with pytest.raises(UnknownAddressError):
        REMOTE.check_choice("no-such-name.invalid")


def test_private_index_cannot_choose_a_private_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """If an operator lists the host, it counts like any other."""
    rule = AddressRule("https://10.0.0.1/simple/", "https://10.0.0.1/pypi")
    rule.check("files.example.org", "169.254.169.254")
    rule.chosen_by_pages = "files.example.org"
    with pytest.raises(ForbiddenAddressError):
        rule.check("files.example.org", "169.254.169.254")
    rule.check("files.example.org", "1.1.1.1")
    rule.check("listed.example.org", "10.0.0.2")


def test_redirect_from_a_chosen_host_to_a_third_host_is_rejected() -> None:
    with answering(Answer(200, b"secret")) as third:
        away = Answer(302, headers={"Location": f"{third.url.replace('127.0.0.1', 'dev.localhost')}/f"})
        with answering(away) as files, unhurried_client("http://127.0.0.1:9") as client:
            client.trust_file_origin(files.other_url)
            with pytest.raises(RefusedError, match=naming("dev.localhost")):
                fetch(client, f"{files.other_url}/f")
            assert (len(files.received), third.connections) == (1, 0)
            with pytest.raises(RefusedError, match=naming("localhost")):
                fetch(client, f"{third.other_url}/f")  # the same name, but another port
            assert third.connections == 0
