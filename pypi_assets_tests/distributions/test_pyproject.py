"""pyproject.toml, whose values can be of any kind."""

import pytest

from pypi_assets.distributions.pyproject import MAX_TOML_CHARACTERS, items, parse_toml, strings, table, text_items


def test_tables_are_empty_where_there_is_none():
    parsed = parse_toml('[tool.demo]\nname = "x"\n[project]\nname = 1\n')
    assert table(parsed, "tool", "demo") == {"name": "x"}
    assert table(parsed, "tool", "other") == {}
    assert table(parsed, "project", "name") == {}
    assert table(parsed, "project", "name", "deeper") == {}


@pytest.mark.parametrize(
    ("value", "expected"), [("a", ["a"]), (["a", 1, "b"], ["a", "b"]), (None, []), ({"a": "b"}, []), (3, [])]
)
def test_strings_of_any_value(value, expected):
    assert strings(value) == expected


@pytest.mark.parametrize("text", ["[project", "a = 1\na = 2", "#" * (MAX_TOML_CHARACTERS + 1), "a = \x00"])
def test_what_is_no_toml_or_too_long_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse_toml(text)


def test_what_is_nested_too_deeply_is_refused():
    with pytest.raises((RecursionError, ValueError)):
        parse_toml("a = " + "[" * 100_000)


def test_items_are_those_of_tables_alone():
    assert items({"a": 1, "b": "x"}) == [("a", 1), ("b", "x")]
    assert text_items({"a": 1, "b": "x"}) == [("b", "x")]
    assert items(["a"]) == text_items(None) == []
