"""What flit installs."""

import pytest

from pypi_assets.distributions.backends import flit
from pypi_assets.distributions.module_names import find_modules
from pypi_assets_tests.distributions.backends.projects import FLAT, NAME, SRC, WHOLE, files, modules_by, source_tree


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        pytest.param(files(*FLAT, pyproject=NAME), WHOLE, id="by name"),
        pytest.param(files(*SRC, pyproject=NAME), WHOLE, id="by name in src"),
        pytest.param(files(*FLAT, pyproject='[tool.flit.module]\nname = "other"\n'), ["other"], id="module"),
        pytest.param(files("a_b.py", pyproject='[tool.flit.metadata]\nmodule = "a_b"\n'), ["a_b"], id="metadata"),
        pytest.param(files("x.py") | {"flit.ini": "[metadata]\nmodule = x\n"}, ["x"], id="flit.ini"),
        pytest.param(
            files("src/ns/demo/__init__.py", "src/ns/other/y.py", pyproject='[tool.flit.module]\nname = "ns.demo"\n'),
            ["ns", "ns.demo"],
            id="namespace",
        ),
        pytest.param(files("y.py", pyproject=NAME), [], id="nothing of that name"),
        pytest.param(files("Demo/x.py", "src/demo/y.py", pyproject=NAME), ["demo", "demo.y"], id="its case first"),
    ],
)
def test_flit(contents, expected):
    assert modules_by(flit.installed, contents)[1] == expected


@pytest.mark.parametrize("settings", ['[project]\nname = "a-b-stubs"\n', '[tool.flit.module]\nname = "a_b-stubs"\n'])
def test_packages_of_stubs_keep_the_end_of_their_names(settings):
    installed = flit.installed(source_tree(files("a_b-stubs/__init__.pyi", pyproject=settings)))
    assert installed is not None
    assert find_modules(installed.files).stubs == ("a_b",)
