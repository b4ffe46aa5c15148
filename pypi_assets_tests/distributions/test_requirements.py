"""Parsing of packaging's texts gives the same result on each Python, and some result for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pypi_assets.distributions.requirement_names import parse_requirement, required_projects
from pypi_assets.distributions.requirements import comparable_version, is_requirement, is_specifier, is_version


def test_name_and_condition(subtests: pytest.Subtests) -> None:
    cases = [
        ("requests", ("requests", 0)),
        (" Zope.Interface_x[a, b] >= 1 , <2", ("zope-interface-x", 0)),
        ("foo (>=1.0)", ("foo", 0)),
        ("foo(>=1.0);python_version<'3'", ("foo", 1)),
        ("foo; sys_platform == 'extra'", ("foo", 1)),
        ('foo>=1; python_version < "3" and extra == "x"', ("foo", 2)),
        ("foo; 'x' == extra", ("foo", 2)),
        ("foo;", ("foo", 0)),
        ("foo @ https://example.org/a;b.zip", ("foo", 0)),
        ("foo@https://example.org/a;b.zip ; extra == 'x'", ("foo", 2)),
        ("foo===any thing", ("foo", 0)),
        ("foo~=1", ("foo", 0)),
        ("a\n", ("a", 0)),
        ("", None),
        ("foo 1.0", None),
        ("foo-", None),
        ("foo[", None),
        ("größe", None),
        (">=1", None),
        ("https://example.org/foo.zip", None),
        ("a" * 10_000 + "-" * 10_000, None),
    ]
    for requirement, expected in cases:
        with subtests.test(requirement=requirement):
            assert parse_requirement(requirement) == expected


names = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True)
extras = st.sampled_from(["", "[x]", " [x,y-z]"])
versions = st.sampled_from(["", ">=1", " == 1.*", "~=1.2,!=1.3", " (>=1)", "===what;ever"])
markers = st.sampled_from(["", "; os_name == 'nt'", ' ;extra=="extra"', "; python_version>'3' or extra == 'x'"])


@pytest.mark.nightly
@given(st.builds("{}{}{}{}".format, names, extras, versions, markers) | st.text(max_size=20))
def test_parsing_agrees_with_packaging(text: str) -> None:
    parsed = parse_requirement(text)
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return
    condition = 0 if requirement.marker is None else 2 if "extra ==" in str(requirement.marker) else 1
    assert parsed == (canonicalize_name(requirement.name), condition)


def test_least_condition_of_a_project_wins() -> None:
    requirements = ["a; extra == 'x'", "A>1; os_name == 'nt'", "b", "b; extra == 'x'", "???", "c; extra == 'x'"]
    assert required_projects(requirements) == {"a": 1, "b": 0, "c": 2}


@pytest.mark.parametrize("text", ["1", "1.0.post1", "1!2.0rc1+local", "1.0-1", " 1.0"])
def test_versions(text):
    assert is_version(text)


@pytest.mark.parametrize("text", ["", "a", "1.0.po\u017ft1", "\u0661.0", "1" * 5000, "1.0\xa0", "1.x"])
def test_invalid_versions(text):
    assert not is_version(text)


def test_equal_versions_compare_equal():
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
def test_invalid_requirements(text):
    assert not is_requirement(text)


def test_specifiers():
    assert is_specifier(">=3.8,!=3.9.*")
    assert is_specifier("===\U0001e030")
    assert not any(map(is_specifier, ("3.8", ">=\u0663")))


@given(st.text("abc10.*=<>~!()[];@ '\"\\\xe9\u200d\n", max_size=40))
def test_any_text_is_parsed_or_rejected(text):
    for decide in (is_version, is_requirement, is_specifier):
        assert decide(text) in {True, False}
