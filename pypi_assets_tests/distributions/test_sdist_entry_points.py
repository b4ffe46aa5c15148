"""Sdists: the entry points that each kind of file declares."""

import pytest

from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.builders import core_metadata, make_sdist

SETUP = "from setuptools import setup\n"
DECLARED = {"console_scripts": {"run": "demo:main"}, "plugins": {"a.b": "demo:plugin [x]"}}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.scripts]\nrun = "demo:main"\n'
                '[project.entry-points.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[tool.poetry]\nname = "demo"\n[tool.poetry.scripts]\n'
                'run = {reference = "demo:main", type = "console"}\n'
                '[tool.poetry.plugins.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[tool.flit.metadata]\nmodule = "demo"\n[tool.flit.scripts]\nrun = "demo:main"\n'
                '[tool.flit.entrypoints.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    run = demo:main\n"
                "plugins =\n    a.b = demo:plugin [x]\n"
            },
            DECLARED,
        ),
        (
            {
                "setup.py": f"{SETUP}groups = {{'console_scripts': ['run=demo:main'], "
                "'plugins': 'a.b = demo:plugin [x]'}\nsetup(entry_points=groups)"
            },
            DECLARED,
        ),
        (
            {
                "setup.py": f"{SETUP}setup(entry_points='[console_scripts]\\nrun=demo:main\\n"
                "[plugins]\\na.b = demo:plugin [x]')"
            },
            DECLARED,
        ),
        ({"setup.py": f"{SETUP}setup(entry_points=unknown)"}, {}),
        (
            {
                "demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"),
                "demo.egg-info/entry_points.txt": "[console_scripts]\nrun=demo:main\n[plugins]\na.b=demo:plugin [x]",
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.gui-scripts]\nshow = "demo:show"\n'
                '[project.entry-points.my-group]\n"A-b" = "demo:it"'
            },
            {"gui_scripts": {"show": "demo:show"}, "my-group": {"A-b": "demo:it"}},
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\ndynamic = ["entry-points"]\n'
                '[project.scripts]\nrun = "demo:main"\n',
                "setup.cfg": "[options.entry_points]\nplugins = a.b = demo:plugin [x]\n"
                "console_scripts = run = demo:no\n",
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.scripts]\nrun = "demo:main"\n',
                "setup.cfg": "[options.entry_points]\nplugins = a.b = demo:plugin [x]\n",
            },
            {"console_scripts": {"run": "demo:main"}},
        ),
        (
            {
                "pyproject.toml": '[tool.poetry]\nname = "demo"\n[tool.poetry.scripts]\n'
                'one = {callable = "demo:one", extras = ["x", "y"]}\nfile = {reference = "bin/file", type = "file"}\n'
                '[tool.poetry.plugins.console_scripts]\ntwo = "demo:two"\n'
            },
            {"console_scripts": {"one": "demo:one [x, y]", "two": "demo:two"}},
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.scripts]\nrun = "demo:main"\n'
                '[tool.poetry.scripts]\nold = "demo:old"\n[tool.poetry.plugins.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {"setup.cfg": "[options.entry_points]\nMy-Group.x =\n    Run-It = demo:main\n    not an entry\n"},
            {"My-Group.x": {"Run-It": "demo:main"}},
        ),
        (
            {"flit.ini": "[metadata]\nmodule = demo\n[scripts]\nRun = demo:main\n"},
            {"console_scripts": {"Run": "demo:main"}},
        ),
        ({"pyproject.toml": '[project]\nname = "demo"\nscripts = 3\n[project.entry-points]\nx = [1]'}, {}),
        (
            {
                "demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"),
                "setup.py": f"{SETUP}setup(entry_points={{'g': ['a=b']}})",
            },
            {},
        ),
    ],
)
def test_entry_points(tmp_path, files, expected):
    assert read_path(make_sdist(tmp_path, "demo", "1.0", files=files)).entry_points == expected
