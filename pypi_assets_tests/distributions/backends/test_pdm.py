"""What PDM installs."""

import pytest

from pypi_assets.distributions.backends import pdm
from pypi_assets_tests.distributions.backends.projects import FLAT, NAME, SRC, WHOLE, files, modules_by

BUILD = "[tool.pdm.build]\n"


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        pytest.param(
            files(*FLAT, "b/__init__.py", pyproject=NAME), ["b", *WHOLE], "pdm packages", id="packages at the top"
        ),
        pytest.param(files(*SRC, *FLAT[4:], pyproject=NAME), WHOLE, "pdm packages", id="packages in src"),
        pytest.param(
            files("a.py", "b.py", "tests/x.py", pyproject=NAME), ["a", "b"], "pdm packages", id="single modules"
        ),
        pytest.param(
            files("lib/demo/__init__.py", "lib/x.py", pyproject=BUILD + 'package-dir = "lib"\n'),
            ["demo"],
            "pdm packages",
            id="package-dir",
        ),
        pytest.param(
            files(
                *FLAT,
                pyproject=BUILD + 'includes = ["demo", "other.py"]\nexcludes = ["demo/tests", "demo/data/*.py"]\n',
            ),
            ["demo", "demo.core", "other"],
            "pdm includes",
            id="includes and excludes",
        ),
        pytest.param(
            files(*FLAT, pyproject=BUILD + 'source-includes = ["demo/tests", "demo/data"]\n'),
            ["demo", "demo.core"],
            "pdm packages",
            id="source-includes are not in wheels",
        ),
        pytest.param(
            files(
                *SRC,
                pyproject='[build-system]\nrequires = []\nbuild-backend = "pdm.pep517.api"\n'
                '[tool.pdm]\nincludes = ["src/demo/core.py"]\n',
            ),
            ["demo", "demo.core"],
            "pdm includes",
            id="the old table, and includes in src",
        ),
    ],
)
def test_pdm(contents, expected, by):
    assert modules_by(pdm.installed, contents) == (by, expected)
