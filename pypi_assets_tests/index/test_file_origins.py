"""The first pages choose a file host only if they agree on it and if it may be trusted."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.index.errors import NoAnswerError, RefusedError
from pypi_assets.index.file_origins import FileOrigin, agreed_file_origin
from pypi_assets.index.urls import host_rule
from pypi_assets_tests.naming import mentions, naming

RULE = host_rule("https://index.example.org/simple/", "https://log.example.org/pypi", [])
LOCAL_RULE = host_rule("http://127.0.0.1:8080/simple/", "http://127.0.0.1:8080/pypi", [])
OWN = "https://index.example.org/packages/a.whl"
FILES = "https://files.example.com/a.whl"
MORE = "https://more.example.com/a.whl"

NOT_TRUSTED = [
    "http://files.example.com/a.whl",
    "https://files.example.com:8443/a.whl",
    "https://files.example.com:22/a.whl",
    "https://10.0.0.1/a.whl",
    "https://1.1.1.1/a.whl",
    "https://[::1]/a.whl",
    "https://2130706433/a.whl",
    "https://0x7f.0x1/a.whl",
    "https://localhost/a.whl",
    "https://intranet/a.whl",
    "https://files.internal/a.whl",
    "https://files.corp/a.whl",
    "https://printer.local/a.whl",
    "https://files.example.com./a.whl",
    "https://-files.example.com/a.whl",
]
UNUSABLE = [
    "https://f\u00efles.example.com/a.whl",
    "https://files.example.com\\@evil.example.com/a.whl",
    "ftp://files.example.com/a.whl",
    "file:///etc/passwd",
    "",
]


def agreed(*urls: str, forbidden: str = "", unknown: str = "") -> FileOrigin | None:
    def check(origin: str) -> None:
        if origin == unknown:
            raise NoAnswerError("its name cannot be resolved", origin)
        if origin == forbidden:
            raise RefusedError("it is at 10.0.0.1, which is not a public address", origin)

    return agreed_file_origin(urls, RULE, is_index_here=False, check=check)


def test_host_that_all_pages_name_is_chosen() -> None:
    assert agreed(FILES, "https://FILES.example.com:443/b.whl") == FileOrigin("https://files.example.com")
    assert agreed("https://xn--fles-1ra.example.com/a.whl") == FileOrigin("https://xn--fles-1ra.example.com")


def test_index_host_needs_no_choice() -> None:
    assert agreed() is None
    assert agreed(OWN) == agreed(OWN, "https://log.example.org/b.whl") == FileOrigin("")


def test_single_host_besides_the_index_is_chosen() -> None:
    assert agreed(OWN, FILES) == FileOrigin("https://files.example.com")


def test_several_hosts_are_rejected_and_named_with_the_setting() -> None:
    with pytest.raises(RefusedError) as caught:
        agreed(FILES, MORE)
    setting = """PYPI_ASSETS_ALLOWED_FILE_HOSTS='["files.example.com", "more.example.com"]'"""
    assert mentions(caught.value.message, "2 hosts", setting)


def test_many_hosts_are_not_all_named() -> None:
    with pytest.raises(RefusedError) as caught:
        agreed(*(f"https://f{number}.example.com/a" for number in range(9)))
    before_setting = str(caught.value).partition("PYPI_ASSETS_ALLOWED_FILE_HOSTS")[0]
    assert mentions(before_setting, "9 hosts", *(f"f{number}.example.com" for number in range(5)))
    assert not mentions(before_setting, "f5.example.com")


def test_several_hosts_besides_the_index_are_ignored() -> None:
    """As without any choice, files at the index itself are read, and the others fail one by one."""
    assert agreed(FILES, OWN, MORE) == FileOrigin("", ("files.example.com", "more.example.com"))
    assert agreed(OWN, "http://files.example.com/a") == FileOrigin("", ("files.example.com",))
    assert agreed(OWN, FILES, forbidden="https://files.example.com") == FileOrigin("", ("files.example.com",))


def test_untrusted_hosts_are_not_chosen(subtests: pytest.Subtests) -> None:
    for url in NOT_TRUSTED:
        with subtests.test(url=url):
            host = url.removesuffix("/a.whl")
            with pytest.raises(RefusedError, match=naming(host, "PYPI_ASSETS_ALLOWED_FILE_HOSTS")):
                agreed(url)


@pytest.mark.parametrize("url", UNUSABLE)
def test_unusable_urls_are_ignored(url: str) -> None:
    assert agreed(url) is None
    assert agreed(url, FILES) == FileOrigin("https://files.example.com")
    assert agreed(url, OWN) == FileOrigin("")


def test_user_in_a_url_is_not_shown() -> None:
    with pytest.raises(RefusedError) as caught:
        agreed("http://me:secret@files.example.com/a.whl")
    assert "secret" not in str(caught.value)
    assert agreed("https://me:secret@files.example.com/a.whl") == FileOrigin("https://files.example.com")


def test_host_at_a_private_address_is_not_chosen() -> None:
    with pytest.raises(RefusedError, match=naming("10.0.0.1")):
        agreed(FILES, forbidden="https://files.example.com")


def test_host_without_an_address_is_chosen_later() -> None:
    assert agreed(OWN, FILES, unknown="https://files.example.com") is None
    with pytest.raises(NoAnswerError):
        agreed(FILES, unknown="https://files.example.com")


def test_local_index_may_have_local_files() -> None:
    checked: list[str] = []
    for url in ("http://localhost:9000/a.whl", "https://localhost:9000/a.whl", FILES):
        origin = agreed_file_origin([url], LOCAL_RULE, is_index_here=True, check=checked.append)
        assert origin == FileOrigin(url.removesuffix("/a.whl"))
    assert len(checked) == 3
    with pytest.raises(RefusedError, match=naming("localhost")):
        agreed_file_origin(["http://localhost/a"], RULE, is_index_here=True, check=checked.append)


urls = st.sampled_from([OWN, FILES, MORE, *NOT_TRUSTED, *UNUSABLE])


@given(st.lists(urls, max_size=6), st.randoms())
def test_order_of_pages_does_not_matter(named: list[str], random: Random) -> None:
    shuffled = list(named)
    random.shuffle(shuffled)
    assert outcome(named) == outcome(shuffled)


@given(st.lists(urls, max_size=6))
def test_only_an_agreed_host_is_chosen(named: list[str]) -> None:
    others = {url for url in named if url not in (OWN, *UNUSABLE)}
    origin = outcome(named)
    if origin == "refused":
        assert OWN not in named
        assert others not in (set(), {FILES}, {MORE})
    elif origin is None:
        assert OWN not in named
        assert others == set()
    elif isinstance(origin, FileOrigin) and origin.origin:
        assert others in ({FILES}, {MORE})
    else:
        assert OWN in named


def outcome(named: list[str]) -> FileOrigin | str | None:
    try:
        return agreed(*named)
    except RefusedError:
        return "refused"
