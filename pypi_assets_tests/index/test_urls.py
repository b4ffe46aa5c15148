import pytest

from pypi_assets.index.errors import RefusedError
from pypi_assets.index.urls import host_rule, origin, redact, split_credentials

RULE = host_rule("https://index.example.org/simple/", "https://log.example.org/pypi", ["Files.example.org", "x.org:81"])


@pytest.mark.parametrize(
    "url",
    [
        "https://index.example.org/simple/demo/",
        "https://INDEX.example.org:8443/a",
        "https://log.example.org",
        "https://files.example.org/a%20b.whl?x=1#y",
        "https://someone:secret@files.example.org/a",
        "https://x.org:81/a",
        "https://files.example.org/\u00fcber.zip",
    ],
)
def test_own_and_allowed_hosts_are_accepted(url: str) -> None:
    RULE.check(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.org/a",
        "https://x.org/a",
        "https://x.org:82/a",
        "https://files.example.org.evil.org/a",
        "https://files.example.org@evil.org/a",
        "https://evil.org\\@files.example.org/a",
        "https://evil.org/\\@files.example.org/a",
        "https://files.example.org\n.evil.org/a",
        "https://files.example.org /a",
        "https://[::1/a",
        "https://files.example.org:port/a",
        "http://files.example.org/a",
        "file:///etc/passwd",
        "ftp://files.example.org/a",
        "//files.example.org/a",
        "",
    ],
)
def test_everything_else_is_refused(url: str) -> None:
    with pytest.raises(RefusedError):
        RULE.check(url)


def test_http_is_allowed_where_the_index_is_http() -> None:
    rule = host_rule("http://[::1]:8080/simple/", "http://[::1]:8080/pypi", [])
    rule.check("http://[::1]:8081/a")
    rule.check("https://[::1]/a")


def test_secrets_are_cut_out() -> None:
    assert redact("https://me:p%40ss@index.example.org/a@b") == "https://index.example.org/a@b"
    assert redact("//me@index.example.org") == "//index.example.org"
    assert redact("https://index.example.org/a@b") == "https://index.example.org/a@b"
    assert split_credentials("https://me:p%40ss@index.example.org/a") == (
        "https://index.example.org/a",
        ("me", "p@ss"),
    )
    assert split_credentials("https://index.example.org/a") == ("https://index.example.org/a", None)


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin("https://Index.example.org:443/a") == origin("https://index.example.org")
    assert origin("http://index.example.org") != origin("https://index.example.org")
    assert origin("https://index.example.org:444") != origin("https://index.example.org")
