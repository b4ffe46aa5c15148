"""The modules that numpy.distutils builds."""

import pytest

from pypi_assets.distributions.backends import setuptools
from pypi_assets.distributions.backends.setuptools_files import configured_extensions
from pypi_assets_tests.distributions.backends.projects import files, grade_of, modules_by, source_tree

TOP = """
from numpy.distutils.core import setup
def configuration(parent_package='', top_path=None):
    from numpy.distutils.misc_util import Configuration
    config = Configuration(None, parent_package, top_path)
    config.add_subpackage('demo')
    return config
setup(name='demo', configuration=configuration)
"""
INSIDE = """
def configuration(parent_package='', top_path=None):
    config = Configuration('fast', parent_package, top_path)
    config.add_extension('_one', sources=['one.c'])
    config.add_extension( "_two", ['two.f'])
    config.add_extension(name, [])
    return config
"""
PACKAGES = files("demo/__init__.py", "demo/fast/__init__.py", "demo/fast/one.c", "tools/x.py", setup_py=TOP)
SCRIPTS = {"demo/fast/setup.py": INSIDE, "tools/setup.py": INSIDE}


@pytest.mark.parametrize(
    ("more", "by", "grade"),
    [
        ({}, "setuptools flat layout", "guessed"),
        ({"demo.egg-info/top_level.txt": "demo\n"}, "top_level.txt", "guessed"),
    ],
)
def test_packages_have_extension_modules_of_their_setup_py(more, by, grade):
    contents = PACKAGES | SCRIPTS | more
    expected = ["demo", "demo.fast", "demo.fast._one", "demo.fast._two", "demo.fast.setup"]
    assert modules_by(setuptools.installed, contents) == (by, expected)
    assert grade_of(setuptools.installed, contents) == grade


def test_packages_in_a_subfolder():
    contents = {f"src/{path}": content for path, content in SCRIPTS.items()} | files("src/demo/fast/__init__.py")
    assert configured_extensions(source_tree(contents), "src") == ["demo.fast._one", "demo.fast._two"]
