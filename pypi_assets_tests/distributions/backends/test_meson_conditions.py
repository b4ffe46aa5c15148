"""Conditions in meson.build files."""

import re

import pytest

from pypi_assets.distributions.backends.meson_values import read_options, truth

OPTIONS = """
option('gpu', type: 'boolean', value: false, description: 'x')
option('blas', type : 'combo', choices: ['a', 'b'],
       value : 'openblas')
option('plain', type: 'boolean')
option('many', type: 'array', value: ['a'])
"""
_TOKEN = re.compile(r"'(?P<text>[^']*)'|(?P<word>\w+)|(?P<mark>==|!=|\S)")


def holds(condition):
    tokens = [(match.lastgroup, match[match.lastgroup]) for match in _TOKEN.finditer(condition)]
    options = read_options(OPTIONS, ["-Dmkl=true", "--other"])
    return truth(tokens, options, {"is_on": True, "is_off": False, "unclear": None})


def test_options_use_defaults_and_setup_arguments():
    expected = {"gpu": "false", "blas": "openblas", "plain": "true", "mkl": "true"}
    assert read_options(OPTIONS, ["-Dmkl=true"]) == expected
    assert read_options(OPTIONS, ["-Dgpu=true"])["gpu"] == "true"


def test_conditions(subtests: pytest.Subtests):
    cases = [
        ("get_option('gpu')", False),
        ("not get_option('gpu')", True),
        ("get_option('plain') and get_option('mkl')", True),
        ("get_option('none')", None),
        ("get_option('none') or true", True),
        ("get_option('none') and is_off", False),
        ("get_option('blas') == 'openblas'", True),
        ("get_option('blas') != 'openblas' or is_on", True),
        ("get_option('many').length() > 0", None),
        ("host_machine.system() == 'windows'", None),
        ("not (is_off or is_on)", False),
        ("unclear", None),
        ("is_on and unclear", None),
        ("dependency('x').found() and is_off", False),
        ("", None),
        ("( (", None),
        ("'text'", None),
    ]
    for condition, expected in cases:
        with subtests.test(condition=condition):
            assert holds(condition) is expected


def test_long_condition_is_not_evaluated():
    assert holds("true and " * 150 + "true") is None
