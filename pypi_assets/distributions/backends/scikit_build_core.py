"""What scikit-build-core puts into a wheel: Python packages, and the modules that CMakeLists.txt builds."""

import re

from pypi_assets.distributions.members import by_folder
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.path_patterns import Patterns, without
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.source_tree import (
    MAX_TARGET_LENGTH,
    Installed,
    SourceTree,
    clean_path,
    module_name,
    moved,
)

_ADDED_MODULE = re.compile(
    r"\b(?:pybind11_add_module|nanobind_add_module|python3?_add_library)\s*\(\s*([^\s)]+)", re.IGNORECASE
)
_INSTALL = re.compile(r"\binstall\s*\(\s*TARGETS\s++([^)]{0,2000}?)\bDESTINATION\s+([^\s)]+)", re.IGNORECASE)
_PROJECT = re.compile(r"\bproject\s*\(\s*([^\s)]+)", re.IGNORECASE)
_SET = re.compile(r"\bset\s*\(\s*(\w+)\s+([^\s)]+)\s*\)", re.IGNORECASE)
MAX_CMAKE_CHARACTERS = 200_000
MAX_VARIABLE_CHARACTERS = 200
"""A longer value is no folder; it could be asked for again and again."""


def installed(tree: SourceTree) -> Installed | None:
    """wheel.packages, else the package of the project's name in src, python or the top; and CMake's modules."""
    packages = tree.table("tool", "scikit-build", "wheel").get("packages")
    by = "scikit-build packages"
    if isinstance(packages, dict):
        told = packages.items()
        targets = {clean_path(target): clean_path(path) for target, path in told if isinstance(path, str)}
    elif isinstance(packages, list):
        targets = {clean_path(path).rpartition("/")[2]: clean_path(path) for path in strings(packages)}
    else:
        by = "scikit-build name"
        targets = _by_name(tree)
    files = [each for target, folder in targets.items() for each in moved(tree.below(folder), folder, target)]
    excludes = strings(tree.table("tool", "scikit-build", "wheel").get("exclude"))
    files = [*without(files, excludes, Patterns.GITIGNORE, tree.effort), *by_folder(_generated(tree))]
    extensions = _cmake_modules(tree, next(iter(targets), ""))
    if not files and not extensions:
        return None
    return Installed(by, files, extensions)


def _generated(tree: SourceTree) -> list[str]:
    """The modules that a build writes from templates."""
    entries = tree.table("tool", "scikit-build").get("generate")
    tables = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [clean_path(path) for entry in tables if isinstance(path := entry.get("path"), str) and path.endswith(".py")]


def _by_name(tree: SourceTree) -> dict[str, str]:
    written = tree.table("project").get("name")
    written = written if isinstance(written, str) else tree.project or ""
    names = (
        written.replace("-", "_").replace(".", "_"),
        module_name(written),
        written.replace("-", "_").replace(".", "/"),
    )
    for folder in ("src", "python", ""):
        for name in dict.fromkeys(names):
            if (path := f"{folder}/{name}".lstrip("/")) in tree.packages:
                return {name: path}
    return {}


def _cmake_modules(tree: SourceTree, package: str) -> tuple[str, ...]:
    """The Python modules that CMakeLists.txt installs, by their targets' names."""
    text = decode_text(tree.files.get("CMakeLists.txt", b""), "CMakeLists.txt")[0][:MAX_CMAKE_CHARACTERS]
    if not (targets := _ADDED_MODULE.findall(text)):
        return ()
    variables = {
        "SKBUILD_PROJECT_NAME": module_name(tree.project or ""),
        "SKBUILD_PLATLIB_DIR": "",
        **{name: value for name, value in _SET.findall(text) if len(value) <= MAX_VARIABLE_CHARACTERS},
    }
    if (project := _PROJECT.search(text)) and len(project[1]) <= MAX_VARIABLE_CHARACTERS:
        variables |= {"PROJECT_NAME": project[1], "CMAKE_PROJECT_NAME": project[1]}
    destinations = {}
    for names, destination in _INSTALL.findall(text):
        for name in names.split():
            destinations[name] = clean_path(_expanded(destination, variables).strip('"'))
    modules = []
    for target in targets:
        folder = destinations.get(target, package)
        name = _expanded(target, variables)
        if len(folder) <= MAX_TARGET_LENGTH:
            modules.append(f"{folder}/{name}".lstrip("/").replace("/", "."))
    return tuple(module for module in dict.fromkeys(modules) if all(part.isidentifier() for part in module.split(".")))


def _expanded(text: str, variables: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda name: variables.get(name[1], name[0]), text)
