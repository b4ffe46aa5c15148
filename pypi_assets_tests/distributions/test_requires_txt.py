"""setuptools' requires.txt is converted to the Requires-Dist and Provides-Extra that setuptools writes."""

import pytest
from packaging.requirements import Requirement

from pypi_assets.distributions.metadata import conditional, normalized_extra, parse_requires_txt


def test_sections(subtests: pytest.Subtests):
    cases = [
        ("", (), ()),
        ("a\nb>=1,<2\n", ("a", "b>=1,<2"), ()),
        ("a\r\n\r\nb # why\r\n# no\r\n", ("a", "b"), ()),
        ("a\na\n", ("a",), ()),
        ("[test]\n", (), ("test",)),
        ("[test]\na\n", ('a; extra == "test"',), ("test",)),
        ("[My_Extra.x]\na\n", ('a; extra == "my-extra-x"',), ("my-extra-x",)),
        ("[x]\na\n[x]\nb\n[X]\nc\n", ('a; extra == "x"', 'b; extra == "x"', 'c; extra == "x"'), ("x",)),
        ('[:python_version < "3"]\na\n', ('a; python_version < "3"',), ()),
        ("[:(os_name=='nt')]\na[y]>1\n", ("a[y]>1; (os_name=='nt')",), ()),
        ('[x:os_name == "nt"]\na\n', ('a; os_name == "nt" and extra == "x"',), ("x",)),
        (
            '[x:os_name == "nt" or os_name == "java"]\na\n',
            ('a; (os_name == "nt" or os_name == "java") and extra == "x"',),
            ("x",),
        ),
        (
            "[x]\na; os_name == 'nt' or os_name == 'java'\n",
            ("a; (os_name == 'nt' or os_name == 'java') and extra == \"x\"",),
            ("x",),
        ),
        ("a @ https://example.org/a.zip\n", ("a @ https://example.org/a.zip",), ()),
        ("[x]\na @ https://example.org/a;b.zip\n", ('a @ https://example.org/a;b.zip ; extra == "x"',), ("x",)),
        (
            "[x]\na @ git+ssh://git@example.org/a ; os_name == 'nt'\n",
            ("a @ git+ssh://git@example.org/a ; os_name == 'nt' and extra == \"x\"",),
            ("x",),
        ),
        ("[:]\na\n", ("a",), ()),
        ("[...]\na\n", ("a",), ()),
        ("a\0>1\n", ("a>1",), ()),
        ("\ufeffa\n", ("a",), ()),
    ]
    for content, requires_dist, extras in cases:
        with subtests.test(content=content):
            assert parse_requires_txt(content.encode()) == (requires_dist, extras)
            for requirement in requires_dist:
                Requirement(requirement)


def test_conditions_are_joined():
    joined = Requirement(conditional("a; python_version > '2' or os_name == 'nt'", "os_name == 'posix'", "x")).marker
    assert joined is not None
    for os_name, version, extra, expected in [
        ("posix", "3.11", "x", True),
        ("posix", "2.0", "x", False),
        ("nt", "3.11", "x", False),
        ("posix", "3.11", "", False),
    ]:
        assert joined.evaluate({"os_name": os_name, "python_version": version, "extra": extra}) is expected


@pytest.mark.parametrize(
    ("written", "normalized"), [("test", "test"), (" Dev.All ", "dev-all"), ("a__-.b", "a-b"), ("-x-", "x"), ("é", "")]
)
def test_extras_are_normalized(written, normalized):
    assert normalized_extra(written) == normalized
