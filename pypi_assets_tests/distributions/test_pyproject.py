"""pyproject.toml files with values of any type."""

import pytest

from pypi_assets.distributions.pyproject import (
    MAX_KEY_PARTS,
    MAX_TOML_CHARACTERS,
    items,
    parse_toml,
    strings,
    table,
    text_items,
)
from pypi_assets_tests.naming import naming


def test_missing_tables_are_empty():
    parsed = parse_toml('[tool.demo]\nname = "x"\n[project]\nname = 1\n')
    assert table(parsed, "tool", "demo") == {"name": "x"}
    assert table(parsed, "tool", "other") == {}
    assert table(parsed, "project", "name") == {}
    assert table(parsed, "project", "name", "deeper") == {}


@pytest.mark.parametrize(
    ("value", "expected"), [("a", ["a"]), (["a", 1, "b"], ["a", "b"]), (None, []), ({"a": "b"}, []), (3, [])]
)
def test_strings_from_any_value(value, expected):
    assert strings(value) == expected


@pytest.mark.parametrize("text", ["[project", "a = 1\na = 2", "#" * (MAX_TOML_CHARACTERS + 1), "a = \x00"])
def test_invalid_or_too_long_toml_is_rejected(text):
    with pytest.raises(ValueError, match=r"."):
        parse_toml(text)


def test_too_deep_nesting_is_rejected():
    with pytest.raises((RecursionError, ValueError)):
        parse_toml("a = " + "[" * 100_000)


@pytest.mark.parametrize("part", ["a", '"a b"', "'=a'", '"\\"."', "a-1 "])
def test_keys_with_many_parts_are_rejected_before_parsing(part):
    allowed, refused = (".".join([part] * count) for count in (MAX_KEY_PARTS, MAX_KEY_PARTS + 1))
    assert len(parse_toml(f"{allowed} = 1\nb = {{{allowed} = 1}}\n[b1.{part}]\n")) >= 2
    for text in (f"{refused} = 1", f"[{refused}]", f"[[{refused}]]", f"b = {{c = 1, {refused} = 1}}"):
        with pytest.raises(ValueError, match=naming(32)):
            parse_toml(text)


def test_items_exist_only_for_tables():
    assert items({"a": 1, "b": "x"}) == [("a", 1), ("b", "x")]
    assert text_items({"a": 1, "b": "x"}) == [("b", "x")]
    assert items(["a"]) == text_items(None) == []
