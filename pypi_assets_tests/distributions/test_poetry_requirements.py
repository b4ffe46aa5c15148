"""Poetry requirements are converted to the PEP 508 requirements of Poetry's wheels."""

import pytest
import tomli
from packaging.requirements import Requirement

from pypi_assets.distributions.poetry_requirements import poetry_requirements


def converted(dependencies: str, rest: str = "") -> list[str] | None:
    requirements = poetry_requirements(tomli.loads(f"{rest}\n[dependencies]\n{dependencies}"))
    for requirement in requirements[0] if requirements else ():
        Requirement(requirement)
    return requirements and requirements[0]


def test_versions(subtests: pytest.Subtests):
    cases = [
        ("*", ""),
        ("^1.2.3", ">=1.2.3,<2.0.0"),
        ("^1.2", ">=1.2,<2.0"),
        ("^1", ">=1,<2"),
        ("^0.2.3", ">=0.2.3,<0.3.0"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"),
        ("^0", ">=0,<1"),
        ("^1.2.3b1", ">=1.2.3b1,<2.0.0"),
        ("^2020.1.2.3", ">=2020.1.2.3,<2021.0.0"),
        ("~1.2.3", ">=1.2.3,<1.3.0"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1", ">=1,<2"),
        ("~=1.2", "~=1.2"),
        ("1.2.3", "==1.2.3"),
        ("=1.2", "==1.2"),
        ("1.2.*", "==1.2.*"),
        (">=1.2, <2, !=1.5", ">=1.2,<2,!=1.5"),
        (">= 1.2 <2", ">=1.2,<2"),
        ("v1.0", "==1.0"),
        ("^1.0 || ^2.0", ">=1.0,<3.0"),
        (">=1.*", ">=1"),
        ("<=1.2.*", "<=1.2"),
        ("2.*.*", "==2.*"),
        ("!=2.*.*", "!=2.*"),
        ("*.*", ""),
    ]
    for constraint, specifiers in cases:
        with subtests.test(constraint=constraint):
            assert converted(f'a = "{constraint}"') == [f"a{specifiers}"]
            assert converted(f'a = {{version = "{constraint}"}}') == [f"a{specifiers}"]


def test_details(subtests: pytest.Subtests):
    cases = [
        ('{version = "^1", extras = ["x", "y"]}', "a[x,y]>=1,<2"),
        ('{version = "*", extras = ["c", "b_B", "b.b"]}', "a[b-b,c]"),
        ('{version = "*", markers = "os_name == \'nt\'"}', "a; os_name == 'nt'"),
        ('{version = "*", python = "^3.7"}', 'a; python_version >= "3.7" and python_version < "4.0"'),
        ('{version = "*", python = ">3.7"}', 'a; python_full_version > "3.7.0"'),
        ('{version = "*", python = "<=3"}', 'a; python_full_version <= "3.0.0"'),
        ('{version = "*", python = "!=3.6"}', 'a; python_full_version != "3.6.0"'),
        ('{version = "*", python = "!=3.6.*"}', 'a; python_version != "3.6"'),
        ('{version = "*", python = "3.*"}', 'a; python_version >= "3" and python_version < "4"'),
        (
            '{version = "*", python = ">2, !=3.*"}',
            'a; python_full_version > "2.0.0" and (python_version < "3" or python_version >= "4")',
        ),
        ('{version = "*", python = ">=3.*"}', 'a; python_version >= "3"'),
        ('{version = "*", python = "<=3.7b1"}', 'a; python_full_version <= "3.7b1"'),
        ('{version = "*", python = ">=3.7.1"}', 'a; python_full_version >= "3.7.1"'),
        ('{version = "*", python = "2.7.*"}', 'a; python_version == "2.7"'),
        ('{version = "*", python = "*"}', "a"),
        (
            '{version = "*", python = "~2.7 || >=3.5"}',
            'a; (python_version >= "2.7" and python_version < "2.8") or (python_version >= "3.5")',
        ),
        (
            '{version = "*", python = ">=3.7", platform = "win32", markers = "os_name == \'a\' or os_name == \'b\'"}',
            "a; python_version >= \"3.7\" and sys_platform == \"win32\" and (os_name == 'a' or os_name == 'b')",
        ),
        ('{version = "*", platform = "*"}', "a"),
        ('{version = "*", platform = "!=win32"}', 'a; sys_platform != "win32"'),
        ('{version = "*", platform = "== linux"}', 'a; sys_platform == "linux"'),
        (
            '{version = "*", platform = "linux || darwin", python = "<3.8"}',
            'a; python_version < "3.8" and (sys_platform == "linux" or sys_platform == "darwin")',
        ),
        (
            '{version = "*", platform = "!=win32,!=cygwin|aix"}',
            'a; sys_platform != "win32" and sys_platform != "cygwin" or sys_platform == "aix"',
        ),
        ('{git = "https://example.org/a.git"}', "a @ git+https://example.org/a.git"),
        (
            '{git = "https://example.org/a.git", tag = "t", subdirectory = "s"}',
            "a @ git+https://example.org/a.git@t#subdirectory=s",
        ),
        ('{git = "git@example.org:x/a.git", branch = "b"}', "a @ git+ssh://git@example.org/x/a.git@b"),
        (
            '{url = "https://example.org/a.zip", python = "<3.8"}',
            'a @ https://example.org/a.zip ; python_version < "3.8"',
        ),
    ]
    for details, requirement in cases:
        with subtests.test(details=details):
            assert converted(f"a = {details}") == [requirement]


def test_unconvertible_requirement_makes_all_unknown(subtests: pytest.Subtests):
    cases = [
        'a = "^1 || ^3"',
        'a = {path = "../a"}',
        "a = {}",
        "a = 1",
        "a = [1]",
        'a = {version = ["1"]}',
        'a = {version = "*", platform = "\'win\' in"}',
        'a = {version = "*", platform = "linux || "}',
        'a = {version = "*", optional = true, markers = 1}',
        'a = "what?"',
        'a = "^x"',
        'a = "^1.*"',
        'a = "~=1.*"',
        'a = "1.*.2"',
        f'a = {{version = "*", python = "{"9" * 5000}.*"}}',
        f'a = "^{"9" * 5000}"',
    ]
    for dependency in cases:
        with subtests.test(dependency=dependency):
            assert converted(f'b = "*"\n{dependency}') is None


def test_extras_and_several_constraints():
    poetry = tomli.loads("""
        [extras]
        X_y = ["A-b", "c"]
        z = ["c"]
        [dependencies]
        python = "^3.8"
        A_b = {version = "1", optional = true}
        c = {version = "*", optional = true, python = "<3.9"}
        unused = {version = "*", optional = true}
        d = [{version = "<2", python = "<3.8"}, {version = ">=2", python = ">=3.8"}]
    """)
    assert poetry_requirements(poetry) == (
        [
            'A_b==1; extra == "x-y"',
            'c; python_version < "3.9" and (extra == "x-y" or extra == "z")',
            'd<2; python_version < "3.8"',
            'd>=2; python_version >= "3.8"',
        ],
        ["x-y", "z"],
    )


def test_extras_in_markers_select_optional_requirements():
    poetry = tomli.loads("""
        [extras]
        x = ["a", "e"]
        [dependencies]
        a = {version = "1", optional = true, markers = "extra == 'y'"}
        b = {version = "1", optional = true, markers = "extra == 'y' and extra != 'z'"}
        c = {version = "1", optional = true, markers = "'y' == extra"}
        d = {version = "1", optional = true, markers = "extra != 'y'"}
        e = {version = "1", optional = true, markers = "platform_machine == 'extra'"}
        f = {version = "1", optional = true, markers = "platform_machine == 'extra == '"}
    """)
    requirements = poetry_requirements(poetry)
    assert requirements is not None
    assert requirements[0] == [
        "a==1; extra == 'y'",
        "b==1; extra == 'y' and extra != 'z'",
        "c==1; 'y' == extra",
        "e==1; platform_machine == 'extra' and extra == \"x\"",
    ]
