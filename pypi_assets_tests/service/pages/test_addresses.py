import pytest

from pypi_assets.service.pages.addresses import data_address, is_local_page, page_address


def test_a_page_ends_with_a_slash_and_its_data_with_json():
    assert page_address("", "import", "flask.json") == "/import/flask.json/"
    assert data_address("", "import", "flask.json") == "/import/flask.json.json"
    assert data_address("/at/7.9", "import", "flask") == "/at/7.9/import/flask.json"
    assert (page_address(""), data_address("")) == ("/", "/index.json")


def test_names_are_percent_encoded():
    assert page_address("", "release", "a", "1.0+é <x>") == "/release/a/1.0%2B%C3%A9%20%3Cx%3E/"
    assert page_address("", "search", q="a&b=c", page=None) == "/search/?q=a%26b%3Dc"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "é" * 1_000])
def test_what_cannot_be_part_of_a_path_has_no_address(name: str):
    assert page_address("", "command", name) is None
    assert data_address("", "command", name) is None


LOCAL = [
    ("/import/yaml/", True),
    ("/search/?q=a%20b", True),
    ("", False),
    ("import/yaml/", False),
    ("//elsewhere.invalid/", False),
    ("https://elsewhere.invalid/", False),
    ("/\\elsewhere.invalid", False),
    ("/a\r\nSet-Cookie: b", False),
    ("/a b", False),
    ("/" + "x" * 5_000, False),
    ("/é", False),
]


def test_only_paths_of_this_service_are_local(subtests: pytest.Subtests):
    for path, expected in LOCAL:
        with subtests.test(path=path, expected=expected):
            assert is_local_page(path) is expected
