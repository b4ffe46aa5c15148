"""Which folders find_packages() and find_namespace_packages() take."""

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
def test_packages_are_found_by_their_names(include, exclude, namespaces, expected):
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
def test_folders_that_commands_copy(copied, package_dir, expected):
    found = copied_files(source_tree(TREE), SetupArguments(copied=copied, package_dir=package_dir))
    assert sorted(paths_of(found)) == sorted(expected)


def test_a_folder_below_one_that_is_no_package_is_none():
    assert find_packages(source_tree(TREE), "", ["*"], [], namespaces=False) == []


def test_package_data_lead_out_of_their_package(subtests: pytest.Subtests):
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


def test_a_package_at_the_top_lacks_setup_py():
    script = "from setuptools import setup\nsetup(packages=['demo'], package_dir={'demo': '.'})\n"
    contents = files("__init__.py", "core.py", "inner/setup.py", setup_py=script)
    assert modules_by(setuptools.installed, contents)[1] == ["demo", "demo.core"]
