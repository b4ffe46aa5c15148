"""What cmeel installs."""

from pypi_assets.distributions.backends import cmeel
from pypi_assets.distributions.sdist_modules import find_sdist_modules
from pypi_assets_tests.distributions.backends.projects import files, modules_by, source_tree


def test_nothing_comes_to_lie_in_site_packages():
    contents = files("demo/__init__.py", pyproject='[build-system]\nbuild-backend = "cmeel.build"\n')
    assert modules_by(cmeel.installed, contents) == ("cmeel prefix", [])
    found = find_sdist_modules(source_tree(contents))
    assert (found.names, found.by, found.grade) == ((), "cmeel prefix", "derived")
