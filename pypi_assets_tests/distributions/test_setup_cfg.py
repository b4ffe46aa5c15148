"""setup.cfg is parsed like configparser does."""

import configparser
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.limits import LimitExceededError
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


def test_sections_options_and_multiline_values():
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
ODD = st.sampled_from(
    [
        "[]",
        "[] = 6",
        "[]x: 7",
        "\u212aey = 8",
        "key = 9",
        "\u0391\u03a3 = a\x0bb",
        "p\x1cq=r\x85s",
        "t\u2028[a]",
        "u=\r[b]",
        "v\r\n",
    ]
)
REFERENCES = st.sampled_from(["[DEFAULT]", "u = %(x)s", "  %(Z)s%%", "x = %(u)s%(y)s", "v = 5%", "v = %(none)s"])


@given(st.lists(st.one_of(LINES, REFERENCES, ODD)))
def test_parsing_agrees_with_configparser(lines):
    text = "[top]\n" + "\n".join(lines)
    parser = configparser.ConfigParser(strict=False, empty_lines_in_values=True)
    try:
        parser.read_file(io.StringIO(text, newline=None))
    except configparser.ParsingError:  # lines outside any option
        return

    def value(section: str, option: str) -> str:
        try:
            value_read = parser.get(section, option)
        except configparser.InterpolationError:
            value_read = parser.get(section, option, raw=True)
        return "\n".join(line.strip() for line in value_read.split("\n") if line.strip())

    expected = {
        section: {option: value(section, option) for option in parser.options(section)} for section in parser.sections()
    }
    assert parse_setup_cfg(text) == expected


def test_interpolated_values():
    text = "[DEFAULT]\nroot = src\n[options]\npackage-dir = = %(root)s/%(SUB)s\nsub = a%%b\nodd = %(what)s\n"
    assert parse_setup_cfg(text)["options"] == {
        "root": "src",
        "package_dir": "= src/a%b",
        "sub": "a%b",
        "odd": "%(what)s",
    }


def test_option_names_are_lowercase_and_line_ends_universal():
    text = "[options]\rpac\u212aages = a\x0bb\r\n\u00c9 = 1\n\u00e9 = 2\n[] = 3\n"
    assert parse_setup_cfg(text) == {"options": {"packages": "a\x0bb", "\u00e9": "2", "[]": "3"}}


DOUBLED = "".join(f"o{number} = {f'%(o{number + 1})s' * 10}\n" for number in range(9))


@pytest.mark.parametrize(
    "text",
    [
        f"[a]\n{DOUBLED}o9 = x\n",
        f"[a]\nx = {'%(y)s' * 1000}\ny = {'z' * 10_000}\n",
        "[DEFAULT]\n"
        + "".join(f"o{number} = 1\n" for number in range(1000))
        + "".join(f"[s{n}]\n" for n in range(1000)),
    ],
)
def test_endless_interpolation_is_rejected(text):
    with pytest.raises(LimitExceededError):
        parse_setup_cfg(text)


@pytest.mark.parametrize(
    ("value", "expected"), [("a, b,", ["a", "b"]), ("\na\n b, c\n", ["a", "b, c"]), ("", []), ("one", ["one"])]
)
def test_lists(value, expected):
    assert listed(value) == expected


def test_mappings():
    assert mapped("\n= src\ndemo = lib/demo\nnothing") == {"": "src", "demo": "lib/demo"}
