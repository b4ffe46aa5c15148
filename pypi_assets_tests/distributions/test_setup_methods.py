"""Methods of texts and dicts that a setup.py calls."""

import pytest

from pypi_assets_tests.distributions.setup_scripts import requires


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'a b'.split()", ("a", "b")),
        ("'a, b'.split(', ')", ("a", "b")),
        ("'''\na\nb'''.strip().splitlines()", ("a", "b")),
        ("['a>={}'.format(version), 'b=={0}.{x}'.format(1, x=2)]", ("a>=1.5", "b==1.2")),
        ("table.get('none', ['d'])", ("d",)),
        ("['{:>999999999}'.format('a')]", None),
    ],
)
def test_values_of_methods(expression, expected):
    script = f"version = '1.5'\nmore = ['m']\ntable = {{'k': ['t']}}\nsetup(install_requires={expression})"
    assert requires(script) == expected
