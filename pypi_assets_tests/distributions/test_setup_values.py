"""Values, expressions and operators of a setup.py, and limits on the steps of following it."""

import pytest

from pypi_assets.distributions.setup_script import (
    SetupArguments,
    read_setup_script,
)
from pypi_assets.distributions.setup_values import (
    UNKNOWN,
    FindPackages,
    Imported,
    as_text,
    is_encodable,
    is_same_scalar,
    is_texts,
    spoil,
)
from pypi_assets_tests.distributions.setup_scripts import requires


def test_spoiled_container_is_unknown_for_all_references():
    listed, table = ["a"], {"k": "a"}
    others = (listed, table)
    spoil(listed)
    spoil(table)
    spoil("a text stays as it is")
    assert others == ([UNKNOWN], {UNKNOWN: UNKNOWN})


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", True),
        (1, True, False),
        (None, None, True),
        (FindPackages("src"), FindPackages("src"), True),
        (Imported("a"), Imported("b"), False),
        (["a"], ["a"], False),
        (UNKNOWN, UNKNOWN, False),
    ],
)
def test_only_known_scalars_of_one_type_are_equal(one, other, expected):
    assert is_same_scalar(one, other) is expected


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (1, "1"), (True, "True"), (None, UNKNOWN), (["a"], UNKNOWN), (1 << 62, UNKNOWN), (1.5, UNKNOWN)],
)
def test_values_as_text(value, text):
    assert as_text(value) == text


def test_lone_surrogate_is_not_encodable():
    assert is_encodable("caf\xe9 \U0001f600")
    assert not is_encodable("\ud800")


def test_is_texts_accepts_lists_and_tuples_of_texts():
    assert is_texts([])
    assert is_texts(("a", "b"))
    assert not is_texts(["a", 1])
    assert not is_texts("ab")


def test_expression_values(subtests: pytest.Subtests):
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
def test_operation_values(expression, expected):
    script = f"version = '1.5'\nmore = ['m']\ntable = {{'k': ['t']}}\nsetup(install_requires={expression})"
    assert requires(script) == expected


def test_long_template_takes_linear_time():
    values = ", ".join(["'a'"] * 15_000)
    assert requires(f"r = '{'%s' * 15_000}' % ({values})\nsetup(install_requires=[r])") == ("a" * 15_000,)


@pytest.mark.parametrize(
    "source",
    [
        b"x = [1]\n" + b"x = x + x\n" * 40 + b"setup(name=x)",
        b"x = 'a'\n" + b"x = x + x\n" * 60 + b"setup(name=x)",
        b"def f(): " + b"f(); " * 8 + b"\n" + b"f()\n" * 30_000 + b"setup()",
        b"setup()\n" * 30,
    ],
)
def test_too_many_steps_or_calls_are_a_problem(source):
    assert read_setup_script(source) == SetupArguments(problem="setup.py is too long or too deep")
