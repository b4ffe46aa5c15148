"""What Poetry installs."""

from textwrap import dedent

import pytest

from pypi_assets.distributions.backends import poetry
from pypi_assets_tests.distributions.backends.projects import FLAT, SRC, WHOLE, files, modules_by


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        pytest.param(files(*FLAT, pyproject="[tool.poetry]\n"), WHOLE, "poetry name", id="by name"),
        pytest.param(files(*SRC, pyproject="[tool.poetry]\n"), WHOLE, "poetry name", id="by name in src"),
        pytest.param(
            files("demo.py", pyproject='[tool.poetry]\nname = "Demo"\n'), ["demo"], "poetry name", id="single module"
        ),
        pytest.param(
            files(
                "a/__init__.py",
                "from/b/x.py",
                "from/c/y.py",
                pyproject="[tool.poetry]\n"
                'packages = [{include = "a"}, {include = "b/**/*.py", from = "from"},'
                '{include = "c", from = "from", to = "to"}]\n',
            ),
            ["a", "b", "b.x", "to", "to.c", "to.c.y"],
            "poetry packages",
            id="include, from and to",
        ),
        pytest.param(
            files(
                *FLAT,
                pyproject="[tool.poetry]\n"
                'packages = [{include = "demo"}, {include = "tests", format = "sdist"}]\n'
                'include = [{path = "other.py", format = ["wheel"]}, "tests"]\n'
                'exclude = ["demo/data", "demo/tests/**/*.py"]\n'
                '[build-system]\nrequires = ["poetry-core>=2"]\n',
            ),
            ["demo", "demo.core", "other"],
            "poetry packages",
            id="formats, include and exclude",
        ),
        pytest.param(
            files(
                "demo.py",
                "tests/a.py",
                pyproject='[tool.poetry]\ninclude = ["tests"]\n[build-system]\nrequires = ["poetry-core<2"]\n',
            ),
            ["demo", "tests", "tests.a"],
            "poetry name",
            id="before version 2 an include went into wheels too",
        ),
        pytest.param(files("x.py", pyproject="[tool.poetry]\n"), [], None, id="nothing of that name"),
    ],
)
def test_poetry(contents, expected, by):
    assert modules_by(poetry.installed, contents) == (by, expected)


def test_the_first_entry_that_names_a_file_decides_and_includes_survive_exclude():
    settings = """
        [build-system]
        requires = ["poetry-core>=2"]
        [tool.poetry]
        packages = [{include = "demo", to = "a"}, {include = "demo", to = "b"}]
        include = [{path = "demo/core.py", format = "wheel"}]
        exclude = ["demo/core.py", "demo/data"]
        """
    found = modules_by(poetry.installed, files(*FLAT, pyproject=dedent(settings)))[1]
    assert found == ["a", "a.demo", "a.demo.core", "a.demo.tests", "a.demo.tests.test_x"]


def test_packages_for_sdists_alone_are_none_of_the_wheel():
    settings = '[tool.poetry]\nname = "demo"\npackages = [{include = "other.py", format = "sdist"}]\n'
    assert modules_by(poetry.installed, files(*FLAT, pyproject=settings)) == ("poetry name", WHOLE)
