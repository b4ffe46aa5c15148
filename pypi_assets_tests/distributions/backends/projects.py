"""Source trees of small projects, and the modules that a backend's rule finds in them."""

from collections.abc import Callable, Mapping

import tomli

from pypi_assets.distributions.members import folders_of
from pypi_assets.distributions.module_names import find_modules
from pypi_assets.distributions.sdist_modules import as_built
from pypi_assets.distributions.setup_script import read_setup_script
from pypi_assets.distributions.source_tree import Installed, SourceTree

FLAT = ("demo/__init__.py", "demo/core.py", "demo/data/x.py", "demo/tests/test_x.py", "tests/test_core.py", "other.py")
SRC = tuple(f"src/{path}" for path in FLAT[:4])
WHOLE = ["demo", "demo.core", "demo.data", "demo.data.x", "demo.tests", "demo.tests.test_x"]
NAME = '[project]\nname = "demo"\n'
"""A package with files next to it, the same in a source folder, its modules, and a matching [project] table."""

TREE = (
    "demo/__init__.py",
    "demo/core.py",
    "demo/sub/__init__.py",
    "demo/sub/deep.py",
    "demo/plain/data.py",
    "demo/tests/__init__.py",
    "tests/__init__.py",
    "tests/test_core.py",
    "docs/conf.py",
    "one.py",
)
SRC_TREE = tuple(f"src/{path}" for path in TREE)
LIBRARY = ["demo", "demo.core", "demo.sub", "demo.sub.deep"]
NO_DATA = "[tool.setuptools]\ninclude-package-data = false\n"
"""Packages with other folders next to them, at the top and below src, their modules, and settings without data."""

CMAKE_FILES = {
    "CMakeLists.txt": "project(demo)\nadd_subdirectory(src/native)\nadd_subdirectory(${CMAKE_SOURCE_DIR}/more)\n",
    "src/native/CMakeLists.txt": "function(make_module NAME)\n  python_add_library(${NAME} MODULE ${ARGN})\n"
    "endfunction()\nmake_module(_fast a.c)\ninstall(TARGETS _fast DESTINATION demo/inner)\n",
    "more/CMakeLists.txt": "make_module(_more b.c)\nmake_other(_other c.c)\nadd_subdirectory(..)\n",
    "unread/CMakeLists.txt": "make_module(_unread b.c)\n",
}
"""A build in several folders with its own function: `_fast` is installed, `_more` is placed by the backend."""


def files(*paths: str, **contents: str) -> dict[str, str]:
    """Return empty files at `paths`, and `contents` by name: `pyproject`, `setup_py` or `setup_cfg`."""
    names = {"pyproject": "pyproject.toml", "setup_py": "setup.py", "setup_cfg": "setup.cfg"}
    return dict.fromkeys(paths, "") | {names[key]: content for key, content in contents.items()}


def source_tree(contents: Mapping[str, str], project: str = "demo", declared: tuple[str, ...] = ()) -> SourceTree:
    """Return the tree of these files as if unpacked from an sdist. An .egg-info belongs to the project."""
    kept = {name: content.encode() for name, content in contents.items()}
    egg_infos = [name.rpartition("/")[0] for name in contents if name.endswith(".egg-info/top_level.txt")]
    return SourceTree(
        top="",
        members=folders_of(contents),
        files=kept,
        project=project,
        declared=declared,
        egg_info=egg_infos[0] if egg_infos else None,
        pyproject=tomli.loads(contents.get("pyproject.toml", "")),
        read_setup_script=lambda: read_setup_script(kept["setup.py"]) if "setup.py" in kept else None,
    )


def grade_of(
    rule: Callable[[SourceTree], Installed | None], contents: Mapping[str, str], project: str = "demo"
) -> str | None:
    """Return the grade of the modules that the rule finds, or None if it finds no modules."""
    installed = rule(source_tree(contents, project))
    return None if installed is None else installed.grade.value


def modules_by(
    rule: Callable[[SourceTree], Installed | None], contents: Mapping[str, str], project: str = "demo"
) -> tuple[str | None, list[str]]:
    """Return the rule's name and the modules that it finds, or (None, [])."""
    tree = source_tree(contents, project)
    installed = rule(tree)
    return (None, []) if installed is None else (installed.by, list(find_modules(as_built(tree, installed)).names))
