"""Expressions in meson.build files."""

import pytest

from pypi_assets.distributions.backends.meson_python import _TOKEN
from pypi_assets.distributions.backends.meson_values import MesonReader, Value, split


def read(text, **names):
    tokens = [(match.lastgroup, match[match.lastgroup]) for match in _TOKEN.finditer(text) if match.lastgroup]
    return MesonReader(names, lambda steps: None).value(tokens)


def scalar(text):
    return Value((text,), is_scalar=True)


TABLE = read("{'a': {'subdir': 'x', 'off': false}, 'b': ['y', 'z']}")


def test_strings(subtests: pytest.Subtests):
    cases = [
        ("'a'", ("a",)),
        ("'a' + '_' + name", ("a_demo",)),
        ("['a', 'b'] + ['c']", ("a", "b", "c")),
        ("['a'] + 'b'", ("a", "b")),
        ("files('a', ['b'])", ("a", "b")),
        ("('a')", ("a",)),
        ("f'_@name@_@other@'", ("_demo_@other@",)),
        ("'@0@_@1@'.format(name, 'x')", ("demo_x",)),
        ("table['b']", ("y", "z")),
        ("table.get('none', 'd')", ("d",)),
        ("pair[1]", ("q",)),
        ("pair[7]", ("p", "q")),
        ("py.get_install_dir() / 'demo' / name", ("demo", "demo")),
        ("unknown(['a'], 'b')", ("a", "b")),
        ("unknown", ()),
        ("", ()),
        ("[[[[[[[[['a']]]]]]]]]", ("a",)),
        ("[", ()),
    ]
    for text, expected in cases:
        with subtests.test(text=text):
            value = read(text, name=scalar("demo"), table=TABLE, pair=read("['p', 'q']"))
            assert value.texts[: len(expected) or 1] == expected


def test_arguments_have_keys_and_values():
    assert [key for key, _ in TABLE.items] == ["a", "b"]
    assert TABLE.item("a").item("subdir") == scalar("x")
    assert TABLE.item("a").item("off").is_false
    assert TABLE.item("b").item("1") == scalar("z")
    assert TABLE.item("none") is None


def test_module_folder_is_tracked_through_expressions():
    assert read("py.get_install_dir() / 'demo'").is_site
    assert read("where", where=read("py.get_install_dir()")).is_site
    assert not read("get_option('libdir')").is_site


def test_split_ignores_separators_in_brackets():
    tokens = [("mark", mark) for mark in "a,(b,c),"] + [("line", "\n")]
    assert [[text for _, text in part] for part in split(tokens, ",")] == [["a"], list("(b,c)")]
