from dataclasses import replace

import pytest

from pypi_assets.index.errors import RefusedError
from pypi_assets.index.urls import host_rule, origin, redact, split_credentials
from pypi_assets_tests.naming import naming

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


def test_other_hosts_are_rejected(subtests: pytest.Subtests) -> None:
    cases = [
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
    ]
    for url in cases:
        with subtests.test(url=url), pytest.raises(RefusedError):
            RULE.check(url)


def test_http_is_allowed_if_the_index_uses_http() -> None:
    rule = host_rule("http://[::1]:8080/simple/", "http://[::1]:8080/pypi", [])
    rule.check("http://[::1]:8081/a")
    rule.check("https://[::1]/a")


def test_secrets_are_redacted() -> None:
    assert redact("https://me:p%40ss@index.example.org/a@b") == "https://index.example.org/a@b"
    assert redact("//me@index.example.org") == "//index.example.org"
    assert redact("https://index.example.org/a@b") == "https://index.example.org/a@b"
    assert split_credentials("https://me:p%40ss@index.example.org/a") == (
        "https://index.example.org/a",
        ("me", "p@ss"),
    )
    assert split_credentials("https://index.example.org/a") == ("https://index.example.org/a", None)


def test_origin_is_scheme_host_and_port() -> None:
    assert origin("https://Index.example.org:443/a") == origin("https://index.example.org")
    assert origin("http://index.example.org") != origin("https://index.example.org")
    assert origin("https://index.example.org:444") != origin("https://index.example.org")


def test_chosen_origin_matches_exactly() -> None:
    rule = replace(RULE, file_origin="https://chosen.example.com")
    rule.check("https://chosen.example.com/a.whl")
    rule.check("https://Chosen.example.com:443/a.whl")
    rule.check("https://files.example.org/a.whl")
    for url in ("http://chosen.example.com/a", "https://chosen.example.com:8443/a", "https://sub.chosen.example.com/a"):
        with pytest.raises(RefusedError):
            rule.check(url)


def test_rejection_names_the_host_and_the_complete_setting() -> None:
    for chosen, listed in (("https://chosen.example.com", '["chosen.example.com", "x.example.com"]'), ("", '["x.')):
        with pytest.raises(RefusedError, match=naming("PYPI_ASSETS_ALLOWED_FILE_HOSTS", listed)):
            replace(RULE, file_origin=chosen).check("https://x.example.com/a.whl")


def test_allowed_host_may_include_the_default_port() -> None:
    rule = host_rule("https://index.example.org/simple/", "https://index.example.org/pypi", ["x.org:443"])
    rule.check("https://x.org/a")
    rule.check("https://x.org:443/a")
    with pytest.raises(RefusedError):
        rule.check("https://x.org:8443/a")
