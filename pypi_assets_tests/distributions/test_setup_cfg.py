"""setup.cfg reads as configparser reads it."""

import configparser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.setup_cfg import listed, mapped, parse_setup_cfg

TEXT = """
# comment
stray = 1
[metadata]
Name = demo
summary: a = b
[options]
packages = find:
py-modules =
    one
    # not this

    two
  three
install_requires = a;python_version<"3"
zip_safe
[options.packages.find]
where=src
[options]
packages = other
"""


def test_sections_options_and_values_of_several_lines():
    assert parse_setup_cfg(TEXT) == {
        "metadata": {"name": "demo", "summary": "a = b"},
        "options": {
            "packages": "other",
            "py_modules": "one\ntwo\nthree",
            "install_requires": 'a;python_version<"3"',
        },
        "options.packages.find": {"where": "src"},
    }


LINES = st.sampled_from(["[a]", "[b]", "x = 1", "y:", "  two", "\tthree = 3", "", "# c", "z = 4 ; d", "Y = 5"])


@given(st.lists(LINES))
def test_like_configparser(lines):
    text = "[top]\n" + "\n".join(lines)
    parser = configparser.RawConfigParser(strict=False, empty_lines_in_values=True)
    try:
        parser.read_string(text)
    except configparser.ParsingError:  # lines that belong to nothing
        return
    expected = {
        section: {
            option: "\n".join(line.strip() for line in value.splitlines() if line.strip())
            for option, value in parser.items(section)
        }
        for section in parser.sections()
    }
    assert parse_setup_cfg(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [("a, b,", ["a", "b"]), ("\na\n b, c\n", ["a", "b, c"]), ("", []), ("one", ["one"])]
)
def test_lists(value, expected):
    assert listed(value) == expected


def test_mappings():
    assert mapped("\n= src\ndemo = lib/demo\nnothing") == {"": "src", "demo": "lib/demo"}
