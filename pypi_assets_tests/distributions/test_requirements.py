"""What packaging decides of texts is the same on each Python, and of any text it decides something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.requirements import comparable_version, is_requirement, is_specifier, is_version


@pytest.mark.parametrize("text", ["1", "1.0.post1", "1!2.0rc1+local", "1.0-1", " 1.0"])
def test_versions(text):
    assert is_version(text)


@pytest.mark.parametrize("text", ["", "a", "1.0.po\u017ft1", "\u0661.0", "1" * 5000, "1.0\xa0", "1.x"])
def test_what_is_no_version(text):
    assert not is_version(text)


def test_versions_that_are_equal_compare_equal():
    assert comparable_version("1.0.0") == comparable_version("1") == "1"
    for text in ("\u0661.0", "1" * 5000, "no version"):
        assert comparable_version(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "demo",
        "demo[a, b]>=1,<2 ; python_version < '3'",
        "demo @ https://example.org/\U00031350\\d",
        "demo ; sys_platform == '\\N{NO SUCH NAME}'",
        "demo ; sys_platform == '\\x'",
        "demo ; sys_platform == '\U0001e030'",
        "demo===\U0001e030",
        f"demo ; {'(' * 50}os_name == 'x'{')' * 50}",
    ],
)
def test_requirements(text):
    assert is_requirement(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "foo bar",
        "demo\U0001e030",
        "\u200ddemo",
        "demo\\",
        f"demo ; {'(' * 51}os_name == 'x'{')' * 51}",
    ],
)
def test_what_is_no_requirement(text):
    assert not is_requirement(text)


def test_specifiers():
    assert is_specifier(">=3.8,!=3.9.*")
    assert is_specifier("===\U0001e030")
    assert not any(map(is_specifier, ("3.8", ">=\u0663")))


@given(st.text("abc10.*=<>~!()[];@ '\"\\\xe9\u200d\n", max_size=40))
def test_any_text_is_decided(text):
    for decide in (is_version, is_requirement, is_specifier):
        assert decide(text) in {True, False}
