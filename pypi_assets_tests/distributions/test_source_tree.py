"""The files of an sdist as build backends look at them."""

import pytest

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import by_folder, paths_of
from pypi_assets.distributions.source_tree import MAX_TARGET_LENGTH, clean_path, joined, module_name, moved
from pypi_assets_tests.distributions.backends.projects import files, source_tree

PATHS = ("demo/__init__.py", "demo/part/a.py", "demo/data.txt", "Other.py", "native/b.so", "docs/index.rst")


def test_packages_and_folders_have_modules():
    tree = source_tree(files(*PATHS))
    assert list(tree.packages) == ["demo"]
    assert tree.folders == {"", "demo", "demo/part", "native"}
    assert tree.tops == ["demo", "native"]
    assert tree.modules_at_top == ["Other"]
    assert tree.has_compiled_modules
    assert not tree.has_compiled_sources


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("demo", ["demo/__init__.py", "demo/part/a.py"]),
        ("demo/part/a.py", ["demo/part/a.py"]),
        ("demo/data.txt", []),
        ("native", ["native/b.so"]),
        ("no", []),
    ],
)
def test_what_lies_at_a_path(path, found):
    assert sorted(paths_of(source_tree(files(*PATHS)).at(path))) == found


@pytest.mark.parametrize(("name", "path"), [("demo", "demo"), ("other", "Other.py"), ("docs", None), ("DEMO", "demo")])
def test_the_case_of_a_name_counts_only_where_it_has_to(name, path):
    assert source_tree(files(*PATHS)).named("", name) == path


def test_files_of_a_large_folder_are_found():
    tree = source_tree(files(*(f"demo/module_{number}.py" for number in range(500))))
    assert tree.has_file("demo/module_499.py")
    assert not tree.has_file("demo/module_500.py")


def test_moved_files_keep_their_place_below_the_folder():
    found = by_folder(["src/demo/a.py", "src/b.py"])
    assert sorted(paths_of(moved(found, "src"))) == ["b.py", "demo/a.py"]
    assert sorted(paths_of(moved(found, "src", "new/place"))) == ["new/place/b.py", "new/place/demo/a.py"]
    with pytest.raises(LimitExceededError):
        moved(found, "src", "t" * (MAX_TARGET_LENGTH + 1))


def test_paths_and_names():
    assert clean_path(" ./src//demo/") == "src/demo"
    assert clean_path("src\\demo") == "src/demo"
    assert (joined("a", "b"), joined("", "b"), joined("a", "")) == ("a/b", "b", "a")
    assert module_name("My-Demo..pkg") == "my_demo_pkg"
