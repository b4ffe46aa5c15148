"""Which folders find_packages() and find_namespace_packages() take."""

import pytest

from pypi_assets.distributions.backends.setuptools_packages import copied_files, find_packages
from pypi_assets.distributions.members import paths_of
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets_tests.distributions.backends.projects import source_tree

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
