"""The folders that find_packages() and find_namespace_packages() select."""

import pytest

from pypi_assets.distributions.backends import setuptools
from pypi_assets.distributions.backends.setuptools_files import copied_files, find_packages
from pypi_assets.distributions.members import paths_of
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets_tests.distributions.backends.projects import files, grade_of, modules_by, source_tree

TREE = dict.fromkeys(
    ["src/a/__init__.py", "src/a/b/__init__.py", "src/a/plain/c/__init__.py", "src/a/tests/__init__.py", "src/n/x.py"],
    "",
)


@pytest.mark.parametrize(
    ("include", "exclude", "namespaces", "expected"),
    [
        (["*"], [], False, ["a", "a.b", "a.tests"]),
        (["*"], ["*.tests", "*.tests.*"], False, ["a", "a.b"]),
        (["a.*"], ["a.t*"], False, ["a.b"]),
        (["a", "?.[b]"], [], False, ["a", "a.b"]),
        (["*"], ["a.tests"], True, ["a", "a.b", "a.plain.c", "n"]),
        (["x"], [], True, []),
    ],
)
def test_find_packages_filters_by_name(include, exclude, namespaces, expected):
    assert find_packages(source_tree(TREE), "src", include, exclude, namespaces=namespaces) == expected


@pytest.mark.parametrize(
    ("copied", "package_dir", "expected"),
    [
        (("src/a/b", "./src/a/b/", "src/a/b/c", "src/n"), {}, ["src/a/b/__init__.py", "src/n/x.py"]),
        (("",), {}, []),
        (("gone",), {}, []),
        (("src/n",), {"": "src"}, ["n/x.py"]),
    ],
)
def test_folders_copied_by_commands(copied, package_dir, expected):
    copies = copied_files(source_tree(TREE), SetupArguments(copied=copied, package_dir=package_dir))
    assert sorted(paths_of(copies)) == sorted(expected)


def test_folder_below_a_non_package_is_not_a_package():
    assert find_packages(source_tree(TREE), "", ["*"], [], namespaces=False) == []


def test_package_data_outside_the_package(subtests: pytest.Subtests):
    cases = [
        ("../other/*.py", ["other", "other.x"], "exact"),
        ("..//other/x.py", ["other", "other.x"], "exact"),
        ("../../other/x.py", [], "exact"),
        ("data/../../other/x.py", [], "derived"),
        ("*.py", [], "exact"),
    ]
    for glob, more, grade in cases:
        with subtests.test(glob=glob):
            script = f"from setuptools import setup\nsetup(packages=['demo'], package_data={{'demo': ['{glob}']}})\n"
            contents = files("demo/__init__.py", "other/x.py", setup_py=script)
            assert modules_by(setuptools.installed, contents)[1] == ["demo", *more]
            assert grade_of(setuptools.installed, contents) == grade


def test_top_folder_package_omits_setup_py():
    script = "from setuptools import setup\nsetup(packages=['demo'], package_dir={'demo': '.'})\n"
    contents = files("__init__.py", "core.py", "inner/setup.py", setup_py=script)
    assert modules_by(setuptools.installed, contents)[1] == ["demo", "demo.core"]
