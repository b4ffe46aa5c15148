"""Expressions of a setup.py: what is literal has a value, all else is unknown."""

import pytest

from pypi_assets_tests.distributions.setup_scripts import requires


def test_values_of_expressions(subtests: pytest.Subtests):
    cases = [
        ("['a', *more]", ("a", "m")),
        ("[f'a=={version}']", ("a==1.5",)),
        ("[x.strip() for x in ' a ; b;'.split(';') if x]", ("a", "b")),
        ("more if True else []", ("m",)),
        ("[] if not more else more", ("m",)),
        ("None or more", None),
        ("more or open('requirements.txt').read()", None),
        ("open('requirements.txt').read().split()", None),
        ("['a', unknown]", None),
        ("[f'{1:999999999}']", None),
        ("['a' if sys.version_info < (3,) else 'b']", None),
        ("['a' if sys.version_info < (3,) else 'a']", ("a",)),
        ("[1]", None),
        ("(lambda: ['a'])()", None),
    ]
    for expression, expected in cases:
        with subtests.test(expression=expression):
            script = f"version = '1.5'\nmore = ['m']\ntable = {{'k': ['t']}}\nsetup(install_requires={expression})"
            assert requires(script) == expected
