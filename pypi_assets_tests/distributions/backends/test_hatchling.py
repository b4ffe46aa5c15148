"""What hatchling installs."""

import pytest

from pypi_assets.distributions.backends import hatchling
from pypi_assets_tests.distributions.backends.projects import FLAT, NAME, SRC, WHOLE, files, modules_by

WHEEL = "[tool.hatch.build.targets.wheel]\n"


def test_hatchling(subtests: pytest.Subtests):
    cases = [
        ("by name", files(*FLAT, pyproject=NAME), WHOLE, "hatch name"),
        ("by name in src", files(*SRC, pyproject=NAME), WHOLE, "hatch name"),
        ("single module", files("demo.py", "x.py", pyproject=NAME), ["demo"], "hatch name"),
        (
            "namespace",
            files("ns/demo/__init__.py", "ns/more.py", "x.py", pyproject=NAME),
            ["ns", "ns.demo", "ns.more"],
            "hatch name",
        ),
        (
            "packages and exclude",
            files(
                *SRC,
                "src/b.py",
                pyproject=WHEEL + 'packages = ["src/demo", "src/b.py"]\nexclude = ["tests/", "/src/demo/data"]\n',
            ),
            ["b", "demo", "demo.core"],
            "hatch settings",
        ),
        (
            "only-packages",
            files(*FLAT, pyproject=WHEEL + 'packages = ["demo", "other.py"]\nonly-packages = true\n'),
            ["demo", "demo.core", "other"],
            "hatch settings",
        ),
        (
            "only-packages where the top is one",
            files(*FLAT, "__init__.py", pyproject=WHEEL + 'include = ["*.py"]\nonly-packages = true\n'),
            ["demo", "demo.core", "other"],
            "hatch settings",
        ),
        (
            "include",
            files(*FLAT, pyproject=WHEEL + 'include = ["/demo/*.py", "other.py", "!core.py"]\n'),
            ["demo", "other"],
            "hatch settings",
        ),
        (
            "only-include, next to which include counts for nothing",
            files(
                *FLAT,
                pyproject='[tool.hatch.build]\ninclude = ["demo"]\n'
                + WHEEL
                + 'only-include = ["demo/core.py", "tests"]\n',
            ),
            ["demo", "demo.core", "tests", "tests.test_core"],
            "hatch settings",
        ),
        (
            "sources",
            files(
                *SRC,
                pyproject=WHEEL + 'only-include = ["src"]\n[tool.hatch.build.targets.wheel.sources]\n'
                '"src/demo" = "new/place"\n',
            ),
            [
                "new",
                "new.place",
                "new.place.core",
                "new.place.data",
                "new.place.data.x",
                "new.place.tests",
                "new.place.tests.test_x",
            ],
            "hatch settings",
        ),
        (
            "force-include",
            files(
                *FLAT,
                "lib/x.py",
                pyproject=NAME + WHEEL + 'exclude = ["demo/*/"]\n'
                '[tool.hatch.build.targets.wheel.force-include]\n"lib" = "demo/lib"\n'
                '"other.py" = "demo/o.py"\n',
            ),
            ["demo", "demo.core", "demo.lib", "demo.lib.x", "demo.o"],
            "hatch name",
        ),
        ("nothing of that name", files("y.py", pyproject=NAME), [], None),
    ]
    for case, contents, expected, by in cases:
        with subtests.test(case):
            assert modules_by(hatchling.installed, contents) == (by, expected)


def test_artifacts_are_installed_whatever_leaves_them_out():
    settings = '[tool.hatch.build.targets.wheel]\npackages = ["demo"]\nexclude = ["*.py"]\n'
    settings += 'artifacts = ["demo/core.py", "other.py"]\n'
    assert modules_by(hatchling.installed, files(*FLAT, pyproject=settings))[1] == ["demo", "demo.core"]


def test_a_wheel_without_modules_is_known_to_have_none():
    settings = "[tool.hatch.build.targets.wheel]\nbypass-selection = true\n"
    assert modules_by(hatchling.installed, files("other.py", pyproject=settings)) == ("hatch name", [])
