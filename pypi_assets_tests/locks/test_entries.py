"""What locks in TOML have in common."""

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.pins import file_of_url, hashes_of, required_name
from pypi_assets_tests.naming import naming


@pytest.mark.parametrize(
    ("url", "filename"),
    [
        ("https://example.org/a/demo-1.0.tar.gz#sha256=00", "demo-1.0.tar.gz"),
        ("files/demo-1.0%2Bcpu.whl", "demo-1.0+cpu.whl"),
        (r"files\demo.whl", "demo.whl"),
        ("https://[x/demo.whl", None),
        ("https://example.org/", None),
        ("", None),
    ],
)
def test_the_name_of_the_file_of_a_url(url: str, filename: str | None) -> None:
    assert file_of_url(url) == filename


def test_hashes_are_in_lower_case_or_refused() -> None:
    assert hashes_of("SHA256:AB", "x") == {"sha256": "ab"}
    assert hashes_of(None, "x") == {}
    for text in ("ab", ":ab", "sha256:"):
        with pytest.raises(LockError, match=naming("x")):
            hashes_of(text, "x")


def test_a_package_without_a_name_is_refused() -> None:
    assert required_name({"name": "a"}, "x") == "a"
    with pytest.raises(LockError, match=naming("x")):
        required_name({"name": ""}, "x")
