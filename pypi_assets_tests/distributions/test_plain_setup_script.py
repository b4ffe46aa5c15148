"""A plain setup.py read by its text says what it says when it is read as syntax; what is not plain says nothing."""

import itertools

import pytest

from pypi_assets.distributions.plain_setup_script import read_plain_setup_script
from pypi_assets.distributions.setup_script import FindPackages, read_setup_script

HEAD = "# -*- coding: utf-8 -*-\nfrom setuptools import setup, find_packages\nimport setuptools\n"
HEAD += "NAMES = [\n  'a',\n 'b.*']\n"
PACKAGES = (
    "packages=['a', \"a.b\"],",
    "packages = [\n        'a',  \n        'a.b',\n    ],",
    "packages=find_packages(),",
    "packages=setuptools.find_packages('src'),",
    "packages=find_packages(where='./src', exclude=['tests', 'tests.*']),",
    "packages=find_packages(exclude=('tests',), include=['a*']),",
    "packages=find_packages('.', ['docs']),",
    "packages=setuptools.find_namespace_packages(include=['a.*']),",
    "packages=[],",
    "packages=NAMES,",
    "packages=find_packages(exclude=NAMES),",
    "",
)
MODULES = ("py_modules=['one'],", "")
FOLDERS = ("package_dir={'': 'src'},", "package_dir = {\n'a': 'lib/a',\n'': '.'},", "")


@pytest.mark.parametrize(("packages", "modules", "folders"), [*itertools.product(PACKAGES, MODULES, FOLDERS)])
def test_like_the_syntax(packages, modules, folders):
    text = "\n    ".join(["setup(", "name='demo',", packages, modules, folders, "zip_safe=False)"])
    source = f"{HEAD}{text}\n".encode()
    plain, read = read_plain_setup_script(source), read_setup_script(source)
    assert plain is not None
    assert (plain.packages, plain.py_modules, plain.package_dir) == (read.packages, read.py_modules, read.package_dir)
    assert plain.given == read.given & {"packages", "py_modules", "package_dir"}


def test_the_arguments_of_find_packages():
    call = b"find_namespace_packages('src', include=['a', 'b.*'], exclude=('c',))"
    plain = read_plain_setup_script(b"setup(packages=" + call + b")")
    assert plain is not None
    assert plain.packages == (FindPackages("src", ("a", "b.*"), ("c",), namespaces=True),)


@pytest.mark.parametrize(
    "source",
    [
        "import x\n",
        "setup(packages=PACKAGES)",
        "setup(packages=['a'] + more)",
        "setup(packages=['a' 'b'])",
        "setup(packages=[name])",
        "setup(packages=find_packages(exclude=EXCLUDED))",
        "setup(packages=find_packages() + ['b'])",
        "setup(packages=find_packages(*where))",
        "setup(name='a', **more)",
        "setup(packages=['a'], **{'py_modules': more})",
        "packages = ['a']\npackages.append('b')\nsetup(packages=packages)",
        "NAMES = ['a']\nNAMES += more\nsetup(packages=NAMES)",
        "if x:\n    names = ['a']\nsetup(packages=names)",
        "def find_packages(): return []\nsetup(packages=find_packages())",
        "if x:\n    setup(packages=['a'])\nelse:\n    setup(packages=['b'])\n",
        "setup(packages=['a'], package_dir={'': where})",
        "# setup(packages=['a'])\nsetup(packages=more)",
        "setup(  # packages=['a'],\n)",
        "setup(packages=['a'], py_modules=modules)",
        "setup(packages=f('a'))",
    ],
)
def test_what_is_not_plain(source):
    assert read_plain_setup_script(source.encode()) is None


def test_a_variable_of_the_same_name():
    plain = read_plain_setup_script(b"#\npackages = \\\n['a']\nsetup(packages=packages)")
    assert plain is not None
    assert plain.packages == ("a",)


def test_a_call_with_more_arguments_is_not_complete():
    plain = read_plain_setup_script(b"setup(packages=['a'], **more)")
    assert plain is not None
    assert (plain.packages, plain.is_complete) == (("a",), False)


def test_other_mentions_do_not_count():
    call = b"setup(url='x/packages/y', namespace_packages=['n'], packages=['a'], ext=x.packages)"
    source = b"from x import packages\n" + call
    plain = read_plain_setup_script(source)
    assert plain is not None
    assert plain.packages == ("a",)


@pytest.mark.parametrize("part", [b"packages=[", b"packages = ", b"'a',", b"[[['", b"find_packages(", b" \t", b"(("])
def test_long_texts_take_linear_time(part):
    assert read_plain_setup_script(b"setup(packages=[" + part * 60_000) is None
