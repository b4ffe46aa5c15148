"""Modules where neither a backend nor its settings name them."""

import pytest

from pypi_assets.distributions.sdist_modules import find_sdist_modules
from pypi_assets_tests.distributions.backends.projects import files, source_tree
from pypi_assets_tests.distributions.named_backends import backend


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        (files("src/a/b.py", "c.py", pyproject=backend("unknown")), ("a", "a.b"), "src layout"),
        (files("other.py", "setup.py", "docs/conf.py", pyproject=backend("unknown")), ("other",), "flat layout"),
        (files("ns/a/b.py", "docs/conf.py", pyproject=backend("unknown")), ("ns", "ns.a", "ns.a.b"), "flat layout"),
        (files("a/__init__.py", "one.py", pyproject=backend("unknown")), ("a",), "flat layout"),
        (files("lib/x.py", setup_py="setup(packages=some())"), ("x",), "lib layout"),
        (files("lib/x.py", "demo/__init__.py", pyproject=backend("unknown")), ("demo",), "project's name"),
        (files("lib/demo/x.py", "demo/__init__.py", pyproject=backend("unknown")), ("demo", "demo.x"), "lib layout"),
    ],
)
def test_layouts_of_unknown_backends_and_of_none(contents, expected, by):
    found = find_sdist_modules(source_tree(contents))
    assert (found.names, found.by, found.grade) == (expected, by, "guessed")


def test_declared_import_names_come_before_the_layout():
    contents = files("src/a/b/__init__.py", "src/a/c.py", "src/d.py", pyproject=backend("unknown"))
    assert find_sdist_modules(source_tree(contents, declared=("a.b", "d"))).names == ("a", "a.b", "d")
