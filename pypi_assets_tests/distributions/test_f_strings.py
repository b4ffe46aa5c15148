"""f-strings are split as Python 3.11 does it, and what it refuses is refused."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.f_strings import Field, NoFStringError, split_f_string
from pypi_assets_tests.examples import examples


def plain(text: str) -> Field:
    return Field((text,), is_plain=True)


def formatted(*texts: str) -> Field:
    return Field(texts, is_plain=False)


def test_parts(subtests: pytest.Subtests):
    cases = [
        ("", []),
        ("a", ["a"]),
        ("a{b}c", ["a", plain("b"), "c"]),
        ("{{a}}{b}", ["{a}", plain("b")]),
        ("{a!s}", [plain("a")]),
        ("{a!r}", [formatted("a")]),
        ("{a=}", [formatted("a")]),
        ("{a = !r:>3}", [formatted("a ")]),
        ("{a:>3}", [formatted("a")]),
        ("{a:{b}.{c}}", [formatted("a", "b", "c")]),
        ("{a['b']}", [plain("a['b']")]),
        ("{'}'}", [plain("'}'")]),
        ("{f(a, {b: c})}", [plain("f(a, {b: c})")]),
        ("{a != b}", [plain("a != b")]),
        ("{a == b <= c}", [plain("a == b <= c")]),
        ("{(lambda x: 1)}", [plain("(lambda x: 1)")]),
        ("{a:=3}", [formatted("a")]),
        ('{"""a"""}', [plain('"""a"""')]),
    ]
    for content, parts in cases:
        with subtests.test(content=content):
            assert split_f_string(content) == parts


def test_what_is_no_f_string(subtests: pytest.Subtests):
    cases = [
        "{",
        "}",
        "a}",
        "{}",
        "{ }",
        "{a",
        "{a!}",
        "{a!x}",
        "{a!r",
        "{a:",
        "{a:{b:{c:{d}}}}",
        "{a\\n}",
        "{a#}",
        "{(a}",
        "{a)}",
        "{'a}",
    ]
    for content in cases:
        with subtests.test(content=content), pytest.raises(NoFStringError):
            split_f_string(content)


@given(st.text("ab{}()[]:!=r's,. ", max_size=12))
@settings(max_examples=examples(1000))
def test_an_f_string_of_this_python_is_split(content):
    try:
        tree = ast.parse(f'f"{content}"', mode="eval").body
    except SyntaxError:
        return
    try:
        found = split_f_string(content)
    except NoFStringError:
        return  # what Python 3.11 refuses and a later one accepts
    if isinstance(tree, ast.JoinedStr):
        fields = [each for each in found if isinstance(each, Field)]
        assert len(fields) == sum(isinstance(value, ast.FormattedValue) for value in tree.values)
