"""What lies under a name in top_level.txt, and what lies next to packages and is none."""

import re

from pypi_assets.characters import is_identifier
from pypi_assets.distributions.members import Files, by_folder
from pypi_assets.distributions.source_tree import SourceTree

_SEPARATOR = re.compile(r"[-.]")
_NOT_PACKAGES = (
    "ci bin debian doc docs documentation manpages news newsfragments changelog test tests unit_test unit_tests"
    " example examples scripts tools util utils python build benchmark benchmarks exercise exercises htmlcov tasks"
    " fabfile site_scons dist env venv requirements"
)
NOT_PACKAGES = frozenset(_NOT_PACKAGES.split())
"""Folders at the top that setuptools' discovery takes for no packages, next to those that begin with _ or a dot."""
_NOT_MODULES = (
    "setup conftest test tests example examples build toxfile noxfile pavement dodo tasks fabfile SConstruct Sconstruct"
    " sConstruct sconstruct conanfile manage benchmark benchmarks exercise exercises"
)
NOT_MODULES = frozenset(_NOT_MODULES.split())


def named_in(tree: SourceTree, roots: list[str], name: str) -> tuple[str, Files]:
    """The folder that `name` lies in, and its files: one of `roots`, else any at the top."""
    path = name.replace(".", "/")
    for root in (*roots, *tree.tops):
        tree.effort.spend(4)
        start = f"{root}/{path}" if root else path
        if tree.has_file(f"{start}.py"):
            return root, [*by_folder([f"{start}.py"]), *(tree.below(start) if start in tree.packages else ())]
        if found := tree.below(start):
            return root, found
    return "", []


def package_at_top(tree: SourceTree, name: str) -> str:
    """`a/b` where the top folder is itself the package a.b, as which the project is named; else nothing.

    An `__init__.py` alone, next to sources of an extension module that top_level.txt names too, is none: it describes
    the project.
    """
    parts = _SEPARATOR.split(tree.project or "")
    others = [*(set(tree.modules_at_top) - NOT_MODULES - {"__init__"}), *(set(tree.tops) & tree.packages.keys())]
    if not others and tree.has_compiled_sources and len(tree.top_level or ()) > 1:
        return ""
    is_package = parts[0] == name and tree.has_file("__init__.py") and all(map(is_identifier, parts))
    return "/".join(parts) if is_package else ""


def is_namespace(tree: SourceTree, name: str) -> bool:
    """Whether the project is named as something in `name`, which is then no extension module."""
    return (tree.project or "").startswith(f"{name}.")


def without_scripts(tree: SourceTree) -> Files:
    """What lies in the tree, without that which is next to packages in most projects."""
    at_top = by_folder(f"{name}.py" for name in tree.modules_at_top if name not in NOT_MODULES)
    return at_top + [each for top in tree.tops if top not in NOT_PACKAGES for each in tree.below(top)]


def in_packages(tree: SourceTree, root: str, files: Files) -> Files:
    """`files` without those in folders that have no `__init__.py` but are below a folder that has one."""
    known: dict[str, bool] = {root: True}

    def is_kept(folder: str) -> bool:
        if folder not in known:
            parent = folder.rpartition("/")[0]
            known[folder] = is_kept(parent) and (
                folder in tree.packages or parent not in tree.packages or parent == root
            )
        return known[folder]

    return [(folder, inside) for folder, inside in files if is_kept(folder)]
