"""What scikit-build-core puts into a wheel: Python packages, and the modules that CMakeLists.txt builds."""

import re
from collections.abc import Iterator

from pypi_assets.characters import is_identifier, lower
from pypi_assets.distributions.members import by_folder
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.path_patterns import Patterns, without
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import (
    MAX_TARGET_LENGTH,
    Installed,
    SourceTree,
    clean_path,
    module_name,
    moved,
)

_FIRST = re.compile(r"\s*([^\s)]+)")
_COMMANDS = {
    "pybind11_add_module": _FIRST,
    "nanobind_add_module": _FIRST,
    "python_add_library": _FIRST,
    "python3_add_library": _FIRST,
    "install": re.compile(r"\s*TARGETS\s++([^)]{0,2000}?)\bDESTINATION\s+([^\s)]+)", re.IGNORECASE | re.ASCII),
    "project": _FIRST,
    "set": re.compile(r"\s*(\w+)\s+([^\s)]+)\s*\)", re.ASCII),
}
"""What is looked for in the arguments of each command."""
_NO_WORD = re.compile(r"\W", re.ASCII)
_VARIABLE = re.compile(r"\$\{(\w+)\}", re.ASCII)
MAX_CMAKE_CHARACTERS = 200_000
MAX_VARIABLE_CHARACTERS = 200
"""A longer value is no folder, and could be inserted any number of times."""


def installed(tree: SourceTree) -> Installed | None:
    """wheel.packages, else the package of the project's name in src, python or the top; and CMake's modules."""
    packages = tree.table("tool", "scikit-build", "wheel").get("packages")
    by = "scikit-build packages"
    if isinstance(packages, dict):
        targets = {clean_path(target): clean_path(path) for target, path in packages.items() if isinstance(path, str)}
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
    is_pure = "CMakeLists.txt" not in tree.files or tree.table("tool", "scikit-build", "wheel").get("cmake") is False
    return Installed(by, files, extensions, ModulesGrade.EXACT if is_pure else ModulesGrade.DERIVED)


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
    targets: list[str] = []
    installs: list[tuple[str, str]] = []
    variables = {"SKBUILD_PROJECT_NAME": module_name(tree.project or ""), "SKBUILD_PLATLIB_DIR": ""}
    project = ""
    for command, (first, *others) in _commands(text):
        if command == "install":
            installs.append((first, others[0]))
        elif command == "project":
            project = project or first
        elif command != "set":
            targets.append(first)
        elif len(others[0]) <= MAX_VARIABLE_CHARACTERS:
            variables[first] = others[0]
    if not targets:
        return ()
    if project and len(project) <= MAX_VARIABLE_CHARACTERS:
        variables |= {"PROJECT_NAME": project, "CMAKE_PROJECT_NAME": project}
    destinations = {}
    for names, destination in installs:
        for name in names.split():
            destinations[name] = clean_path(_expanded(destination, variables).strip('"'))
    modules = []
    for target in targets:
        folder = destinations.get(target, package)
        name = _expanded(target, variables)
        if len(folder) <= MAX_TARGET_LENGTH:
            modules.append(f"{folder}/{name}".lstrip("/").replace("/", "."))
    return tuple(module for module in dict.fromkeys(modules) if all(map(is_identifier, module.split("."))))


def _commands(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The commands in CMakeLists.txt that are looked at, in lower case, and what is found in their arguments."""
    at = end = 0
    for before in text.split("(")[:-1]:
        at += len(before) + 1
        words = before.rsplit(maxsplit=1)
        command = lower(_NO_WORD.split(words[-1])[-1]) if words else ""
        if at > end and command in _COMMANDS and (found := _COMMANDS[command].match(text, at)):
            end = found.end()
            yield command, found.groups()


def _expanded(text: str, variables: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda name: variables.get(name[1], name[0]), text)
