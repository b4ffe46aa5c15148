"""Operators on the values of a setup.py."""

import pytest

from pypi_assets_tests.distributions.setup_scripts import requires


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("['a'] + ['b']", ("a", "b")),
        ("('a',) + ('b',)", ("a", "b")),
        ("['a' '>1', 'b' + '<2']", ("a>1", "b<2")),
        ("['a>=%s' % version, 'b>=%(v)s' % {'v': '2'}]", ("a>=1.5", "b>=2")),
        ("table['k']", ("t",)),
        ("more + unknown", None),
        ("more * 1000000000", None),
        ("['%999999999d' % 1]", None),
    ],
)
def test_values_of_operations(expression, expected):
    script = f"version = '1.5'\nmore = ['m']\ntable = {{'k': ['t']}}\nsetup(install_requires={expression})"
    assert requires(script) == expected


def test_a_long_template_takes_linear_time():
    values = ", ".join(["'a'"] * 15_000)
    assert requires(f"r = '{'%s' * 15_000}' % ({values})\nsetup(install_requires=[r])") == ("a" * 15_000,)
