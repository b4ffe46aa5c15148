"""The modules below the names in top_level.txt."""

import pytest

from pypi_assets.distributions.backends.setuptools_files import (
    in_packages,
    is_namespace,
    named_in,
    package_at_top,
    without_scripts,
)
from pypi_assets.distributions.members import paths_of
from pypi_assets_tests.distributions.backends.projects import TREE, files, source_tree


@pytest.mark.parametrize(
    ("name", "root", "expected"),
    [
        ("one", "", ["one.py"]),
        ("sub", "demo", ["demo/sub/__init__.py", "demo/sub/deep.py"]),
        ("conf", "docs", ["docs/conf.py"]),
        ("gone", "", []),
    ],
)
def test_name_is_searched_in_each_top_folder(name, root, expected):
    found_in, files_found = named_in(source_tree(files(*TREE)), [""], name)
    assert (found_in, paths_of(files_found)) == (root, expected)


@pytest.mark.parametrize(
    ("project", "name", "expected"),
    [
        ("demo", "demo", "demo"),
        ("space.demo", "space", "space/demo"),
        ("space-demo", "space", "space/demo"),
        ("space.2", "space", ""),
        ("other", "demo", ""),
    ],
)
def test_top_folder_with_the_project_name_is_a_package(project, name, expected):
    assert package_at_top(source_tree(files("__init__.py"), project), name) == expected
    assert package_at_top(source_tree(files("core.py"), project), name) == ""


@pytest.mark.parametrize(
    ("others", "expected"), [((), ""), (("core.py",), "space/demo"), (("sub/__init__.py",), "space/demo")]
)
def test_lone_init_next_to_extension_module_is_not_a_package(others, expected):
    contents = files("__init__.py", "setup.py", "_core.c", "x.egg-info/PKG-INFO", *others)
    contents |= {"x.egg-info/top_level.txt": "_core\nspace\n"}
    assert package_at_top(source_tree(contents, "space.demo"), "space") == expected


def test_parent_of_dotted_project_name_is_a_namespace():
    tree = source_tree(files("_core.c"), "space.demo")
    assert is_namespace(tree, "space")
    assert not is_namespace(tree, "_core")


def test_files_next_to_packages_are_skipped():
    remaining = without_scripts(source_tree(files("__init__.py", "setup.py", "sub/x.py", "tests/x.py", "docs/conf.py")))
    assert paths_of(remaining) == ["__init__.py", "sub/x.py"]


def test_folders_below_a_package_are_subpackages():
    tree = source_tree(files("space/demo/__init__.py", "space/demo/data/x.py", "space/demo/sub/__init__.py"))
    expected = ["space/demo/__init__.py", "space/demo/sub/__init__.py"]
    assert paths_of(in_packages(tree, "", tree.below("space"))) == expected
